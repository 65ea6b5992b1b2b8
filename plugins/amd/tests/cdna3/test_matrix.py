"""Matrix instructions: every shape against NumPy in the calculator's layouts, broadcasts and swizzles, sparse products, opcodes."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from served import CHIP, CHIPS, on_each

from cdna3.lanes import WAVE, lanes, meaning, registers
from cdna3.matrices import multiply, numpy_types
from tilefw.api.errors import UnsupportedError
from tilefw_amd.chips import Chip
from tilefw_amd.isa.meaning.fragments import SHAPES, MatrixShape
from tilefw_amd.isa.row import Mode, Modifiers
from tilefw_amd.isa.set import instruction_set

Measured = Callable[[int, int], tuple[int, int]]


def dense(chip: Chip) -> list[MatrixShape]:
    return [s for s in SHAPES if s.serves(chip) and not s.sparse]


def sparse(chip: Chip) -> list[MatrixShape]:
    return [s for s in SHAPES if s.serves(chip) and s.sparse]


def by_name(shape: MatrixShape) -> str:
    return shape.name


def named(name: str) -> MatrixShape:
    return next(s for s in SHAPES if s.name == name)


def operands(shape: MatrixShape, chip: Chip = CHIP, waves: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Small integers: exact in every type, as are all their sums."""
    rng, types = np.random.default_rng(seed), numpy_types(chip)

    def integers(element: str, size: tuple[int, ...]) -> np.ndarray:
        return rng.integers(-4, 5, size).astype(types[element])

    k = shape.k // 2 if shape.sparse else shape.k
    return (
        integers(shape.a, (waves, shape.blocks, shape.m, k)),
        integers(shape.b, (waves, shape.blocks, shape.k, shape.n)),
        integers(shape.d, (waves, shape.blocks, shape.m, shape.n)),
    )


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return (a.astype(np.float64) @ b.astype(np.float64) + c).astype(c.dtype)


@pytest.mark.parametrize(("chip", "shape"), on_each(dense, by_name))
@pytest.mark.parametrize("hardware", [False, True])
def test_every_shape_multiplies_in_the_documented_layout(chip: Chip, shape: MatrixShape, hardware: bool) -> None:
    a, b, c = operands(shape, chip)
    assert np.array_equal(multiply(shape, a, b, c, hardware=hardware, chip=chip), product(a, b, c))


@pytest.mark.parametrize("shape", [s for s in dense(CHIP) if s.blocks > 1 and s.d != "f64"], ids=by_name)
def test_cbsz_and_abid_broadcast_blocks_of_a(shape: MatrixShape) -> None:
    a, b, c = operands(shape)
    for cbsz in range(1, shape.blocks.bit_length()):
        for abid in range(1 << cbsz):
            taken = [(block >> cbsz << cbsz) + abid for block in range(shape.blocks)]
            assert np.array_equal(multiply(shape, a, b, c, cbsz=cbsz, abid=abid), product(a[:, taken], b, c))


# Lane l of B as the calculator's `_get_blgp_transformed_lane` says, row of 16 lanes by row.
SWIZZLES = {1: (0, 1, 0, 1), 2: (2, 3, 2, 3), 3: (1, 2, 3, 0), 4: (0,) * 4, 5: (1,) * 4, 6: (2,) * 4, 7: (3,) * 4}


@pytest.mark.parametrize("shape", [s for s in dense(CHIP) if s.swizzles], ids=by_name)
@pytest.mark.parametrize("blgp", SWIZZLES)
def test_blgp_moves_lanes_of_b(shape: MatrixShape, blgp: int) -> None:
    a, b, c = operands(shape)
    held = shape.k * shape.n * shape.blocks // WAVE
    by_lane = np.zeros((len(b), WAVE, held), b.dtype)
    for block in range(shape.blocks):
        for k in range(shape.k):
            first = block * shape.n + k // held * shape.n * shape.blocks
            by_lane[:, first : first + shape.n, k % held] = b[:, block, k]
    moved = by_lane.reshape(len(b), 4, 16, held)[:, SWIZZLES[blgp]].reshape(by_lane.shape)
    seen = np.zeros_like(b)
    for block in range(shape.blocks):
        for k in range(shape.k):
            first = block * shape.n + k // held * shape.n * shape.blocks
            seen[:, block, k] = moved[:, first : first + shape.n, k % held]
    assert np.array_equal(multiply(shape, a, b, c, blgp=blgp), product(a, seen, c))


def test_modifiers_that_the_chip_does_not_have_are_refused() -> None:
    a, b, c = operands(shape := named("v_mfma_f32_16x16x16_f16"))
    for modifiers in ({"blgp": 1}, {"cbsz": 1}, {"abid": 1}):
        with pytest.raises(ValueError, match="v_mfma_f32_16x16x16_f16 has no "):
            multiply(shape, a, b, c, **modifiers)
    a, b, c = operands(shape := named("v_mfma_f32_4x4x1_16b_f32"))
    with pytest.raises(ValueError, match="has no cbsz:1 abid:2"):
        multiply(shape, a, b, c, cbsz=1, abid=2)


@pytest.mark.parametrize("shape", [s for s in dense(CHIP) if s.d == "f64"], ids=by_name)
@pytest.mark.parametrize("neg", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)])
def test_neg_flips_the_signs_of_doubles(shape: MatrixShape, neg: tuple[int, int, int]) -> None:
    a, b, c = operands(shape)
    signs = [(-1.0) ** flip for flip in neg]
    assert np.array_equal(multiply(shape, a, b, c, neg=neg), product(signs[0] * a, signs[1] * b, signs[2] * c))


def test_integer_sums_wrap() -> None:
    shape = named("v_mfma_i32_32x32x16_i8")
    a, b = np.full((1, 1, 32, 16), -128, np.int8), np.full((1, 1, 16, 32), -128, np.int8)
    c = np.full((1, 1, 32, 32), 2**31 - 1, np.int32)
    assert (multiply(shape, a, b, c) == (2**31 - 1 + 16 * 128 * 128) - 2**32).all()


# --- sparse products ---------------------------------------------------------------------------------------------------------


def index_words(shape: MatrixShape, chosen: np.ndarray, sets: int = 0) -> np.ndarray:
    """[1, waves, lanes]: two bits for each stored element of A [waves, m, k/2], in its lane, in set number `sets`."""
    waves, m, stored = chosen.shape
    held = stored * m // WAVE
    words = np.zeros((waves, WAVE), np.uint32)
    for place in range(stored):
        first = place // held * m
        words[:, first : first + m] |= chosen[:, :, place].astype(np.uint32) << np.uint32(2 * (place % held + held * sets))
    return words[None]


def sparse_product(a: np.ndarray, b: np.ndarray, c: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    total = c[:, 0].astype(np.float64)
    for place in range(chosen.shape[2]):
        rows = 4 * (place // 2) + chosen[:, :, place]
        met = np.take_along_axis(b[:, 0].astype(np.float64), rows[:, :, None], axis=1)
        with np.errstate(invalid="ignore"):
            total += a[:, 0, :, place, None].astype(np.float64) * met
    return total.astype(c.dtype)[:, None]


@pytest.mark.parametrize(("chip", "shape"), on_each(sparse, by_name))
def test_sparse_products_take_the_rows_that_the_index_names(chip: Chip, shape: MatrixShape) -> None:
    a, b, c = operands(shape, chip)
    chosen = np.random.default_rng(1).integers(0, 4, (len(a), shape.m, shape.k // 2))
    for abid in range(32 * WAVE // (shape.m * shape.k)):
        index = index_words(shape, chosen, abid)
        assert np.array_equal(multiply(shape, a, b, c, index, abid=abid, chip=chip), sparse_product(a, b, c, chosen))
    # With cbsz the first set is taken, whatever abid says.
    first = multiply(shape, a, b, c, index_words(shape, chosen), cbsz=1, abid=1, chip=chip)
    assert np.array_equal(first, sparse_product(a, b, c, chosen))


def _measured_f16(slot: int, group: int) -> tuple[int, int]:
    return 8 * (group // 2) + slot % 4 // 2 * 4 + slot % 2, 2 * (group % 2) + slot // 4


def _measured_fp8(slot: int, group: int) -> tuple[int, int]:
    return 16 * (group // 2) + slot % 8 // 2 * 4 + slot % 2, 2 * (group % 2) + slot // 8


@pytest.mark.parametrize(("name", "dtype", "measured"), [
    ("v_smfmac_f32_16x16x64_f16", np.float16, _measured_f16),
    ("v_smfmac_f32_16x16x128_fp8_fp8", ml_dtypes.float8_e4m3fn, _measured_fp8),
])  # fmt: skip
def test_sparse_operands_of_32_bytes_meet_as_they_do_on_the_chip(name: str, dtype: type, measured: Measured) -> None:
    """Which slot and lane group of B a slot and lane group of A meets: one-hot probes of a gfx950, first two of each four."""
    size = np.dtype(dtype).itemsize
    index = np.full((1, 1, WAVE), 0x44444444, np.uint32)
    sums = registers(np.zeros((1, 4, WAVE), np.uint32))
    act = meaning(name)
    number = np.arange(32 // size)[None, :] + 32 // size * (np.arange(WAVE) // 16)[:, None]  # of a slot of B and its group

    def words(values: np.ndarray) -> tuple[np.ndarray, ...]:
        return registers(values.astype(dtype).view(np.uint32).T[None])

    for group in range(4):
        for slot in range(16 // size):
            a = np.zeros((WAVE, 16 // size))
            a[16 * group, slot] = 1
            results = (act(lanes(), words(a), words(part), index, sums) for part in divmod(number, 16))
            high, low = (registers_of[0].view(np.float32)[0, 0, 0] for registers_of in results)
            b_slot, b_group = measured(slot, group)
            assert 16 * high + low == b_slot + 32 // size * b_group


def test_rows_of_b_that_no_index_names_do_not_take_part() -> None:
    shape = named("v_smfmac_f32_16x16x32_f16")
    a, b, c = operands(shape)
    chosen = np.zeros((len(a), shape.m, shape.k // 2), np.int64)
    chosen[:, :, 1::2] = 1
    b[:, :, 2::4], b[:, :, 3::4] = np.inf, np.nan
    assert np.array_equal(multiply(shape, a, b, c, index_words(shape, chosen)), sparse_product(a, b, c, chosen))


def test_an_index_that_is_not_there_is_refused() -> None:
    shape = named("v_smfmac_f32_16x16x64_fp8_fp8")
    with pytest.raises(ValueError, match="has no abid:2"):
        multiply(shape, *operands(shape), index=np.zeros((1, 2, WAVE), np.uint32), abid=2)


def test_sums_that_nobody_has_modelled_are_refused_under_hw_numerics() -> None:
    shape = named("v_smfmac_f32_16x16x32_bf16")
    with pytest.raises(UnsupportedError, match=shape.name):
        multiply(shape, *operands(shape), index=np.zeros((1, 2, WAVE), np.uint32), hardware=True)


MODES = [("f32", "f32", Mode(flush32=True), "flushes subnormals")]


@pytest.mark.parametrize("chip", CHIPS, ids=str)
@pytest.mark.parametrize(("a", "d", "mode", "message"), MODES)
def test_modes_that_no_model_of_the_sums_has_are_refused(chip: Chip, a: str, d: str, mode: Mode, message: str) -> None:
    modifiers = Modifiers()
    modifiers.mode, modifiers.chip = mode, chip
    concerned = [shape for shape in SHAPES if shape.serves(chip) and (shape.a, shape.d) == (a, d)]
    assert concerned
    for shape in concerned:
        with pytest.raises(ValueError, match=message):
            instruction_set(chip).rows[shape.name].build(modifiers)
