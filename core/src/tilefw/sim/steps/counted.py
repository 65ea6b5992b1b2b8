"""A step whose waits and events are counted: waits take effect before it, and its events begin."""

from __future__ import annotations

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.engine.frame import Frame
from tilefw.sim.program import Instruction
from tilefw.sim.steps.careful import Step
from tilefw.sim.tracking.queues import Kind


def counted(step: Step, instruction: Instruction, kinds: tuple[Kind, ...]) -> Step:
    """The step itself where none of its events and waits is of the counted kinds."""
    begun = [(i.queue, i.order) for i in instruction.issues if (i.queue, i.order) in kinds]
    limits = {} if instruction.waits is None else dict(instruction.waits.limits)
    waited = [(kind, limits[kind[0]]) for kind in kinds if kind[0] in limits and (kind[1] or not limits[kind[0]])]
    if not begun and not waited:
        return step

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        events = lanes.batch.events
        if events.watching:
            lanes.instruction = instruction
            for kind, left in waited:
                lanes.land(kind, events.wait(frame, kind, left))
            events.begin(frame, begun)
        step(lanes, frame)

    return whole
