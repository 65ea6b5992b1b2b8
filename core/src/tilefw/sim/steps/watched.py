"""A step that shows its instruction to the checks that observe steps: what it read, and what its registers hold then."""

from __future__ import annotations

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.engine.frame import Frame
from tilefw.sim.program import Instruction
from tilefw.sim.steps.careful import Step


def watched(step: Step, instruction: Instruction, sources: tuple[int, ...], destinations: tuple[int, ...]) -> Step:
    """`sources` and `destinations` are slots. Registers are never written in place, so that values read before stay."""

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        registers = frame.registers
        read = tuple(registers[slot] for slot in sources)
        mask = lanes.mask
        step(lanes, frame)
        after, lanes.mask = lanes.mask, mask  # an instruction that changes the mask has acted by the one before
        results = tuple(registers[slot] for slot in destinations)
        for observe in lanes.observers.step:
            observe(lanes, instruction, read, results)
        lanes.mask = after

    return whole
