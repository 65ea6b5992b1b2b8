"""Scheduling of every block before registers are assigned: results in time for their readers, at no step more of registers.

A wave's registers cost in steps: up to so many, as many waves run side by side. The order as it was given says which step a
function is at anyway; within it the scheduler spends what it likes, and a block for which it would need more is scheduled again,
with an eye on the order as it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tilefw.machine.check_schedule import check_schedule
from tilefw.machine.dependences import Aliasing, Dependences, aliasing, dependences
from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.headroom import RegisterHeadroom
from tilefw.machine.inst import Block, Function
from tilefw.machine.list_scheduling import list_schedule
from tilefw.machine.pressure import Pressure
from tilefw.machine.subregisters import BlockAccesses, Subregisters, block_accesses, live_out
from tilefw.machine.table import InstructionTable, InstructionTraits

Steps = Mapping[str, Sequence[int]]
"""By register file, ascending, how many registers a wave may take before the next step costs something."""

_UNBOUNDED = 1 << 30
_NEAR = 16  # the part of a step that a function may need more and is still scheduled for that step, if it can be
_RESERVE = 16  # the part of the registers that is left to assignment, which finds no place for tuples in the last holes


@dataclass(frozen=True)
class ScheduleInstructions(FunctionPass):
    """Orders the instructions of every block.

    `lower`: the steps of a function that are worth another order where the one given is little above them: none without it, none
    for more waves than something else, such as shared memory, has room for. `disjoint`: buffers of different arguments do not
    overlap. `verify`: the result is checked by `check_schedule`.
    """

    name = "schedule-instructions"
    table: InstructionTable
    steps: Steps = field(default_factory=dict)
    disjoint: bool = False
    verify: bool = False
    lower: Callable[[Function], Steps] | None = None

    def run(self, function: Function) -> None:
        lower = {} if self.lower is None else self.lower(function)
        schedule(function, self.table, self.steps, self.disjoint, self.verify, lower)


def schedule(
    function: Function, table: InstructionTable, steps: Steps, disjoint: bool = False, verify: bool = False,
    lower: Steps | None = None,
) -> None:
    """Order the instructions of one function anew, each block for itself, in place.

    `steps` are, by register file, the numbers of registers that are worth staying at, `lower` those worth going down to.
    `disjoint`: different buffers never overlap.
    With `verify`, a checker compares each block's old and new order; it raises InternalError.
    """
    regions = _regions(function, table)
    known = aliasing(function.insts(), table, disjoint)
    limits = _lowered(regions, table, steps, lower or {}, known) or _limits(regions, table, steps)
    for region in regions:
        before = region.block.insts
        _schedule(region, table, limits, known)
        if verify:
            where = f"{function.name}, {region.block.label}"
            check_schedule(before, region.block.insts, function.insts(), table, disjoint, where)


@dataclass(slots=True)
class _Region:
    """The instructions of a block up to its first branch, with what is live as they go, once in the order as they were given."""

    block: Block
    traits: list[InstructionTraits]
    accesses: BlockAccesses
    files: list[str]  # of subregisters
    pressure: Pressure


def _regions(function: Function, table: InstructionTable) -> list[_Region]:
    subregisters = Subregisters(function, table)
    blocks = block_accesses(function, subregisters)
    files = sorted(set(subregisters.files))
    regions: list[_Region] = []
    for block, its, live in zip(function.blocks, blocks, live_out(function, table, blocks), strict=True):
        traits = _until_branch(block, table)
        behind = live.union(*its.reads[len(traits) :])
        pressure = Pressure(subregisters, its, len(traits), behind, files)
        for i in range(len(traits)):
            pressure.schedule(i)
        regions.append(_Region(block, traits, its, subregisters.files, pressure))
    return regions


def _until_branch(block: Block, table: InstructionTable) -> list[InstructionTraits]:
    found: list[InstructionTraits] = []
    for inst in block.insts:
        traits = table.traits(inst.opcode)
        if inst.targets or traits.terminator:
            break
        found.append(traits)
    return found


def _limits(regions: Sequence[_Region], table: InstructionTable, steps: Steps) -> list[int]:
    """By file: the step that the function needs as it was given, less a reserve where it does not need that."""
    if not regions:
        return []
    limits: list[int] = []
    for file, number in regions[0].pressure.files.items():
        needed = max(region.pressure.peak[number] for region in regions)
        allowed = steps.get(file) or (_allocatable(file, table),)
        step = next((step for step in allowed if step >= needed), allowed[-1])
        limits.append(max(needed, step - step // _RESERVE) if needed <= step else step)
    return limits


def _lowered(
    regions: Sequence[_Region], table: InstructionTable, steps: Steps, lower: Steps, known: Aliasing
) -> list[int] | None:
    """The limits one step lower where the order as it was given is so little above it that another order may stay below, and does
    in every block; None where there is no such order."""
    limits = _limits(regions, table, steps)
    over: list[_Region] = []
    for file, number in regions[0].pressure.files.items() if regions else ():
        needed = max(region.pressure.peak[number] for region in regions)
        below = max((step for step in lower.get(file, ()) if step < needed), default=0)
        if below and needed - below <= below // _NEAR:
            limits[number] = below
            over += [region for region in regions if region.pressure.peak[number] > below]
    if not over:
        return None
    for region in over:
        given = list(region.pressure.peak)
        _ordered(region, table, limits, known)
        fits = all(peak <= limit for peak, limit in zip(region.pressure.peak, limits, strict=True))
        region.pressure.peak[:] = given
        if not fits:
            return None
    return limits


def _allocatable(file: str, table: InstructionTable) -> int:
    counts = [cls.count for cls in table.classes.values() if (cls.file or cls.name) == file]
    if None in counts:
        return _UNBOUNDED
    return max(count for count in counts if count is not None) - len(table.reserved.get(file, ()))


def _ordered(
    region: _Region, table: InstructionTable, limits: Sequence[int], known: Aliasing
) -> tuple[Dependences, list[object], list[int]]:
    """Dependences and predicates of a block, and an order of it that cares for the limits as far as it goes."""
    count = len(region.traits)
    order = dependences(region.block.insts[:count], region.traits, region.accesses, region.files, known, table.apart)
    region.pressure.restart()
    guards: list[object] = [inst.predicate for inst in region.block.insts[:count]]
    return order, guards, list_schedule(order, region.traits, guards, region.pressure, limits, table.issue_interval)


def _schedule(region: _Region, table: InstructionTable, limits: Sequence[int], known: Aliasing) -> None:
    count = len(region.traits)
    if count < 2:
        return
    given = list(region.pressure.peak)
    order, guards, found = _ordered(region, table, limits, known)
    if any(peak > limit and peak > had for peak, limit, had in zip(region.pressure.peak, limits, given, strict=True)):
        region.pressure.restart()
        headroom = RegisterHeadroom(region.pressure, limits)
        found = list_schedule(order, region.traits, guards, region.pressure, limits, table.issue_interval, headroom)
    insts = region.block.insts
    region.block.insts = [*(insts[i] for i in found), *insts[count:]]
