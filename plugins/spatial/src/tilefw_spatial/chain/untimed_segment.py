"""One segment before it has times: which steps of a region are in it, and what streams in and out.

Besides the chosen steps it has what they bring along, rematerialised steps and constants, and it lacks the aliases: an ALU's result
has zeros above and is read as narrow as its reader names, so that widening an unsigned integer, or truncating one, is no step where
maker and readers are in one segment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilefw_spatial.chain.micro import Micro, MicroOperand
from tilefw_spatial.chain.node import Input, Literal
from tilefw_spatial.chain.region import ChainRegion
from tilefw_spatial.chain.segment_resources import aliases, may_be_alias


@dataclass(slots=True)
class UntimedSegment:
    """`steps`, operands first, with the operands that `operands` says; `reads` and `writes` in order; `reduced`: of which rate."""

    steps: list[Micro]
    operands: dict[Micro, tuple[MicroOperand, ...]]
    reads: list[Micro | Input]
    writes: list[Micro]
    reduced: bool


def untimed(region: ChainRegion, first: int, end: int) -> UntimedSegment:
    """The piece of the steps from `first` to before `end` of the region's order."""
    chosen = region.order[first:end]
    writes = [step for step in chosen if region.until[step] > end]
    local = sorted({one for step in chosen for one in (step, *region.brings[step])}, key=region.rank.__getitem__)
    made = set(local)
    alias = aliases([step for step in local if may_be_alias(step)], made, set(writes))

    def seen(operand: MicroOperand) -> MicroOperand:
        source = operand.source
        return replace(operand, source=alias[source]) if isinstance(source, Micro) and source in alias else operand

    steps = [step for step in local if step not in alias]
    operands = {step: tuple(map(seen, region.operands[step])) for step in steps}
    sources = (o.source for step in steps for o in operands[step])
    reads = dict.fromkeys(source for source in sources if not isinstance(source, Literal) and source not in made)
    drained_first = sorted(reads, key=lambda source: not (isinstance(source, Input) and source.drained))
    return UntimedSegment(steps, operands, drained_first, writes, chosen[-1].reduced)
