"""What comes after a block: branches, calls, ends and barriers, for all lanes at once or for each side of a split."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.algebra.shadow import nonzero
from tilefw.sim.checks import barriers
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.divergence import DivergentPath
from tilefw.sim.engine.frame import Frame
from tilefw.sim.engine.waiting import Waiting
from tilefw.sim.floats import Array
from tilefw.sim.program import Await, Barrier, Branch, BranchTable, Call, Exit, Instruction, Jump, Meeting
from tilefw.sim.report import LaunchStopped, first_true
from tilefw.sim.steps.prepare import Prepared, PreparedBlock

# A recursion that does not end is reported before it fills the host's memory.
DEEPEST_CALL = 4096


class Flow:
    """Follows the paths of one batch."""

    def __init__(self, batch: Batch, prepared: Prepared, lanes: NumpyLanes, waiting: Waiting) -> None:
        self._batch, self._lanes, self._waiting = batch, lanes, waiting
        self._block_at, self._code = prepared.block_at, prepared.code
        self._pc_per_lane, self._masks = batch.launch.chip.pc_per_lane, batch.masks

    def follow(self, path: DivergentPath, frame: Frame, block: PreparedBlock) -> int | None:
        """The next block, or None when the path has split, waits or has ended (its parts are with the batch then)."""
        instruction = _instruction(block)
        self._lanes.instruction = instruction
        flow = instruction.flow
        if isinstance(flow, Branch) and block.condition is None:
            return self._block_at[flow.target]
        taken = self._taken(frame, block.condition)
        if taken is False:
            return path.block + 1
        if taken is not True:
            return self._split(path, frame, block, taken)
        return self._go(path, frame, block)

    def end(self, path: DivergentPath) -> None:
        """The path's threads end; barriers no longer wait for them."""
        batch = self._batch
        batch.alive = np.zeros_like(batch.alive) if path.mask is None else batch.alive & ~path.mask
        batch.barriers_changed = True
        self._waiting.recheck()

    # --- conditions ----------------------------------------------------------------------------------------------------

    def _taken(self, frame: Frame, condition: tuple[int, bool] | None) -> Array | bool:
        """Lanes for which the flow holds: all (True), none (False), or a mask of the frame."""
        if condition is None:
            return True
        register, negated = condition
        predicate = frame.registers[register]
        poison = frame.poison[register]
        if poison is not None:
            self._lanes.report_undefined("the condition of the branch", nonzero(poison))
        if predicate.size == 1 and self._masks is None:
            return bool(predicate.flat[0]) != negated
        taken = ~predicate if negated else predicate
        active = frame.active if self._pc_per_lane else frame.view.active
        if not self._pc_per_lane and (taken.shape[2] > 1 or self._masks is not None):
            taken = self._one_for_the_wave(frame, taken, active)
        if active is None:
            return True if taken.all() else taken if taken.any() else False
        taken = taken & active
        if not taken.any():
            return False
        return True if (taken == active).all() else taken

    def _one_for_the_wave(self, frame: Frame, taken: Array, active: Array | None) -> Array:
        """The condition of waves that have one program counter: that of their lanes, or of those that are awake."""
        everyone = taken
        if self._masks is not None:
            awake = self._masks.awake(frame)
            taken, everyone = taken & awake, taken | ~awake
        some = np.asarray(taken.any(axis=2, keepdims=True))
        torn = np.broadcast_to(some & ~everyone.all(axis=2, keepdims=True), (*frame.shape[:2], 1))
        torn = torn if active is None else torn & active
        if torn.any():
            barriers.report_torn(self._lanes, torn, taken)
        return some

    def _split(self, path: DivergentPath, frame: Frame, block: PreparedBlock, taken: Array) -> int | None:
        """Some lanes follow the flow, the others fall through: two paths from here."""
        batch, instruction = self._batch, _instruction(block)
        whole = batch.full_mask(frame, taken)
        rest = (batch.alive if path.mask is None else path.mask) & ~whole
        parted = (whole.any(axis=2) & rest.any(axis=2)).sum()
        self._count_parted(parted)
        flow = instruction.flow
        if parted and isinstance(flow, Branch) and flow.uniform:
            barriers.report_split(batch, whole, instruction)
        batch.paths.append(DivergentPath(path.block + 1, rest, path.stack))
        if isinstance(flow, Branch):
            batch.paths.append(DivergentPath(self._block_at[flow.target], whole, path.stack))
            return None
        part = DivergentPath(path.block, whole, path.stack)
        following = self._go(part, frame, block)
        if following is not None:
            part.block = following
            batch.paths.append(part)
        return None

    # --- where to ------------------------------------------------------------------------------------------------------

    def _go(self, path: DivergentPath, frame: Frame, block: PreparedBlock) -> int | None:
        """All of the path's threads follow the flow."""
        flow = _instruction(block).flow
        if isinstance(flow, Branch):
            return self._block_at[flow.target]
        if isinstance(flow, BranchTable):
            return self._table(path, frame, block, flow)
        if isinstance(flow, Jump):
            return self._jump(path, frame, block)
        if isinstance(flow, Call):
            if len(path.stack) >= DEEPEST_CALL:
                self._lanes.trap(f"calls are nested more than {DEEPEST_CALL} deep")
            path.stack = (*path.stack, path.block + 1)
            return self._block_at[flow.target]
        if isinstance(flow, Barrier):
            return self._waiting.arrive(path, frame, block, flow)
        if isinstance(flow, Meeting):
            return self._waiting.gathering.arrive(path, _instruction(block), flow)
        if isinstance(flow, Await):
            return self._waiting.holding.hold(path, frame, block)
        if not isinstance(flow, Exit) and path.stack:
            following = path.stack[-1]
            path.stack = path.stack[:-1]
            return following
        self.end(path)
        return None

    def _table(self, path: DivergentPath, frame: Frame, block: PreparedBlock, flow: BranchTable) -> int | None:
        mask = self._batch.mask_of(path)
        values = self._batch.spread(frame, frame.registers[block.flow_sources[0]])
        self._require(block, mask & (values >= len(flow.targets)), lambda where: (
            f"branch index {values[where]} of a table of {len(flow.targets)}"
        ))
        return self._part(path, mask, values, {index: self._block_at[target] for index, target in enumerate(flow.targets)})

    def _jump(self, path: DivergentPath, frame: Frame, block: PreparedBlock) -> int | None:
        poison = frame.poison[block.address]
        if poison is not None:
            self._lanes.report_undefined("the address of the jump", nonzero(poison))
        mask = self._batch.mask_of(path)
        values = self._batch.spread(frame, frame.registers[block.address])
        base, blocks = self._code
        known = {base + offset: target for offset, target in blocks.items()}
        wild = [value for value in np.unique(values[mask]).tolist() if value not in known]
        self._require(block, mask & np.isin(values, np.array(wild, dtype=np.uint64)), lambda where: (
            f"a jump to the address {int(values[where]):#x}, where the program has no instruction"
        ))
        return self._part(path, mask, values, known)

    def _require(self, block: PreparedBlock, wild: Array, message: Callable[[tuple[int, int, int]], str]) -> None:
        """Nobody may go to nowhere."""
        if not wild.any():
            return
        a, b, lane = first_true(wild)
        self._batch.launch.diagnostics.reporter.add(
            "bounds", "TFW0814", message((a, b, lane)), block.flow, where=(self._batch.workgroup(a), b, lane), count=int(wild.sum())
        )
        raise LaunchStopped

    def _part(self, path: DivergentPath, mask: Array, values: Array, targets: Mapping[int, int]) -> int | None:
        """Everybody goes to the block of their value: the block when that is one, else a path for each."""
        choices = np.unique(values[mask]).tolist()
        if len(choices) == 1:
            return targets[choices[0]]
        ways = np.stack([(mask & (values == choice)).any(axis=2) for choice in choices])
        self._count_parted((ways.sum(axis=0) > 1).sum())
        for choice in choices:
            self._batch.paths.append(DivergentPath(targets[choice], mask & (values == choice), path.stack))
        return None

    def _count_parted(self, waves: Array) -> None:
        """Waves whose lanes part at a branch; paths of whole waves part for the order of execution only, and do not count."""
        if waves:
            self._lanes.counters.add("divergent_branches", int(waves))


def _instruction(block: PreparedBlock) -> Instruction:
    """The instruction that decides what comes after a block that has one."""
    assert block.flow is not None
    return block.flow
