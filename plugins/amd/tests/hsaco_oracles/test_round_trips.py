"""Triton's code objects as text and back: our disassembly assembles to the same code, and so does Triton's own assembly."""

from __future__ import annotations

import pytest
from served import assemble, disassemble, read

from hsaco_oracles.test_triton_hsaco import TRITON, item_of
from oracles.case import Case
from tilefw_amd.code_object import CodeObject

CASES = [pytest.param(case, id=case.name) for case in TRITON.cases()]


def _loaded(found: CodeObject) -> dict[str, bytes]:
    """What stands in memory, by section, but for what depends on where other sections stand."""
    return {s.name: s.data for s in found.elf.sections if s.name in (".text", ".data")}


def _same_code(ours: CodeObject, theirs: CodeObject) -> None:
    assert _loaded(ours) == _loaded(theirs)
    assert ours.document == theirs.document
    for one, other in zip(ours.kernels, theirs.kernels, strict=True):
        assert (one.name, one.size, one.metadata) == (other.name, other.size, other.metadata)
        assert {**one.descriptor, "entry_offset": 0} == {**other.descriptor, "entry_offset": 0}


@pytest.mark.parametrize("case", CASES)
def test_disassembly_assembles_to_the_same_code(case: Case) -> None:
    item = item_of(case)
    assert isinstance(item.code, bytes)
    text = disassemble(item.code, "theirs.hsaco")
    _same_code(read(assemble(text, "theirs.s"), "ours"), read(item.code, "theirs"))


@pytest.mark.parametrize("case", CASES)
def test_their_assembly_makes_their_code(case: Case) -> None:
    item = item_of(case)
    assert isinstance(item.code, bytes)
    _same_code(read(assemble(item.text, "theirs.s"), "ours"), read(item.code, "theirs"))
