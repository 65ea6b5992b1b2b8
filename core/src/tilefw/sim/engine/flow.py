"""What comes after a block: branches, calls, ends and barriers, for all lanes at once or for each side of a split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilefw.sim.algebra.shadow import nonzero
from tilefw.sim.checks import initialisation
from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import Array
from tilefw.sim.program import Barrier, Branch, BranchTable, Call, Exit, Instruction, Jump
from tilefw.sim.report import Fault, first_true

# A recursion that does not end is told before it fills the host's memory.
DEEPEST_CALL = 4096


def follow(batch: Any, strand: Any, frame: Frame, block: Any) -> int | None:
    """The next block, or None when the strand has split, waits or has ended (its parts are with the batch then)."""
    instruction: Instruction = block.flow
    lanes = batch.launch.lanes
    lanes.instruction = instruction
    flow = instruction.flow
    if isinstance(flow, Branch) and block.condition is None:
        return batch.launch.prepared.block_at[flow.target]
    taken = _taken(batch, frame, block.condition)
    if taken is False:
        return strand.block + 1
    if taken is not True:
        return _split(batch, strand, frame, block, taken)
    return _go(batch, strand, frame, block)


def _taken(batch: Any, frame: Frame, condition: tuple[int, bool] | None) -> Array | bool:
    """Lanes for which the flow holds: all (True), none (False), or a mask of the frame."""
    if condition is None:
        return True
    register, negated = condition
    predicate = frame.registers[register]
    poison = frame.poison[register]
    if poison is not None:
        initialisation.report(batch.launch.lanes, "the condition of the branch", nonzero(poison))
    if predicate.size == 1:
        return bool(predicate.flat[0]) != negated
    taken = ~predicate if negated else predicate
    if not batch.launch.chip.pc_per_lane and taken.shape[2] > 1:
        taken = _one_for_the_wave(batch, frame, taken)
    if frame.active is None:
        return True if taken.all() else taken if taken.any() else False
    taken = taken & frame.active
    if not taken.any():
        return False
    return True if (taken == frame.active).all() else taken


def _split(batch: Any, strand: Any, frame: Frame, block: Any, taken: Array) -> int | None:
    """Some lanes follow the flow, the others fall through: two strands from here."""
    launch = batch.launch
    whole = batch.full_mask(frame, taken)
    rest = (batch.alive if strand.mask is None else strand.mask) & ~whole
    launch.counters.add("divergent_branches", 1)
    inside = (whole.any(axis=2) & rest.any(axis=2)).any()
    flow = block.flow.flow
    if inside and isinstance(flow, Branch) and flow.uniform:
        _report_split(batch, whole, "a branch that the code calls uniform splits a wave")
    kind = type(strand)
    batch.strands.append(kind(strand.block + 1, rest, strand.stack))
    if isinstance(flow, Branch):
        batch.strands.append(kind(launch.prepared.block_at[flow.target], whole, strand.stack))
        return None
    part = kind(strand.block, whole, strand.stack)
    following = _go(batch, part, frame, block, taken)
    if following is not None:
        part.block = following
        batch.strands.append(part)
    return None


def _one_for_the_wave(batch: Any, frame: Frame, taken: Array) -> Array:
    """The condition of waves that have one program counter."""
    some = taken.any(axis=2, keepdims=True)
    torn = np.broadcast_to(some & ~taken.all(axis=2, keepdims=True), (*frame.shape[:2], 1))
    torn = torn if frame.active is None else torn & frame.active
    if torn.any():
        lanes = batch.launch.lanes
        lanes.launch.reporter.add(
            "barriers", "TFW0813", "the lanes of a wave disagree on a branch, and the chip has one program counter for a wave",
            lanes.instruction, where=lanes.locate(*first_true(torn & taken)), count=int(torn.sum()),
        )
        raise Fault
    return some


def _report_split(batch: Any, taken: Array, message: str) -> None:
    lanes = batch.launch.lanes
    a, b, lane = first_true(taken)
    lanes.launch.reporter.add(
        "barriers", "TFW0813", message, lanes.instruction, where=(batch.workgroup(a), b, lane), count=int(taken.any(axis=2).sum())
    )


def _go(batch: Any, strand: Any, frame: Frame, block: Any, taken: Array | None = None) -> int | None:
    """All of the strand's threads follow the flow; `taken` is their mask in the frame where that is not all of it."""
    flow = block.flow.flow
    block_at = batch.launch.prepared.block_at
    if isinstance(flow, Branch):
        return block_at[flow.target]
    if isinstance(flow, BranchTable):
        return _table(batch, strand, frame, block)
    if isinstance(flow, Jump):
        return _jump(batch, strand, frame, block)
    if isinstance(flow, Call):
        if len(strand.stack) >= DEEPEST_CALL:
            batch.launch.lanes.trap(f"calls are nested more than {DEEPEST_CALL} deep")
        strand.stack = (*strand.stack, strand.block + 1)
        return block_at[flow.target]
    if isinstance(flow, Barrier):
        return batch.waiting.arrive(strand, frame, block)
    if not isinstance(flow, Exit) and strand.stack:
        following = strand.stack[-1]
        strand.stack = strand.stack[:-1]
        return following
    end(batch, strand, frame)
    return None


def end(batch: Any, strand: Any, frame: Frame) -> None:
    """The strand's threads end; barriers no longer wait for them."""
    batch.alive = np.zeros_like(batch.alive) if strand.mask is None else batch.alive & ~strand.mask
    batch.waiting.recheck()


def _table(batch: Any, strand: Any, frame: Frame, block: Any) -> int | None:
    flow = block.flow.flow
    mask = batch.mask_of(strand)
    values = batch.spread(frame, frame.registers[block.flow_sources[0]])
    _require(batch, block, mask & (values >= len(flow.targets)), lambda where: (
        f"branch index {values[where]} of a table of {len(flow.targets)}"
    ))
    block_at = batch.launch.prepared.block_at
    return _part(batch, strand, mask, values, {index: block_at[target] for index, target in enumerate(flow.targets)})


def _jump(batch: Any, strand: Any, frame: Frame, block: Any) -> int | None:
    poison = frame.poison[block.address]
    if poison is not None:
        initialisation.report(batch.launch.lanes, "the address of the jump", nonzero(poison))
    mask = batch.mask_of(strand)
    values = batch.spread(frame, frame.registers[block.address])
    base, blocks = batch.launch.prepared.code
    known = {base + offset: target for offset, target in blocks.items()}
    wild = [value for value in np.unique(values[mask]).tolist() if value not in known]
    _require(batch, block, mask & np.isin(values, np.array(wild, dtype=np.uint64)), lambda where: (
        f"a jump to the address {int(values[where]):#x}, where the program has no instruction"
    ))
    return _part(batch, strand, mask, values, known)


def _require(batch: Any, block: Any, wild: Array, message: Callable[[tuple[int, int, int]], str]) -> None:
    """Nobody may go to nowhere."""
    if not wild.any():
        return
    a, b, lane = first_true(wild)
    batch.launch.reporter.add(
        "bounds", "TFW0814", message((a, b, lane)), block.flow, where=(batch.workgroup(a), b, lane), count=int(wild.sum())
    )
    raise Fault


def _part(batch: Any, strand: Any, mask: Array, values: Array, targets: Mapping[int, int]) -> int | None:
    """Everybody goes to the block of their value: the block when that is one, else strands."""
    choices = np.unique(values[mask]).tolist()
    if len(choices) == 1:
        return targets[choices[0]]
    for choice in choices:
        batch.strands.append(type(strand)(targets[choice], mask & (values == choice), strand.stack))
    return None
