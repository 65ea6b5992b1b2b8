"""A step with what is done around it: waits and events that are counted, and checks that are shown what it read and left."""

from __future__ import annotations

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.engine.frame import Frame
from tilefw.sim.program import Instruction
from tilefw.sim.steps.careful import Step
from tilefw.sim.tracking.queues import Kind


def counted(step: Step, instruction: Instruction, kinds: tuple[Kind, ...]) -> Step:
    """The step, with its waits before it and its events begun; the step itself where none of them is of the counted kinds."""
    begun = [(i.queue, i.order) for i in instruction.issues if (i.queue, i.order) in kinds]
    limits = {} if instruction.waits is None else dict(instruction.waits.limits)
    waited = [(kind, limits[kind[0]]) for kind in kinds if kind[0] in limits and (kind[1] or not limits[kind[0]])]
    closed = [kind for kind in kinds if kind[0] in instruction.commits]
    if not begun and not waited and not closed:
        return step

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        events = lanes.batch.events
        if events.watching:
            lanes.instruction = instruction
            for kind, left in waited:
                lanes.land(kind, events.wait(frame, kind, left))
            events.begin(frame, begun)
            events.close(frame, closed)
        step(lanes, frame)

    return whole


def watched(step: Step, instruction: Instruction, sources: tuple[int, ...], destinations: tuple[int, ...]) -> Step:
    """The step, shown to the checks that observe steps: what it read, and what its registers hold then.

    `sources` and `destinations` are slots. Registers are never written in place, so that values read before stay.
    """

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
