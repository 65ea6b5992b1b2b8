"""One piece before it has times: which steps of a region stand in it, what streams in and out, what it costs.

Beside the chosen steps it has their satellites, a CST for each constant that finds no room in its reader's one immediate, and it
lacks the views: an ALU's result has zeros above and is read as narrow as its reader names, so that widening an unsigned integer, or
cutting one, is no step where maker and readers are in one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw_spatial import isa
from tilefw_spatial.chain.micro import Micro, Operand, element_type, producers
from tilefw_spatial.chain.native import Native
from tilefw_spatial.chain.node import Input, Literal
from tilefw_spatial.chain.record import operand_types
from tilefw_spatial.chain.region import Region

_UNSIGNED = ("uint8", "uint16", "uint32")


@dataclass(slots=True)
class Draft:
    """`steps`, operands first, with the operands that `operands` says; `reads` and `writes` in order; `reduced`: of which rate."""

    steps: list[Micro]
    operands: dict[Micro, tuple[Operand, ...]]
    reads: list[Micro | Input]
    writes: list[Micro]
    reduced: bool

    stream_bytes: int  # of all streams, in and out


def may_be_view(step: Micro) -> bool:
    """Whether a step may be none, where it stands with what makes its operand."""
    return step.op.startswith("CVT.uint")


def draft(region: Region, chosen: Sequence[Micro]) -> Draft:
    """The piece of these steps, which are a stretch of the region's order."""
    inside = set(chosen)
    writes = [step for step in chosen if step in region.wanted or any(user not in inside for user in region.users.get(step, ()))]
    local = sorted(_satellites(region, chosen) | inside, key=region.rank.__getitem__)
    alias = _views(local, set(writes))
    steps: list[Micro] = []
    operands: dict[Micro, tuple[Operand, ...]] = {}
    constants: dict[tuple[int, str], Micro] = {}
    for step in local:
        if step not in alias:
            operands[step] = _settled(step, alias, constants)
            steps.append(step)
    operands |= {step: step.operands for step in constants.values()}
    steps = [*constants.values(), *steps]
    made = set(steps)
    sources = (o.source for step in steps for o in operands[step])
    reads = dict.fromkeys(source for source in sources if not isinstance(source, Literal) and source not in made)
    drained_first = sorted(reads, key=lambda source: not (isinstance(source, Input) and source.drained))
    streams = [*map(element_type, reads), *(step.result for step in writes)]
    return Draft(steps, operands, drained_first, writes, chosen[-1].reduced, sum(isa.TYPES[name].nbytes for name in streams))


def _satellites(region: Region, chosen: Sequence[Micro]) -> set[Micro]:
    """The satellites that these steps read, directly or through others."""
    found: set[Micro] = set()
    stack = list(chosen)
    while stack:
        inner = [p for p in producers(stack.pop()) if isinstance(p, Micro) and p in region.satellites and p not in found]
        found.update(inner)
        stack += inner
    return found


def _views(local: Sequence[Micro], outgoing: set[Micro]) -> dict[Micro, Micro]:
    """The steps that need not be done, and whose result is read instead."""
    alias: dict[Micro, Micro] = {}
    made = set(local)
    for step in local:
        source = step.operands[0].source
        if step in outgoing or not isinstance(source, Micro) or source not in made or not may_be_view(step):
            continue
        source = alias.get(source, source)
        wide, narrow = isa.TYPES[step.result].nbytes, isa.TYPES[step.dtype].nbytes
        widens = wide >= narrow and isa.TYPES[source.result].nbytes == narrow
        if (step.dtype in _UNSIGNED and (widens or wide < narrow)) or step.dtype == source.result == "int1":
            alias[step] = source
    return alias


def _settled(step: Micro, alias: dict[Micro, Micro], constants: dict[tuple[int, str], Micro]) -> tuple[Operand, ...]:
    """The step's operands with views seen through; of its constants one stays an immediate, the others are made by ALUs."""
    settled: list[Operand] = []
    immediate: Literal | None = None
    for operand, dtype in zip(step.operands, operand_types(Native(step.op, step.dtype)), strict=False):
        source = operand.source
        if isinstance(source, Micro):
            operand = Operand(alias.get(source, source), operand.negate, operand.absolute)
        elif isinstance(source, Literal):
            shared = None if immediate is None else _as_immediate(operand, immediate, dtype)
            if immediate is None:
                immediate = source
            elif shared is not None:
                operand = shared
            else:
                name = (source.bits, dtype)
                made = constants.setdefault(name, Micro("CST", dtype, (Operand(source),)))
                operand = Operand(made, operand.negate, operand.absolute)
        settled.append(operand)
    return tuple(settled)


def _as_immediate(operand: Operand, immediate: Literal, dtype: str) -> Operand | None:
    """The operand by the immediate that the step has already: equal to it, or its opposite."""
    assert isinstance(operand.source, Literal)
    if operand.source.bits == immediate.bits:
        return Operand(immediate, operand.negate, operand.absolute)
    kind = isa.TYPES[dtype]
    if kind.is_float and operand.source.bits ^ immediate.bits == 1 << (kind.bits - 1):
        return Operand(immediate, operand.negate != (not operand.absolute), operand.absolute)
    return None
