"""Numbers of the machine that stages take as they are in the packaged file: a machine with others there is refused by name.

`arrange/` and `chain/` lay out vectors, weights and chains of ALUs without being told the machine, and words of instructions have
fields of fixed widths. What they think a load of weights costs only weighs ways against one another. Everything else, as delays of
memory, planes and switches, slices, rows of a bank, comes from the machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilefw.api import CompileError
from tilefw_spatial.machine import Machine, load

COUNTS = (
    "superlanes", "superlane_lanes", "streams", "planes", "columns", "depth_int8", "depth_pair", "weight_buffers", "weight_streams",
    "accumulator_banks", "accumulator_rows", "alus", "delay_step", "delay_steps", "position_cycles", "switch_streams",
)
DELAYS = ("alu", "transcendental")
MOST = {"slices": 44, "banks": 2, "rows": 4096}  # what queues' numbers and addresses of 13 bits can say


def check_machine(machine: Machine) -> None:
    """Raises CompileError TFW0739 for a machine that the compiler has no stages for."""
    other = list(_others(machine))
    if other:
        raise CompileError(f"the compiler takes as given that a machine has {', '.join(other)}", code="TFW0739")


def _others(machine: Machine) -> Iterator[str]:
    packaged = load()
    if machine is packaged:
        return
    for name in COUNTS:
        if getattr(machine, name) != getattr(packaged, name):
            yield f"{name} = {getattr(packaged, name)}, not {getattr(machine, name)}"
    for name in DELAYS:
        if machine.delays[name] != packaged.delays[name]:
            yield f"delays.{name} = {packaged.delays[name]}, not {machine.delays[name]}"
    for name, most in MOST.items():
        if getattr(machine, name) > most:
            yield f"{name} up to {most}, not {getattr(machine, name)}"
