"""The careful way through one instruction: under a guard, in some lanes only, or with undefined bits among its operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilefw.sim.algebra.integer import constant
from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.algebra.shadow import Shadowed, nonzero
from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import Array
from tilefw.sim.program import Instruction

Step = Callable[[NumpyLanes, Frame], None]


def write_register(frame: Frame, slot: int, value: Array, poison: Array | None, merge: Array | None) -> None:
    """Put a result into a register, in the lanes of `merge` (None: all)."""
    if poison is not None and not np.ascontiguousarray(poison).view(np.uint8).any():
        poison = None
    if merge is None:
        frame.registers[slot], frame.poison[slot] = value, poison
        return
    old, old_poison = frame.registers[slot], frame.poison[slot]
    frame.registers[slot] = np.where(merge, value, old)
    if poison is None and old_poison is None:
        return
    zero = np.zeros((1, 1, 1), dtype=old.dtype)
    mixed = np.where(merge, zero if poison is None else poison, zero if old_poison is None else old_poison)
    frame.poison[slot] = mixed if np.ascontiguousarray(mixed).view(np.uint8).any() else None


def slow_step(
    instruction: Instruction, sources: tuple[int, ...], destinations: tuple[int, ...], for_wave: tuple[bool, ...]
) -> Step:
    """The instruction with any frame, any mask and any poison; the fast closure hands over to it before it has had effects.

    `for_wave` marks destinations that hold one value for the wave.
    """
    meaning = instruction.meaning
    assert meaning is not None

    def step(lanes: NumpyLanes, frame: Frame) -> None:
        registers, poison = frame.registers, frame.poison
        lanes.instruction = instruction
        if lanes.tainted or any(poison[s] is not None for s in sources):
            # A load that found poison is repeated for it: its access was counted and checked already.
            lanes.quiet = lanes.tainted
            values = [Shadowed(registers[s], _poison_of(frame, s)) for s in sources]
            results = meaning(lanes.shadow, *values)
            lanes.quiet = False
            lanes.tainted = False
        else:
            results = meaning(lanes, *(registers[s] for s in sources))
            if lanes.tainted:
                step(lanes, frame)
                return
        if not destinations:
            return
        if len(destinations) == 1 and not isinstance(results, tuple):
            results = (results,)
        for slot, result, whole in zip(destinations, results, for_wave, strict=True):
            merge = frame.wave_merge if whole else frame.merge
            if isinstance(result, Shadowed):
                write_register(frame, slot, result.bits, result.poison, merge)
            else:
                write_register(frame, slot, result, None, merge)

    return step


def _poison_of(frame: Frame, slot: int) -> Array:
    poison = frame.poison[slot]
    return np.zeros((1, 1, 1), dtype=frame.registers[slot].dtype) if poison is None else poison


def guarded(step: Step, instruction: Instruction, always: bool) -> Step:
    """A step that acts where its predicate holds; `always`: it has results for the wave, which no lane needs to act for."""
    assert instruction.guard is not None
    register, negated = instruction.guard.register.index, instruction.guard.negated
    everyone, nobody = constant(not negated, 1), constant(0, 1)

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        predicate = frame.registers[register]
        poison = frame.poison[register]
        if poison is not None:
            lanes.instruction = instruction
            lanes.report_undefined("the guard", nonzero(poison))
        elif predicate is everyone:
            step(lanes, frame)
            return
        acting = ~predicate if negated else predicate
        if acting.size == 1:
            if acting.flat[0]:
                step(lanes, frame)
                return
            acting = nobody
        elif frame.active is not None:
            acting = acting & frame.active
        elif acting.all():
            step(lanes, frame)
            return
        if not always and not acting.any():
            return
        merge, mask = frame.merge, lanes.mask
        frame.merge = lanes.mask = acting
        step(lanes, frame)
        frame.merge, lanes.mask = merge, mask

    return whole


def once_a_wave(step: Step) -> Step:
    """A step that sees one lane a wave."""

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        lanes.frame = frame.view
        step(lanes, frame.view)
        lanes.frame = frame

    return whole
