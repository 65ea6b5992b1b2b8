"""Which machine files the compiler has stages for: what each stage and the instruction words ask of a machine's numbers.

Every stage takes its numbers from the machine that it is given. What remains are relations that an algorithm needs and the widths
of fields; a machine that breaks one is refused with the rule and the stage that has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilefw.api import CompileError
from tilefw_spatial.machine import Machine

WORDS = "the instruction words"
ADDRESSES = 1 << 13


@dataclass(frozen=True, slots=True)
class MachineRule:
    """What `stage` asks of a machine; `shown` are the machine's numbers that it is about."""

    stage: str
    text: str
    holds: Callable[[Machine], bool]
    shown: Callable[[Machine], str]


def _most(name: str, most: int, field: str) -> MachineRule:
    return MachineRule(
        WORDS, f"{name} up to {most} ({field})", lambda m: 0 < getattr(m, name) <= most, lambda m: str(getattr(m, name))
    )


def _exactly(stage: str, name: str, value: int, why: str) -> MachineRule:
    return MachineRule(stage, f"{name} = {value} ({why})", lambda m: getattr(m, name) == value, lambda m: str(getattr(m, name)))


RULES = (
    _most("lanes", 320, "the fields `depth` of MAC and `by` of LSH"),
    _most("superlanes", 20, "the field of CFG.vl"),
    _most("alus", 16, "four bits of an operand"),
    _most("delay_steps", 4, "two bits of an operand"),
    _most("rows", 4096, "the longest burst within a bank"),
    MachineRule(WORDS, f"banks · rows up to {ADDRESSES} (bits of an address)",
                lambda m: m.banks * m.rows <= ADDRESSES, lambda m: str(m.banks * m.rows)),
    MachineRule(WORDS, f"accumulator_banks · accumulator_rows up to {ADDRESSES} (bits of an address)",
                lambda m: m.accumulator_banks * m.accumulator_rows <= ADDRESSES,
                lambda m: str(m.accumulator_banks * m.accumulator_rows)),
    _most("accumulator_rows", 4096, "the burst of a product"),
    _exactly(WORDS, "streams", 32, "six bits name a stream and its direction"),
    _exactly(WORDS, "weight_streams", 16, "the operand of LW"),
    _exactly(WORDS, "weight_buffers", 2, "one bit names a buffer"),
    _exactly(WORDS, "planes", 2, "types wider than a byte take a pair"),
    _exactly(WORDS, "switch_streams", 16, "the operands of TRN"),
    _exactly(WORDS, "superlane_lanes", 16, "TRN transposes within a superlane"),
    MachineRule(
        "arrange", "columns = lanes: a product's row is one vector", lambda m: m.columns == m.lanes, lambda m: str(m.columns)
    ),
    MachineRule("arrange", "depth_int8 = lanes: a vector has the rows of K that one plane multiplies",
                lambda m: m.depth_int8 == m.lanes, lambda m: str(m.depth_int8)),
    MachineRule("arrange", "2 · depth_pair = lanes: a vector has the rows of K of two halves",
                lambda m: 2 * m.depth_pair == m.lanes, lambda m: str(m.depth_pair)),
    MachineRule("chain", "delays.alu = delay_step: a MOV hands a value on within one step",
                lambda m: m.delays["alu"] == m.delay_step, lambda m: str(m.delays["alu"])),
    MachineRule("chain", "delays.transcendental a multiple of delay_step: operands are taken in such steps",
                lambda m: m.delays["transcendental"] % m.delay_step == 0, lambda m: str(m.delays["transcendental"])),
    *(MachineRule("the units across superlanes",
                  f"delays.{name} at least superlanes: what the last superlane has comes so much later",
                  lambda m, name=name: m.delays[name] >= m.superlanes, lambda m, name=name: str(m.delays[name]))
      for name in ("multiply_pair", "multiply_int8", "switch_across")),
    _exactly("schedule", "position_cycles", 1, "times along the chip count in positions"),
)


def check_machine(machine: Machine) -> None:
    """Raises CompileError TFW0739 with every rule that the machine breaks, each with its stage."""
    broken = [rule for rule in RULES if not rule.holds(machine)]
    if broken:
        what = "; ".join(f"{rule.stage} needs {rule.text}, not {rule.shown(machine)}" for rule in broken)
        raise CompileError(f"machine {machine.name} cannot be compiled for: {what}", code="TFW0739")
