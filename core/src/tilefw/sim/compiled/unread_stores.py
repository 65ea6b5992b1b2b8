"""Who has written each granule of shared memory and was not read yet, as a function with loops; it does what checks/unread.py does.

    i32 run(ptr words, i64 accesses, i64 granules)      granules of each access

It answers OK, or NOT_HERE where it has changed nothing: an access begins within a granule, or a store finds another one unread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tilefw.sim.compiled.loops import Loops, Value

OK, NOT_HERE = 0, 1
WORDS = ("index", "threads", "lane_shift", "waves", "granule_shift", "writers", "read", "stores", "writer")
"""By access its offset and thread, by thread >> lane_shift the number of its wave; by granule its writer, by writer whether any
of it was read. An access that `stores` makes `writer` + wave the writer, or nobody where that is 0; a load makes it nobody."""


class _Unread:
    def __init__(self) -> None:
        self.f = f = Loops()
        self.index, self.threads, self.shift, self.waves = f.array(64), f.array(64), f.argument(), f.array(64)
        self.granule, self.writers, self.read = f.argument(), f.array(32), f.array(8)
        stores, self.writer = f.argument(), f.argument()
        within = f.code.sub(f.code.shl(f.number(1), self.granule), f.number(1))
        with f.loop(f.counts[0]) as k:
            f.leave_when(f.code.not_(f.is_zero(f.both(f.get(self.index, k), within))), NOT_HERE)
        with f.when(f.is_zero(stores)):
            self._each(self._read)
            f.leave(OK)
        self._each(self._look)
        self._each(self._write)
        f.leave(OK)

    def _each(self, act: Callable[[Value, Value], None]) -> None:
        f = self.f
        with f.loop(f.counts[0]) as k:
            first = f.code.lshr(f.get(self.index, k), self.granule)
            wave = f.get(self.waves, f.code.lshr(f.get(self.threads, k), self.shift))
            with f.loop(f.counts[1]) as j:
                act(f.code.add(first, j), wave)

    def _read(self, place: Value, wave: Value) -> None:
        f = self.f
        f.put(self.read, f.wide(f.get(self.writers, place)), f.number(1, 8))
        f.put(self.writers, place, f.number(0, 32))

    def _look(self, place: Value, wave: Value) -> None:
        self.f.leave_when(self.f.code.not_(self.f.is_zero(self.f.get(self.writers, place))), NOT_HERE)

    def _write(self, place: Value, wave: Value) -> None:
        f = self.f
        nobody = f.is_zero(self.writer)
        writer = f.code.select(nobody, f.number(0), f.code.add(self.writer, wave))
        f.put(self.writers, place, f.code.trunc(writer, f.ir.IntType(32)))


@cache
def unread(variant: int) -> str:
    """The function; it has one variant."""
    return _Unread().f.text()
