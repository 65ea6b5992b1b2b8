"""The atoms' layouts are the fragments of the instruction set, element by element, and their opcodes and sizes are its own."""

from __future__ import annotations

import re

import pytest

from tilefw.api.sim import Fragment
from tilefw.api.simt import LinearLayout, MatrixAtom
from tilefw_nvidia.atoms import ATOMS, FRAGMENT_LOADS, GROUPS
from tilefw_nvidia.isa.fragments import SHAPES, Shape, fragments
from tilefw_nvidia.isa.row import Modifiers
from tilefw_nvidia.isa.table import opcode

BY_NAME = {f"{s.name}{re.sub('{.*?}', '', s.types.modifiers)}": s for s in SHAPES if s.types.elements != "s4"}


def shape_of(atom: MatrixAtom) -> tuple[Shape, Modifiers]:
    """The row of the simulator's table that an atom's opcode is, and the types written in it."""
    words = atom.name.removeprefix("mma.sync.aligned.").replace(".row.col", "")
    found = re.fullmatch(r"(m\d+n\d+k\d+)\.s32\.([su]8)\.([su]8)\.s32", words)
    if found is None:
        return BY_NAME[words], Modifiers({})
    return BY_NAME[f"{found[1]}.s32.atype.btype.s32"], Modifiers({}, atype=found[2], btype=found[3])


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


@pytest.mark.parametrize("atom", ATOMS, ids=lambda a: a.name.removeprefix("mma.sync.aligned."))
def test_layouts_are_the_fragments_element_by_element(atom):
    shape, modifiers = shape_of(atom)
    a, b, c, d = fragments(shape, modifiers)
    assert (atom.m, atom.n, atom.k) == (shape.m, shape.n, shape.k)
    assert described(atom.a_layout) == elements(a)
    assert described(atom.b_layout) == elements(b)
    assert described(atom.d_layout) == elements(c) == elements(d)
    assert GROUPS[atom.name] == (shape.a, shape.b, shape.c)


@pytest.mark.parametrize("atom", ATOMS, ids=lambda a: a.name.removeprefix("mma.sync.aligned."))
def test_opcodes_are_ptx_of_sm_80(atom):
    spec = opcode(atom.name)
    assert spec.exists and spec.sm <= 80


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("crosswise", ["", ".trans"])
def test_fragment_loads_are_ptx_of_sm_80(count, crosswise):
    (load,) = FRAGMENT_LOADS
    assert count <= load.most
    spec = opcode(f"ldmatrix.sync.aligned.m8n8.x{count}{crosswise}.shared.b16")
    assert spec.exists and spec.sm <= 80
