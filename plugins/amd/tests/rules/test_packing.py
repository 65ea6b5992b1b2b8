"""Bytes and halves of registers put together anew: every arrangement is right, and a transposition takes what it must."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from served import lanes_chip

from rules.one_row import Column, run_selected
from tilefw.api.machine import Function
from tilefw.api.simt import Code, Const, Element

_SOURCES = 4
_COUNT = 64


def _taken_apart(bits: int) -> tuple[Function, Code, list[Element], list[list[Element]]]:
    """Four packed registers, and the elements that selection takes from them."""
    function = Function("kernel", "amd-cdna3")
    code = Code(function, lanes_chip(True))
    registers: list[Element] = [code.new_register("w32") for _ in range(_SOURCES)]
    elements = []
    for register in registers:
        found = list(code.chip.unpack(code, bits, register, 32 // bits))
        code.parts.update(((e, bits), (register, i)) for i, e in enumerate(found))  # type: ignore[misc]
        elements.append(found)
    return function, code, registers, elements


def _arrangements(bits: int) -> list[list[tuple[int, int]]]:
    """Registers and places for each element: pairs and whole registers, in order, transposed and at random."""
    per, random = 32 // bits, np.random.default_rng(bits)
    found = [[(0, i) for i in range(per)], [(i % _SOURCES, 0) for i in range(per)], [(1, i) for i in reversed(range(per))]]
    for count in range(2, per + 1):
        found += [[(int(random.integers(_SOURCES)), int(random.integers(per))) for _ in range(count)] for _ in range(8)]
    return found


@pytest.mark.parametrize(("bits", "chosen"), [(b, a) for b in (8, 16) for a in _arrangements(b)])
def test_an_arrangement_is_right(bits: int, chosen: Sequence[tuple[int, int]]) -> None:
    function, code, registers, elements = _taken_apart(bits)
    given = [np.random.default_rng(r).integers(1 << 32, size=_COUNT, dtype=np.uint64) for r in range(_SOURCES)]
    packed = code.chip.pack(code, bits, [elements[r][i] for r, i in chosen])
    found = run_selected(function, registers, packed, "i32", [Column("i32", g) for g in given])
    mask = (1 << bits * len(chosen)) - 1
    one = np.uint64((1 << bits) - 1)
    expected = sum((given[r] >> np.uint64(bits * i) & one) << np.uint64(bits * k) for k, (r, i) in enumerate(chosen))
    np.testing.assert_array_equal(found & np.uint64(mask), expected)


@pytest.mark.parametrize(("bits", "taken"), [(8, 8), (16, 4)])
def test_a_transposition_takes_only_permutations(bits: int, taken: int) -> None:
    """4x4 bytes in 8, and two times 2x2 halves in 4: as few as there are with two sources each."""
    _, code, _, elements = _taken_apart(bits)
    per = 32 // bits
    groups = [elements[first : first + per] for first in range(0, _SOURCES, per)]
    made = [code.chip.pack(code, bits, column) for group in groups for column in zip(*group, strict=True)]
    assert _needed(code, made) == ["v_perm_b32"] * taken


def _needed(code: Code, elements: Sequence[Element]) -> list[str]:
    """The opcodes of the vector instructions behind these elements."""
    defined = {d: inst for block in code.function.blocks for inst in block.insts for d in inst.defs}
    needed: dict[object, str] = {}
    pending: list[object] = list(elements)
    while pending:
        inst = defined.get(pending.pop())  # type: ignore[arg-type]
        if inst is not None:
            needed[inst] = inst.opcode
            pending += inst.uses
    return [opcode for opcode in needed.values() if opcode.startswith("v_")]


def test_two_bytes_of_constants_are_a_constant() -> None:
    _, code, *_ = _taken_apart(8)
    assert code.chip.pack(code, 8, [Const("i8", 1), Const("i8", 2)]) == Const("packed", 0x201)
