"""One instruction from its text to its effect on registers: parsed, bound as a program would have it, executed in one wave."""

from __future__ import annotations

import numpy as np
from served import parse

from cdna3.lanes import WAVE, lanes
from tilefw.api.sim import Immediate, Register
from tilefw_amd.isa.meaning.binding import Site, bind
from tilefw_amd.isa.row import Mode

State = dict[int, np.ndarray]
"""Register number (`registers.number`) to 64 words."""


def execute(text: str, state: State, mode: Mode | None = None) -> State:
    """The registers after it."""
    instruction = bind(parse(text), mode or Mode(), Site(0), text)
    assert instruction.meaning is not None
    machine = lanes()
    values = []
    for source in instruction.sources:
        if isinstance(source, Immediate):
            values.append(machine.const(source.value, source.bits))
        else:
            assert isinstance(source, Register)
            values.append(state[source.index].reshape(1, 1, WAVE))
    with np.errstate(all="ignore"):
        results = instruction.meaning(machine, *values)
    found = dict(state)
    results = results if isinstance(results, tuple) else (results,)
    for destination, result in zip(instruction.destinations, results, strict=True):
        assert isinstance(destination, Register)
        found[destination.index] = np.broadcast_to(result, (1, 1, WAVE)).reshape(WAVE)
    return found
