"""Triton's code objects as text and back: our disassembly assembles to the same code, and so does Triton's own assembly."""

from __future__ import annotations

from functools import partial

import pytest

from hsaco_oracles.test_triton_hsaco import TRITON, item_of
from oracles.case import Case
from oracles.chips import AMD, Chip
from tilefw_amd import code_object
from tilefw_amd.assembler.assemble import assemble
from tilefw_amd.assembler.disassemble import disassemble
from tilefw_amd.chips import named
from tilefw_amd.code_object import CodeObject
from tilefw_amd.isa.set import InstructionSet, instruction_set

CASES = [pytest.param(chip, case, id=f"{chip.triton[1]}-{case.name}") for chip in AMD for case in TRITON[chip].cases()]


def isa_of(chip: Chip) -> InstructionSet:
    return instruction_set(named(str(chip.triton[1])))


def _loaded(found: CodeObject) -> dict[str, bytes]:
    """What stands in memory, by section, but for what depends on where other sections stand."""
    return {s.name: s.data for s in found.elf.sections if s.name in (".text", ".data")}


def _same_code(ours: CodeObject, theirs: CodeObject) -> None:
    assert _loaded(ours) == _loaded(theirs)
    assert ours.document == theirs.document
    for one, other in zip(ours.kernels, theirs.kernels, strict=True):
        assert (one.name, one.size, one.metadata) == (other.name, other.size, other.metadata)
        assert {**one.descriptor, "entry_offset": 0} == {**other.descriptor, "entry_offset": 0}


@pytest.mark.parametrize(("chip", "case"), CASES)
def test_disassembly_assembles_to_the_same_code(chip: Chip, case: Case) -> None:
    item, isa = item_of(chip, case), isa_of(chip)
    assert isinstance(item.code, bytes)
    read = partial(code_object.read, chip=isa.chip)
    text = disassemble(isa, item.code, "theirs.hsaco")
    _same_code(read(assemble(isa, text, "theirs.s"), "ours"), read(item.code, "theirs"))


@pytest.mark.parametrize(("chip", "case"), CASES)
def test_their_assembly_makes_their_code(chip: Chip, case: Case) -> None:
    item, isa = item_of(chip, case), isa_of(chip)
    assert isinstance(item.code, bytes)
    read = partial(code_object.read, chip=isa.chip)
    _same_code(read(assemble(isa, item.text, "theirs.s"), "ours"), read(item.code, "theirs"))
