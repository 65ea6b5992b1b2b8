"""The race check's look at one access and its note of it, as functions with loops; each does what `Races` does with arrays.

    i32 run(ptr words, i64 accesses, i64 granules)      granules of each access

`READ` and `WRITE` are the words. A function answers OK, or NOT_HERE where something is to be reported or is not looked at here: it
has changed nothing then, and NumPy's form does it all. A write answers TOGETHER where several waves have written one place in this
very step: it has been noted, and somebody else must look at the values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tilefw.sim.compiled.loops import Loops, Value
from tilefw.sim.tracking.events import CLOCK_SHIFT, KIND_SHIFT
from tilefw.sim.tracking.last_accesses import SEVERAL_GROUPS, SEVERAL_WAVES

OK, NOT_HERE, TOGETHER = 0, 1, 2
_WAVE_BITS = 6  # of an actor, as the last accesses have them
COMMON = (
    "index", "threads", "lane_shift", "actors", "clocks", "rows", "known", "waves", "kinds", "granule_shift", "site",
    "writer", "written", "write_site", "strong", "reader", "read", "read_site", "mixed", "readers",
)
"""By access its offset and thread; by wave (thread >> lane_shift) its actor, clock, and row of `known`, which has the clocks that
it knows of `waves` waves; `kinds` are the addresses of such rows of settled stamps, by kind. Then the last accesses by granule."""
READ = (*COMMON, "flags", "combined", "latest", "any_mixed")
WRITE = (*COMMON, "checks", "notes", "any_mixed", "acted")
_FOREIGN, _SEEN, _SHARED = 1, 2, 4


class _Shadow:
    """The words of a function by name, and what both functions ask."""

    def __init__(self, clock_bits: int) -> None:
        self.f = f = Loops()
        self.stamps = clock_bits == 64
        self.index, self.threads, self.lane_shift = f.array(64), f.array(64), f.argument()
        self.actors, self.clocks, self.rows = f.array(32), f.array(64), f.array(64)
        self.known, self.waves, self.kinds = f.array(64), f.argument(), f.array(64)
        self.granule_shift, self.site = f.argument(), f.code.trunc(f.argument(), f.ir.IntType(32))
        self.writer, self.written = f.array(32), f.array(clock_bits)
        self.write_site, self.strong = f.array(32), f.array(8)
        self.reader, self.read = f.array(32), f.array(clock_bits)
        self.read_site, self.mixed, self.readers = f.array(32), f.array(8), f.array(64)
        self.accesses, self.granules = f.counts

    # --- of the access that a loop is at ---------------------------------------------------------------------------------

    def begin(self, k: Value) -> None:
        """Access number k."""
        f = self.f
        self.wave = f.code.lshr(f.get(self.threads, k), self.lane_shift)
        self.me, self.clock = f.get(self.actors, self.wave), f.get(self.clocks, self.wave)
        self.row = f.get(self.rows, self.wave)
        self.offset = f.get(self.index, k)
        self.first = f.code.mul(k, self.granules)

    def place(self, j: Value) -> Value:
        """Its granule number j."""
        return self.f.code.add(self.f.code.lshr(self.offset, self.granule_shift), j)

    def number(self, j: Value) -> Value:
        """That of the granule among those of all accesses."""
        return self.f.code.add(self.first, j)

    def leave_unaligned(self) -> None:
        """It begins within a granule: all must be cut."""
        f = self.f
        within = f.code.sub(f.code.shl(f.number(1), self.granule_shift), f.number(1))
        f.leave_when(f.code.not_(f.is_zero(f.both(self.offset, within))), NOT_HERE)

    # --- order -----------------------------------------------------------------------------------------------------------

    def of_my_group(self, actor: Value) -> Value:
        f, shift = self.f, self.f.number(_WAVE_BITS, 32)
        mine = f.equal(f.code.lshr(actor, shift), f.code.lshr(self.me, shift))
        return f.both(mine, f.code.not_(f.equal(actor, f.number(int(SEVERAL_GROUPS), 32))))

    def wave_of(self, actor: Value) -> Value:
        return self.f.wide(self.f.both(actor, self.f.number(SEVERAL_WAVES, 32)))

    def knows(self, wave: Value, stamp: Value) -> Value:
        """Whether I know a wave of my workgroup to be past a clock, or an event of it to be finished."""
        f, code = self.f, self.f.code
        last = code.sub(self.waves, f.number(1))
        wave = code.select(code.icmp_unsigned("<", wave, last), wave, last)
        at = code.add(code.mul(self.row, self.waves), wave)
        stamp = f.wide(stamp)
        known = code.icmp_signed(">=", f.get(self.known, at), stamp)
        if not self.stamps:
            return known
        result, kind = f.variable(known), code.lshr(stamp, f.number(KIND_SHIFT))
        with f.when(f.both(code.not_(known), code.not_(f.is_zero(kind)))):
            settled = f.at(f.get(self.kinds, code.sub(kind, f.number(1))), 64)
            plain = f.both(stamp, f.number((1 << KIND_SHIFT) - 1))
            f.store(result, code.icmp_signed(">=", f.get(settled, at), plain))
        return f.load(result)

    def ordered_writer(self, actor: Value, place: Value) -> Value:
        f = self.f
        result = f.variable(f.number(0, 1))
        one = f.code.not_(f.equal(self.wave_of(actor), f.number(SEVERAL_WAVES)))
        with f.when(f.both(self.of_my_group(actor), one)):
            f.store(result, self.knows(self.wave_of(actor), f.get(self.written, place)))
        return f.load(result)

    def ordered_readers(self, actor: Value, place: Value) -> Value:
        """The same of who has read a place, one wave or several of my workgroup. My own load is before what I do now."""
        f, code = self.f, self.f.code
        result = f.variable(f.number(0, 1))
        with f.when(self.of_my_group(actor)):
            wave, stamp = self.wave_of(actor), f.get(self.read, place)
            several = f.equal(wave, f.number(SEVERAL_WAVES))
            with f.when(code.not_(several)):
                f.store(result, self.knows(wave, stamp))
            with f.when(several):
                f.store(result, f.number(1, 1))
                readers, mine = f.get(self.readers, place), self.wave_of(self.me)
                with f.loop(self.waves) as other:
                    reads = code.trunc(code.lshr(readers, other), f.bit)
                    with f.when(f.both(reads, code.not_(f.equal(other, mine)))):
                        f.store(result, f.both(f.load(result), self.knows(other, stamp)))
        return f.load(result)

    def leave_where_unordered(self, place: Value) -> None:
        """Its last writer is another wave, and nothing orders me behind it."""
        f = self.f
        writer = f.get(self.writer, place)
        with f.when(f.both(f.code.not_(f.is_zero(writer)), f.code.not_(f.equal(writer, self.me)))):
            f.leave_when(f.code.not_(self.ordered_writer(writer, place)), NOT_HERE)

    def clock_word(self) -> Value:
        """My clock as places keep it."""
        return self.clock if self.stamps else self.f.code.trunc(self.clock, self.f.ir.IntType(32))

    def later(self, old: Value) -> Value:
        """My clock or an old one: `events.later`."""
        f, code, mine = self.f, self.f.code, self.clock_word()
        less = code.icmp_signed("<", mine, old) if self.stamps else code.icmp_unsigned("<", mine, old)
        latest = code.select(less, old, mine)
        if not self.stamps:
            return latest
        stamp = code.not_(f.is_zero(code.lshr(mine, f.number(KIND_SHIFT))))
        clock = f.number(CLOCK_SHIFT)
        one_clock = f.both(stamp, f.equal(code.lshr(mine, clock), code.lshr(old, clock)))
        return code.select(one_clock, code.select(less, mine, old), latest)


class _Read(_Shadow):
    """Looks at the last writers, then notes the readers in two passes: the first claims places, the second sees who else does."""

    def __init__(self, clock_bits: int) -> None:
        super().__init__(clock_bits)
        f = self.f
        self.flags, self.combined, self.latest = f.array(8), f.array(32), f.array(clock_bits)
        self.any_mixed = f.array(8)
        with f.loop(f.number(2)) as turn:
            self._turn(f.is_zero(turn))
        f.leave(OK)

    def _turn(self, first: Value) -> None:
        f = self.f
        foreign, others = f.variable(f.number(0, 1)), f.variable(first)
        with f.loop(self.accesses) as k:
            self.begin(k)
            with f.when(first):
                self.leave_unaligned()
            with f.loop(self.granules) as j:
                self._look(first, self.place(j), self.number(j), foreign, others)
        f.leave_when(f.code.not_(f.load(others)), OK)  # all places are claimed as they were
        with f.when(f.load(foreign)):
            self._each(_SHARED, self._begin_readers)
            self._each(_SHARED, self._add_reader)
        self._each(0, self._claim)
        with f.when(f.load(foreign)):
            self._each(_FOREIGN, self._combine)

    def _look(self, first: Value, place: Value, number: Value, foreign: Value, others: Value) -> None:
        f, code = self.f, self.f.code
        flags = f.variable(f.number(0, 8))
        with f.when(first):
            self.leave_where_unordered(place)
        reader = f.get(self.reader, place)
        with f.when(code.not_(f.is_zero(reader))):
            seen = f.both(first, code.not_(f.equal(f.get(self.read_site, place), self.site)))
            f.store(flags, code.select(seen, f.number(_SEEN, 8), f.number(0, 8)))
            with f.when(code.not_(f.equal(reader, self.me))):
                f.store(others, f.number(1, 1))
                with f.when(code.not_(self.ordered_readers(reader, place))):
                    f.store(foreign, f.number(1, 1))
                    self._look_at_foreign(first, reader, place, number, flags)
        f.put(self.flags, number, f.load(flags))

    def _look_at_foreign(self, first: Value, reader: Value, place: Value, number: Value, flags: Value) -> None:
        """Somebody else has read the place, unordered with me."""
        f, code = self.f, self.f.code
        mine, old = self.of_my_group(reader), f.get(self.read, place)
        # Waves with clocks of their own: NumPy's form keeps these.
        f.leave_when(f.both(f.both(first, mine), code.not_(f.equal(old, self.clock_word()))), NOT_HERE)
        several = code.or_(self.me, f.number(SEVERAL_WAVES, 32))
        f.put(self.combined, number, code.select(mine, several, f.number(int(SEVERAL_GROUPS), 32)))
        f.put(self.latest, number, self.later(old))
        marks = code.select(mine, f.number(_FOREIGN | _SHARED, 8), f.number(_FOREIGN, 8))
        f.store(flags, code.or_(f.load(flags), marks))

    def _each(self, marks: int, act: Callable[[Value, Value], None]) -> None:
        """For each granule of each access with such a flag, or each that is nobody else's."""
        f = self.f
        with f.loop(self.accesses) as k:
            self.begin(k)
            with f.loop(self.granules) as j:
                number = self.number(j)
                flags = f.get(self.flags, number)
                if not marks:
                    self._note(self.place(j), flags)
                chosen = f.is_zero(f.both(flags, f.number(marks or _FOREIGN, 8)))
                with f.when(f.code.not_(chosen) if marks else chosen):
                    act(self.place(j), number)

    def _note(self, place: Value, flags: Value) -> None:
        f = self.f
        f.put(self.read_site, place, self.site)
        with f.when(f.code.not_(f.is_zero(f.both(flags, f.number(_SEEN, 8))))):
            f.put(self.mixed, place, f.number(1, 8))
            f.put(self.any_mixed, f.number(0), f.number(1, 8))

    def _claim(self, place: Value, number: Value) -> None:
        self.f.put(self.reader, place, self.me)
        self.f.put(self.read, place, self.clock_word())

    def _begin_readers(self, place: Value, number: Value) -> None:
        f = self.f
        wave = self.wave_of(f.get(self.reader, place))
        with f.when(f.code.not_(f.equal(wave, f.number(SEVERAL_WAVES)))):
            f.put(self.readers, place, f.code.shl(f.number(1), wave))

    def _add_reader(self, place: Value, number: Value) -> None:
        f = self.f
        bit = f.code.shl(f.number(1), self.wave_of(self.me))
        f.put(self.readers, place, f.code.or_(f.get(self.readers, place), bit))

    def _combine(self, place: Value, number: Value) -> None:
        self.f.put(self.reader, place, self.f.get(self.combined, number))
        self.f.put(self.read, place, self.f.get(self.latest, number))


class _Write(_Shadow):
    """Looks at the last writers and readers where it `checks`, becomes the writer where it `notes`."""

    def __init__(self, clock_bits: int) -> None:
        super().__init__(clock_bits)
        f = self.f
        checks, notes, self.any_mixed, self.acted = f.argument(), f.argument(), f.argument(), f.array(8)
        with f.loop(self.accesses) as k:
            self.begin(k)
            self.leave_unaligned()
        with f.when(f.code.not_(f.is_zero(checks))):
            self._each(self._check)
        together = f.variable(f.number(OK, 32))
        with f.when(f.code.not_(f.is_zero(notes))):
            with f.loop(self.accesses) as k:
                self.begin(k)
                f.put(self.acted, self.row, f.number(1, 8))
            self._each(self._note)
            self._each(lambda place: self._overtaken(place, together))
        f.code.ret(f.load(together))

    def _each(self, act: Callable[[Value], None]) -> None:
        f = self.f
        with f.loop(self.accesses) as k:
            self.begin(k)
            with f.loop(self.granules) as j:
                act(self.place(j))

    def _check(self, place: Value) -> None:
        f = self.f
        self.leave_where_unordered(place)
        reader = f.get(self.reader, place)
        with f.when(f.both(f.code.not_(f.is_zero(reader)), f.code.not_(f.equal(reader, self.me)))):
            f.leave_when(f.code.not_(self.ordered_readers(reader, place)), NOT_HERE)

    def _note(self, place: Value) -> None:
        f = self.f
        f.put(self.writer, place, self.me)
        f.put(self.written, place, self.clock_word())
        f.put(self.write_site, place, self.site)
        f.put(self.strong, place, f.number(0, 8))
        f.put(self.reader, place, f.number(0, 32))
        with f.when(f.code.not_(f.is_zero(self.any_mixed))):
            f.put(self.mixed, place, f.number(0, 8))

    def _overtaken(self, place: Value, together: Value) -> None:
        f = self.f
        with f.when(f.code.not_(f.equal(f.get(self.writer, place), self.me))):
            f.store(together, f.number(TOGETHER, 32))


@cache
def reading(clock_bits: int) -> str:
    """The function for loads, with clocks of so many bits."""
    return _Read(clock_bits).f.text()


@cache
def writing(clock_bits: int) -> str:
    """The function for stores and copies."""
    return _Write(clock_bits).f.text()
