"""The atoms' layouts are the fragments of the instruction set, element by element, and their opcodes and sizes are its own."""

from __future__ import annotations

import pytest
from chips_here import CHIPS

from tilefw.api.sim import Fragment
from tilefw.api.simt import LinearLayout, MatrixAtom
from tilefw_nvidia.isa.meaning.fragments import OPERAND_COUNTS, SHAPES, MatrixShape, fragments
from tilefw_nvidia.isa.model import Modifiers
from tilefw_nvidia.isa.set import instruction_set
from tilefw_nvidia.select.matrix import FRAGMENT_LOADS, atoms

EVERY = [
    pytest.param(chip, atom, id=f"{chip.name}-{atom.name.removeprefix('mma.sync.aligned.')}")
    for chip in CHIPS
    for atom in atoms(chip)
]


def shape_of(atom: MatrixAtom) -> tuple[MatrixShape, Modifiers]:
    """The row of the simulator's table that an atom's opcode is, and the types written in it."""
    return next((shape, choice) for shape in SHAPES for choice in shape.types.each() if shape.opcode(choice) == atom.name)


def elements(fragment: Fragment) -> dict[tuple[int, int], tuple[int, int]]:
    """(lane, place of the element in the lane's registers) to (row, column), by the fragment's bit names."""
    inside = sum(1 for bit in fragment.rows + fragment.columns if bit[0] == "e")
    found = {}
    rows, columns = fragment.shape
    for row in range(rows):
        for column in range(columns):
            index = {"e": 0, "r": 0, "l": 0}
            for names, value in ((fragment.rows, row), (fragment.columns, column)):
                for i, name in enumerate(names):
                    index[name[0]] |= (value >> i & 1) << int(name[1:])
            found[index["l"], index["r"] << inside | index["e"]] = row, column
    return found


def described(layout: LinearLayout) -> dict[tuple[int, int], tuple[int, int]]:
    return {(lane, r): layout.coordinates(layout.element(r, lane)) for lane in range(32) for r in range(layout.registers)}


@pytest.mark.parametrize(("chip", "atom"), EVERY)
def test_layouts_are_the_fragments_element_by_element(chip, atom):
    shape, modifiers = shape_of(atom)
    a, b, c, d = fragments(shape, modifiers)
    assert (atom.m, atom.n, atom.k) == (shape.m, shape.n, shape.k)
    assert described(atom.a_layout) == elements(a)
    assert described(atom.b_layout) == elements(b)
    assert described(atom.d_layout) == elements(c) == elements(d)
    assert OPERAND_COUNTS[atom.name] == (shape.a, shape.b, shape.c)


@pytest.mark.parametrize(("chip", "atom"), EVERY)
def test_opcodes_are_of_the_chip(chip, atom):
    assert instruction_set(chip).opcode(atom.name).exists


def test_every_chip_multiplies_what_it_has_a_rate_for():
    for chip in CHIPS:
        elements = {shape_of(atom)[1].atype or shape_of(atom)[0].types.elements for atom in atoms(chip)}
        assert elements == set(chip.matrix_rates)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("crosswise", ["", ".trans"])
@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_fragment_loads_are_of_the_chip(chip, count, crosswise):
    (load,) = FRAGMENT_LOADS
    assert count <= load.most
    assert instruction_set(chip).opcode(f"ldmatrix.sync.aligned.m8n8.x{count}{crosswise}.shared.b16").exists
