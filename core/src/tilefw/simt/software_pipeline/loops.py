"""Software pipelining: loads of a loop are issued some iterations early, into rings of shared slots or into registers.

With S stages the copies of iteration i + S - 1 are issued in iteration i, into the slot that iteration i - 1 has read:

    for s in 0 … S-2: copies of iteration s into slot s, when there is such an iteration; commit
    for i …:          wait S-2                  (the copies of iteration i have landed: the one barrier is here)
                      copies of iteration i+S-1, when there is one; commit
                      the body, which reads slot i mod S

Each iteration commits one group, with copies in it or not, so that one counted wait is right to the end. Carried values that
addresses need run ahead too, as values of their own; uses that are then dead are erased.

Where copies are made whether an iteration wants them or not (`ChipDescription.copies_consecutive`), the last S - 1 iterations are
peeled into epilogues.

Without asynchronous copies the loads of iteration i + 1 are issued at the top of iteration i and stored at its end, into the one
slot there is (with a barrier before that) or, with S > 2, into the other one. The last iteration, which loads nothing, is then
peeled into an epilogue.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec

from tilefw.api.remark import Remark
from tilefw.passes.dce import erase_dead
from tilefw.simt.assign.accesses import Accesses
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.facts import LaneFacts
from tilefw.simt.lower import remarks
from tilefw.simt.roles.handed_over import hand_over, wants_roles, why_not
from tilefw.simt.roles.paying import pays
from tilefw.simt.software_pipeline.emitter import Emitter
from tilefw.simt.software_pipeline.epilogue import Epilogue, peeled_iterations
from tilefw.simt.software_pipeline.loop_frame import LoopFrame, carrying
from tilefw.simt.software_pipeline.operand_staging import operands_of, stage
from tilefw.simt.software_pipeline.plan import STAGES, Plan, PrefetchStorage, candidates, matrices, plan, stages_of, stored
from tilefw.simt.software_pipeline.prefetch import AsyncCopies, LoadedRegisters, PrefetchedLoads, StagedStores, next_slot
from tilefw.tile import types
from tilefw.tile.dialect.shared_ops import WaitOp
from tilefw.tile.nested_ops import nested_of
from tilefw.tile.text.source_location import place_of

_KINDS: dict[PrefetchStorage, type[PrefetchedLoads]] = {
    PrefetchStorage.COPIES: AsyncCopies, PrefetchStorage.STORES: StagedStores, PrefetchStorage.REGISTERS: LoadedRegisters
}


@dataclass(frozen=True)
class PipelineLoops(ModulePass):
    """Pipelines the innermost loops with loads for dots, and those that their author marked, at `num_stages` or the mark's.

    Matrices that dots read have a place of their own in shared memory where nothing of the loop is loaded early, or where a
    pipeline's loads would be stored to it.

    `most_stages`: what shared memory holds of them, for marked loops too.
    """

    machine: LaneMachine
    num_stages: int
    most_stages: int | None = None
    name = "pipeline-loops"

    @classmethod
    def from_pass_spec(cls, spec: ArgSpec) -> PipelineLoops:
        """The pass of a textual pipeline, `pipeline-loops{num_stages=3 copies=1 disjoint=0}`, for a plain chip."""
        given = {name.replace("-", "_"): values for name, values in spec.parameters.items()}
        numbers = {"num_stages": 3, "copies": 1, "disjoint": 0, "shared_bytes": 1 << 16}
        for name, values in given.items():
            if name not in numbers or len(values) != 1 or not isinstance(values[0], int):
                raise ValueError(f"pipeline-loops has the whole numbers {', '.join(numbers)} as options, got {name}")
            numbers[name] = values[0]
        copies = (4, 8, 16) if numbers["copies"] else ()
        chip = ChipDescription("plain", 32, 64, 16, shared_bytes=numbers["shared_bytes"], copy_bytes=copies)
        return cls(LaneMachine(chip, 4, disjoint=bool(numbers["disjoint"])), numbers["num_stages"])

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp)]:
            self._function(function)

    def _function(self, function: FuncOp) -> None:
        loops = [loop for loop in nested_of(function, ForOp) if candidates(loop)]
        if not loops:
            return
        accesses = Accesses(self.machine, LaneFacts(function, self.machine))
        plans = [(loop, plan(loop, self._stages(loop), accesses, self.machine.disjoint)) for loop in loops]
        copying = [loop for loop, found in plans if any(chain.storage is PrefetchStorage.COPIES for chain in found)]
        for loop, found in plans:
            early = {load for chain in found for load in chain.loads}
            rest = operands_of(loop, [load for load in candidates(loop) if load not in early])
            # What copies cannot make is narrow: beside rings, 128x64 elements of rows that begin anywhere then spilled 656 bytes.
            late = stored(rest, accesses) if found else matrices(rest, accesses)
            if late:
                stage(loop, late, self.machine)
            wanted = wants_roles(loop)
            if wanted or pays(loop, found, accesses):
                problem = why_not(function, loop, found, accesses, copying)
                if problem is None:
                    hand_over(loop, found[0])
                    continue
                if wanted:
                    remarks.add(function, _without_roles(loop, problem))
            if found:
                _rewrite(loop, found, self.machine.chip)
        while erase_dead(function):
            pass

    def _stages(self, loop: ForOp) -> int:
        wanted = stages_of(loop, self.num_stages)
        return wanted if self.most_stages is None else min(wanted, self.most_stages)


def _without_roles(loop: ForOp, problem: str) -> Remark:
    return Remark(
        "TFW0627", f"this loop is not divided among groups of warps: {problem}", "without roles it is pipelined as other loops are",
        place_of(loop, with_text=False),
    )


def most_stages(module: ModuleOp, default: int) -> int:
    """The most stages that a loop with loads worth issuing early is wanted to have; 0 where there is no such loop."""
    wanted = [stages_of(loop, default) for loop in nested_of(module, ForOp) if candidates(loop)]
    return max(wanted, default=0)


def _rewrite(loop: ForOp, plan: Plan, chip: ChipDescription) -> None:
    """Prologue, steady loop, epilogues, and the loop op that carries what iterations hand on."""
    peeled = peeled_iterations(plan, chip.copies_consecutive)
    slot = None
    if peeled and plan[0].storage is PrefetchStorage.COPIES and plan[0].slots > 1:
        loop, slot = _with_slot(loop, plan[0].slots)
    frame = LoopFrame(loop, [Epilogue(loop, following) for following in reversed(range(peeled))], slot)
    parts = [_KINDS[chain.storage](frame, chain) for chain in plan]
    for part in parts:
        part.prologue()
    for part in parts:
        part.steady_state()
    for part in parts:
        part.use()
    # The last copies, which the last iteration reads; after this wait their buffers are known to be free for others.
    taken = {load: part.in_epilogue for part in parts for load in part.chain.loads}
    frame.close(frozenset({STAGES}), taken, *(WaitOp(0) for part in parts if isinstance(part, AsyncCopies)))


def _with_slot(loop: ForOp, count: int) -> tuple[ForOp, SSAValue]:
    """The loop with the slot of an iteration's loads among what it carries, so that peeled iterations know theirs."""
    zero = Emitter(loop).constant(0, types.i32)
    new, (slot,) = carrying(loop, {"read_slot": zero})
    end = new.body.block.last_op
    assert end is not None
    end.operands = [*end.operands, next_slot(Emitter(end, Emitter(new)), slot, zero, count)]
    return new, slot
