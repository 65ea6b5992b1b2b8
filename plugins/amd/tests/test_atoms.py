"""Every atom, its operands laid out as it says, multiplies as NumPy does when the meaning of its row runs on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from served import CHIP, CHIPS, on_each

from cdna3.lanes import WAVE, lanes, meaning, registers, stacked
from cdna3.matrices import numpy_types
from tilefw.api.simt import LinearLayout, MatrixAtom
from tilefw_amd.chips import Chip
from tilefw_amd.isa.meaning import formats
from tilefw_amd.isa.meaning.fragments import SHAPES
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.select.matrix import atoms

BY_NAME = {shape.name: shape for shape in (*SHAPES, *formats.SHAPES, *formats.SCALED_SHAPES)}
ONE = 127  # the code of the scale 2^0
SMALL = "f4E2M1FN"
SIX_BITS = (ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn)


def served(chip: Chip) -> tuple[MatrixAtom, ...]:
    return atoms(instruction_set(chip))


# Which chips multiply f32 that is taken for tf32.
TF32 = {"gfx942": {("f32", "f32", "tf32")}, "gfx950": set()}
ATOMS = on_each(served, lambda atom: atom.name)


def elements(layout: LinearLayout) -> np.ndarray:
    """The flat index that each register of each lane holds: [lanes, registers]."""
    return np.array([[layout.element(r, lane) for r in range(layout.registers)] for lane in range(WAVE)])


def words(layout: LinearLayout, matrix: np.ndarray) -> np.ndarray:
    """A matrix in the registers of one wave: 32-bit words [1, registers, lanes], small elements packed from the low end."""
    held = np.ascontiguousarray(matrix.reshape(-1)[elements(layout)])
    if matrix.dtype in SIX_BITS:
        bits = held.view(np.uint8)[..., None] >> np.arange(6, dtype=np.uint8) & 1
        held = np.packbits(bits.reshape(WAVE, -1), axis=1, bitorder="little")
    return held.view(np.uint32).reshape(WAVE, -1).T[None]


def pairs(matrix: np.ndarray, k: int) -> np.ndarray:
    """Elements of four bits by twos, neighbours along the axis `k`, the first in the low bits."""
    codes = np.moveaxis(matrix.view(np.uint8), k, -1)
    return np.ascontiguousarray(np.moveaxis(codes[..., 0::2] | codes[..., 1::2] << 4, -1, k))


def scale_words(layout: LinearLayout, codes: np.ndarray, byte: int) -> np.ndarray:
    """Scales in one byte of a register of each lane, whose others are anything."""
    held = codes.reshape(-1)[elements(layout)].astype(np.uint32)
    others = np.random.default_rng(5).integers(0, 1 << 32, held.shape, np.uint64).astype(np.uint32)
    word = others & ~np.uint32(0xFF << 8 * byte) | held << np.uint32(8 * byte)
    return word.reshape(1, WAVE)


def run(
    chip: Chip, atom: MatrixAtom, a: np.ndarray, b: np.ndarray, c: np.ndarray, scales: Sequence[np.ndarray] = ()
) -> np.ndarray:
    """d in the shape of c. The instruction's A is the atom's B, and so are the scales."""
    shape = BY_NAME[atom.name]
    operands: list[Any] = []
    for layout, matrix in ((atom.b_layout, b), (atom.a_layout, a), (atom.d_layout, c)):
        parts = registers(words(layout, matrix))
        operands.append(parts[0] if shape.a == "f32" and layout is not atom.d_layout else parts)
    modifiers: dict[str, Any] = {}
    if atom.scales is not None:
        operands += [scale_words(atom.scales.b_layout, scales[1], 2), scale_words(atom.scales.a_layout, scales[0], 1)]
        modifiers = {"op_sel": (0, 1), "op_sel_hi": (1, 0)}
    result = stacked(meaning(atom.name, chip=chip, **modifiers)(lanes(), *operands))
    result = np.ascontiguousarray(result[0].T, np.uint32).view(c.dtype)
    found = np.empty(c.size, c.dtype)
    found[elements(atom.d_layout)] = result
    return found.reshape(c.shape)


@pytest.mark.parametrize(("chip", "atom"), ATOMS)
def test_an_atom_multiplies_what_its_layouts_hold(chip: Chip, atom: MatrixAtom) -> None:
    shape, types, rng = BY_NAME[atom.name], numpy_types(chip), np.random.default_rng(3)
    a = rng.integers(-4, 5, (atom.m, atom.k)).astype(types[shape.b])
    b = rng.integers(-4, 5, (atom.k, atom.n)).astype(types[shape.a])
    c = rng.integers(-9, 9, (atom.m, atom.n)).astype(types[shape.d])
    left, right, scales = a.astype(np.float64), b.astype(np.float64), ()
    if atom.scales is not None:
        scales = tuple(rng.integers(ONE - 3, ONE + 4, (rows, atom.k // atom.scales.group), np.uint8) for rows in (atom.m, atom.n))
        left, right = left * powers(atom, scales[0]), right * powers(atom, scales[1]).T
    a, b = pairs(a, 1) if atom.a == SMALL else a, pairs(b, 0) if atom.b == SMALL else b
    assert np.array_equal(run(chip, atom, a, b, c, scales), (left @ right + c).astype(c.dtype))


def powers(atom: MatrixAtom, codes: np.ndarray) -> np.ndarray:
    """What scales multiply the elements of their groups by."""
    assert atom.scales is not None
    return np.ldexp(1.0, np.repeat(codes.astype(np.int64) - ONE, atom.scales.group, axis=1))


@pytest.mark.parametrize(("chip", "atom"), ATOMS)
def test_a_lane_holds_each_element_once_and_sums_in_rows(chip: Chip, atom: MatrixAtom) -> None:
    for layout in (atom.a_layout, atom.b_layout, atom.d_layout):
        assert sorted(elements(layout).reshape(-1)) == list(range(layout.shape[0] * layout.shape[1]))
    wide = 1 if atom.d == "f64" else 4
    assert atom.d_layout.contiguous() == wide


@pytest.mark.parametrize("name", ["v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x8_bf16", "v_mfma_f32_16x16x16_f16"])
def test_sums_lie_as_the_left_operand_of_further_steps(name: str) -> None:
    """Register r of D is element r % 4 of k step r / 4: attention's probabilities need no exchange."""
    atom = next(a for a in served(CHIP) if a.name == name)
    held, step = elements(atom.d_layout), elements(atom.a_layout)
    for k in range(atom.n // atom.k):
        rows, columns = np.divmod(step, atom.k)
        assert np.array_equal(held[:, 4 * k : 4 * k + 4], rows * atom.n + columns + k * atom.k)


@pytest.mark.parametrize("chip", CHIPS, ids=str)
def test_every_dense_type_of_the_chip_has_atoms_of_both_sizes(chip: Chip) -> None:
    found: dict[tuple[str, str, str], set[int]] = {}
    for atom in served(chip):
        found.setdefault((atom.a, atom.b, atom.precision), set()).add(atom.m)
    assert {types for types, sizes in found.items() if sizes != {16, 32}} == {("f64", "f64", "")}
    small = {*formats.SMALL_FORMATS.values()} if any(shape.serves(chip) for shape in formats.SCALED_SHAPES) else set()
    eight, narrow = {*chip.float8.values()}, {*chip.float8.values()} | small
    scaled = {(atom.a, atom.b, "") for atom in served(chip) if atom.scales is not None}
    assert scaled == ({(a, b, "") for a in narrow for b in narrow} if small else set())
    assert set(found) - scaled | {(a, b, "") for a in eight for b in eight} == TF32[chip.name] | {
        (t, t, "") for t in ("f16", "bf16", "f32", "f64", "i8")
    } | {(a, b, "") for a in eight for b in eight}
