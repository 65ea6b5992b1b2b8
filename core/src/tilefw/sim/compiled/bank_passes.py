"""How many extra passes of shared memory an access needs, as a function with loops; it does what checks/bank_conflicts.py does.

    i32 run(ptr words, i64 accesses, i64 0)

Accesses of one pass stand side by side. The words of a bank that a pass wants are kept in a list of the bank: most have one.
"""

from __future__ import annotations

from functools import cache

from tilefw.sim.compiled.loops import Loops, Value

WORDS = ("index", "threads", "stride", "lanes_of_pass", "banks", "words_of_access", "counts", "wanted", "extra")
"""By access its offset (a copy of the space has `stride` bytes) and thread; by bank how many words are wanted, and which: `counts`
and `wanted` are for the function to write in, a row of as many as a pass can want for each bank. `extra` gets the answer."""


class _Passes:
    def __init__(self) -> None:
        self.f = f = Loops()
        self.index, self.threads, self.stride, self.lanes = f.array(64), f.array(64), f.argument(), f.argument()
        self.banks, self.words, self.counts, self.wanted = f.argument(), f.argument(), f.array(32), f.array(64)
        self.answer = f.array(64)
        self.room = f.code.mul(self.lanes, self.words)
        self.current, self.most, self.extra = f.variable(f.number(-1)), f.variable(f.number(0, 32)), f.variable(f.number(0))
        self._clear()
        with f.loop(f.counts[0]) as k:
            number = f.code.udiv(f.get(self.threads, k), self.lanes)
            with f.when(f.code.not_(f.equal(number, f.load(self.current)))):
                self._end()
                f.store(self.current, number)
                self._clear()
            first = f.code.lshr(f.code.urem(f.get(self.index, k), self.stride), f.number(2))
            with f.loop(self.words) as j:
                self._want(f.code.add(first, j))
        self._end()
        f.put(self.answer, f.number(0), f.load(self.extra))
        f.leave(0)

    def _clear(self) -> None:
        f = self.f
        f.store(self.most, f.number(0, 32))
        with f.loop(self.banks) as bank:
            f.put(self.counts, bank, f.number(0, 32))

    def _end(self) -> None:
        """The pass is over: all but one of those that its fullest bank takes are extra."""
        f, most = self.f, self.f.load(self.most)
        with f.when(f.code.icmp_unsigned(">", most, f.number(1, 32))):
            f.store(self.extra, f.code.add(f.load(self.extra), f.wide(f.code.sub(most, f.number(1, 32)))))

    def _want(self, word: Value) -> None:
        f, code = self.f, self.f.code
        bank = code.urem(word, self.banks)
        count, row = f.get(self.counts, bank), code.mul(bank, self.room)
        known = f.variable(f.number(0, 1))
        with f.loop(f.wide(count)) as at:
            f.store(known, code.or_(f.load(known), f.equal(f.get(self.wanted, code.add(row, at)), word)))
        with f.when(code.not_(f.load(known))):
            f.put(self.wanted, code.add(row, f.wide(count)), word)
            more = code.add(count, f.number(1, 32))
            f.put(self.counts, bank, more)
            most = f.load(self.most)
            f.store(self.most, code.select(code.icmp_unsigned(">", more, most), more, most))


@cache
def passes(variant: int) -> str:
    """The function; it has one variant."""
    return _Passes().f.text()
