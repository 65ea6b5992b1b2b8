"""The chips of the plugin for tests: those about all of them take `CHIPS`, those about one chip's documents the first.

What takes an instruction set is here with the first chip's, so that a test of text and bytes reads as they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

from tilefw.api import TargetInfo
from tilefw_amd import code_object
from tilefw_amd import emit as emitter
from tilefw_amd.assembler import assemble as assembler
from tilefw_amd.assembler import disassemble as disassembler
from tilefw_amd.chips import Chip, chips
from tilefw_amd.chips.targets import target
from tilefw_amd.isa.encoding import decode as decoder
from tilefw_amd.isa.set import InstructionSet, instruction_set
from tilefw_amd.isa.text import parser
from tilefw_amd.machine import machine_inst, verify, wait_states, waits
from tilefw_amd.machine.traits import instructions
from tilefw_amd.select.lanes import AmdLanes
from tilefw_amd.select.rules import rules, single

CHIPS: tuple[Chip, ...] = tuple(chips().values())
TARGETS: tuple[TargetInfo, ...] = tuple(map(target, CHIPS))


def on_each(values: Callable[[Chip], Iterable[Any]], name: Callable[[Any], str] = str, chips: Iterable[Chip] = CHIPS) -> list[Any]:
    """Parameters of a test, (chip, value) for each value that it has on each chip; ids are `gfx…-name`."""
    return [pytest.param(chip, value, id=f"{chip.name}-{name(value)}") for chip in chips for value in values(chip)]


ISAS: tuple[InstructionSet, ...] = tuple(map(instruction_set, CHIPS))


def having(name: str) -> Chip:
    """The first chip that has a row of that name."""
    return next(isa.chip for isa in ISAS if name in isa.rows)


def rules_of_its_own(chip: Chip) -> set[str]:
    """Row keys that a chip serves by another rule than the first chip, or that the first one has no rule for."""
    return {*single.rules(chip), *(rules(chip).keys() - rules(CHIP).keys())}


CHIP = CHIPS[0]
TARGET = TARGETS[0]
ISA = ISAS[0]
ROWS = ISA.rows
TABLE = instructions(ISA)
WAITS = waits.model(ISA)

lanes_chip = partial(AmdLanes, ISA)
decode = partial(decoder.decode, ISA)
decode_all = partial(decoder.decode_all, ISA)
parse = partial(parser.parse, ISA)
assemble = partial(assembler.assemble, ISA)
assemble_code = partial(assembler.assemble_code, ISA)
disassemble = partial(disassembler.disassemble, ISA)
emit = partial(emitter.emit, isa=ISA)
read = partial(code_object.read, chip=CHIP)
instruction = partial(machine_inst.instruction, ISA)
seen = partial(verify.seen, ISA)
wait_rules = partial(verify.rules, ISA)
wait_state_model = partial(wait_states.model, ISA)
