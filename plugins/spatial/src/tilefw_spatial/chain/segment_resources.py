"""What consecutive steps of a region's order take of the unit as one segment, counted while it grows step by step towards the
order's begin.

A step's operands lie before it and its users behind it: to take one more step changes the counts only by what that step, and what
it brings along, reads and makes. So a segment grows in the time that a step's own operands need, however long it is.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Container, Sequence

from tilefw_spatial import isa
from tilefw_spatial.chain.micro import Micro, element_type
from tilefw_spatial.chain.node import Input, Literal
from tilefw_spatial.chain.region import ChainRegion

_UNSIGNED = ("uint8", "uint16", "uint32")


def may_be_alias(step: Micro) -> bool:
    """Whether a step may be an alias of its operand, in a segment that makes this operand."""
    return step.op.startswith("CVT.uint")


def aliases(candidates: Sequence[Micro], made: Container[Micro], outgoing: Container[Micro]) -> dict[Micro, Micro]:
    """Which of these steps, operands first, need not be done in a segment that has the steps `made` and whose results `outgoing`
    leave it; and whose result is read instead."""
    alias: dict[Micro, Micro] = {}
    for step in candidates:
        source = step.operands[0].source
        if step in outgoing or not isinstance(source, Micro) or source not in made:
            continue
        source = alias.get(source, source)
        wide, narrow = isa.TYPES[step.result].nbytes, isa.TYPES[step.dtype].nbytes
        widens = wide >= narrow and isa.TYPES[source.result].nbytes == narrow
        if (step.dtype in _UNSIGNED and (widens or wide < narrow)) or step.dtype == source.result == "int1":
            alias[step] = source
    return alias


class SegmentResources:
    """The steps of the order before `end` that were taken so far, as one segment: `alus` for them and what they rematerialise,
    without the aliases, and `stream_bytes` of all streams, in and out. `least` is how many ALUs it takes whatever comes before."""

    def __init__(self, region: ChainRegion, end: int) -> None:
        self._region, self._end = region, end
        self._made: set[Micro] = set()
        self._reads: set[Micro | Input] = set()
        self._writes: set[Micro] = set()
        self._candidates: list[Micro] = []
        self.stream_bytes = 0

    @property
    def least(self) -> int:
        return len(self._made) - len(self._candidates)

    @property
    def alus(self) -> int:
        return len(self._made) - (len(aliases(self._candidates, self._made, self._writes)) if self._candidates else 0)

    def take(self, step: Micro) -> None:
        """The last step of the order that it does not have."""
        if self._region.until[step] > self._end:
            self._writes.add(step)
            self.stream_bytes += nbytes(step)
        new = [one for one in (step, *self._region.brings[step]) if one not in self._made]
        self._made.update(new)
        for one in new:
            if one in self._reads:
                self._reads.remove(one)
                self.stream_bytes -= nbytes(one)
            if may_be_alias(one):
                insort(self._candidates, one, key=self._region.rank.__getitem__)
        for one in new:
            self._read(one)

    def _read(self, step: Micro) -> None:
        for operand in self._region.operands[step]:
            source = operand.source
            if not isinstance(source, Literal) and source not in self._made and source not in self._reads:
                self._reads.add(source)
                self.stream_bytes += nbytes(source)


def nbytes(source: Micro | Input) -> int:
    """How many streams a value takes."""
    return isa.TYPES[element_type(source)].nbytes
