"""What is promised of the integers that offsets of accesses are made of: an attribute of the ops that compute them.

An access means the sums, products and choices of its offset as exact integers. Their bits may wrap around on the way, as long as
they are those of the exact integer where an access is made. A program has to see to that, and simulators check it (`bounds`).

    %2 = lane.muli %0, %1 {no_wrap} : vector<1xi32>
    %3 = lane.muli %0, %c4 {no_wrap = "proven"} : vector<1xi32>

What is `proven` never wraps around, in whatever lane and launch.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Operation

from tilefw.machine.inst import NoWrap

NO_WRAP = "no_wrap"
_PROVEN = StringAttr("proven")
_EXACT = UnitAttr()


def promise(op: Operation, promised: NoWrap) -> None:
    """Note on an op what is promised of its integers."""
    if promised and op.attributes.get(NO_WRAP) != _PROVEN:
        op.attributes[NO_WRAP] = _PROVEN if promised == "proven" else _EXACT


def promise_of(op: Operation) -> NoWrap:
    """What is promised of an op's integers."""
    found = op.attributes.get(NO_WRAP)
    return "" if found is None else "proven" if found == _PROVEN else "exact"


class Promising:
    """What makes ops or instructions, and knows what is promised of the integers that it computes at the moment."""

    _promised: NoWrap = ""

    def promising(self, promised: NoWrap = "exact") -> AbstractContextManager[None]:
        """Integers that are computed meanwhile are of offsets of accesses, of which this is promised ("" for nothing)."""
        return _Meanwhile(self, promised)


class _Meanwhile(AbstractContextManager[None]):
    """Every selected op enters one: a generator would take three times as long."""

    __slots__ = ("_before", "_its", "_maker")

    def __init__(self, maker: Promising, promised: NoWrap) -> None:
        self._maker = maker
        self._its: NoWrap = promised
        self._before: NoWrap = ""

    def __enter__(self) -> None:
        self._before, self._maker._promised = self._maker._promised, self._its

    def __exit__(self, *_: object) -> None:
        self._maker._promised = self._before
