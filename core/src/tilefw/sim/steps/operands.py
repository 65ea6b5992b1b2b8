"""Operands that are not one register: special registers, and values whose bits stand in several registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.engine.frame import Frame
from tilefw.sim.program import Registers, Special
from tilefw.sim.steps.careful import Step

Placed = tuple[int, Any]
"""(slot that the value gets, operand)."""


def fetch(before: Sequence[Placed]) -> Step:
    """A step that brings operands to their slots."""

    def step(lanes: NumpyLanes, frame: Frame) -> None:
        for slot, operand in before:
            if isinstance(operand, Special):
                frame.registers[slot], frame.poison[slot] = operand.meaning(lanes), None
            else:
                _join_registers(lanes, frame, slot, operand)

    return step


def around(step: Step, before: Sequence[Placed], after: Sequence[Placed]) -> Step:
    """A step whose operands are first fetched, and whose results in several registers are then taken apart."""
    fetching = fetch(before)

    def whole(lanes: NumpyLanes, frame: Frame) -> None:
        fetching(lanes, frame)
        if frame.merge is not None:
            # Lanes that do not act keep what the parts hold.
            for slot, operand in after:
                _join_registers(lanes, frame, slot, operand)
        step(lanes, frame)
        for slot, operand in after:
            _split_registers(lanes, frame, slot, operand)

    return whole


def _join_registers(lanes: NumpyLanes, frame: Frame, slot: int, operand: Registers) -> None:
    parts = [frame.registers[p.index] for p in operand.parts]
    marks = [frame.poison[p.index] for p in operand.parts]
    frame.registers[slot], frame.poison[slot] = lanes.join(parts), None
    if any(mark is not None for mark in marks):
        clean = [np.zeros((1, 1, 1), dtype=p.dtype) if m is None else m for p, m in zip(parts, marks, strict=True)]
        frame.poison[slot] = lanes.join(clean)


def _split_registers(lanes: NumpyLanes, frame: Frame, slot: int, operand: Registers) -> None:
    bits = operand.parts[0].bits
    values = lanes.split(frame.registers[slot], bits)
    mark = frame.poison[slot]
    marks = [None] * len(values) if mark is None else lanes.split(mark, bits)
    for part, value, undefined in zip(operand.parts, values, marks, strict=True):
        frame.registers[part.index] = value
        frame.poison[part.index] = undefined
