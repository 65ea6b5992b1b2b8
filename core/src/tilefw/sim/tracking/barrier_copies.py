"""Whether a program starts copies by engines that complete on barriers: who waits there learns of the copy, and of nothing that the
wave which started it has done since. So the engines of a workgroup are one more agent beside its waves."""

from __future__ import annotations

from tilefw.sim.algebra.recording import RecordingLanes
from tilefw.sim.program import Instruction, Program

_COPIES = frozenset({"engine_copy", "engine_box"})


def completes_on_barriers(program: Program) -> bool:
    """Whether some instruction starts a copy by an engine that a barrier completes."""
    lanes = RecordingLanes()
    return any(_starts_one(lanes, instruction) for instruction in program.instructions)


def _starts_one(lanes: RecordingLanes, instruction: Instruction) -> bool:
    if instruction.meaning is None or instruction.destinations or instruction.flow is not None:
        return False
    lanes.steps.clear()
    instruction.meaning(lanes, *(lanes.symbol(source.bits) for source in instruction.sources))
    return any(step.name in _COPIES and dict(step.keywords).get("barrier") is not None for step in lanes.steps)
