"""Matrix products of several blocks and of sparse operands, undefined elements, and sums in stages, on made-up fragments."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilefw.api.errors import UnsupportedError
from tilefw.sim.algebra.shadow import Shadowed
from tilefw.sim.matrix.fragments import Accumulation, Fragment, Stages
from tilefw.sim.matrix.unit import MatrixUnit
from tilefw.testing.executing import executing_lanes

# Four lanes a row of 4 x 4, 16 blocks: the row is the register, the block the upper lane bits.
A = Fragment("f32", ("l0", "l1"), (), blocks=("l2", "l3", "l4", "l5"))
B = Fragment("f32", (), ("l0", "l1"), blocks=("l2", "l3", "l4", "l5"))
C = Fragment("f32", ("r0", "r1"), ("l0", "l1"), blocks=("l2", "l3", "l4", "l5"))
# 16 x 16 by 16 x 16 of halves, four k to a lane, columns of D along the lanes.
A16 = Fragment("f16", ("l0", "l1", "l2", "l3"), ("e0", "r0", "l4", "l5"))
B16 = Fragment("f16", ("e0", "r0", "l4", "l5"), ("l0", "l1", "l2", "l3"))
C16 = Fragment("f32", ("r0", "r1", "l4", "l5"), ("l0", "l1", "l2", "l3"))
SUM = Accumulation("f32", 8, 24, result_rounding="rn", stages=Stages(31))
ONE_WAVE = (1, 1, 64)


def words(values: np.ndarray) -> list[np.ndarray]:
    """[registers, lanes] as values of the algebra."""
    return [np.ascontiguousarray(row).view(np.uint32).reshape(1, 1, -1) for row in values]


def halves(matrix: np.ndarray) -> list[np.ndarray]:
    """A 16 x 16 operand in A16: row i, columns 4*q to 4*q + 3 in lane 16*q + i."""
    by_lane = matrix.astype(np.float16).reshape(16, 4, 4).transpose(1, 0, 2).reshape(64, 4)
    return words(np.ascontiguousarray(by_lane).view(np.uint32).T)


def sums(matrix: np.ndarray) -> list[np.ndarray]:
    return words(matrix.astype(np.float32).reshape(4, 4, 16).transpose(1, 0, 2).reshape(4, 64))


def dense(registers: tuple[np.ndarray, ...]) -> np.ndarray:
    stacked = np.stack([np.asarray(r).reshape(64) for r in registers])
    return np.ascontiguousarray(stacked).view(np.float32).reshape(4, 4, 16).transpose(1, 0, 2).reshape(16, 16)


def test_blocks_are_products_by_themselves() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(-9, 9, (16, 4)), rng.integers(-9, 9, (16, 4)), rng.integers(-9, 9, (4, 16, 4))
    operands = tuple(words(x.astype(np.float32).reshape(-1, 64)) for x in (a, b, c))
    got = MatrixUnit(False).multiply(ONE_WAVE, operands, (A, B, C, C), SUM)
    wanted = np.einsum("bi,bj->ibj", a, b) + c
    assert np.array_equal(np.stack([g.view(np.float32).reshape(16, 4) for g in got]), wanted)


def test_a_result_is_the_next_addend() -> None:
    """The accumulator of a chain of products is not taken apart and put together again between them."""
    rng = np.random.default_rng(1)
    unit = MatrixUnit(False)
    matrices = [rng.integers(-4, 5, (16, 16)) for _ in range(3)]
    total = tuple(sums(matrices[2]))
    for _ in range(3):
        total = unit.multiply(ONE_WAVE, (halves(matrices[0]), halves(matrices[1].T), total), (A16, B16, C16, C16), SUM)
    assert np.array_equal(dense(total), 3 * matrices[0] @ matrices[1] + matrices[2])


def undefined(registers: list[np.ndarray], places: list[tuple[int, int]]) -> list[Shadowed]:
    """Values with whole registers of lanes undefined, given as (register, lane)."""
    marks = [np.zeros_like(r) for r in registers]
    for register, lane in places:
        marks[register][0, 0, lane] = 0xFFFFFFFF
    return [Shadowed(r, m) for r, m in zip(registers, marks, strict=True)]


def test_undefined_elements_spoil_their_row_and_column_only() -> None:
    lanes = executing_lanes(64, follow_undefined=True)
    a = undefined(halves(np.ones((16, 16))), [(1, 3)])  # row 3
    b = undefined(halves(np.ones((16, 16))), [(0, 16 + 5)])  # column 5
    c = undefined(sums(np.ones((16, 16))), [(2, 32 + 7)])  # row 4*2 + 2, column 7
    results = lanes.shadow.matrix_multiply(a, b, c, A16, B16, C16, SUM)
    spoilt = dense(tuple(r.poison for r in results)).view(np.uint32) != 0
    wanted = np.zeros((16, 16), bool)
    wanted[3], wanted[:, 5], wanted[10, 7] = True, True, True
    assert np.array_equal(spoilt, wanted)


def test_sparse_products_meet_the_rows_that_are_named() -> None:
    rng = np.random.default_rng(2)
    a, b, c = rng.integers(-4, 5, (16, 16)), rng.integers(-4, 5, (32, 16)), rng.integers(-4, 5, (16, 16))
    named = rng.integers(0, 4, (16, 16))
    by_lane = b.T.astype(np.float16).reshape(16, 4, 8).transpose(1, 0, 2).reshape(64, 8)
    b_words = words(np.ascontiguousarray(by_lane).view(np.uint32).T)
    b_map = Fragment("f16", ("e0", "r0", "r1", "l4", "l5"), ("l0", "l1", "l2", "l3"))
    packed = (named.reshape(16, 4, 4).transpose(1, 0, 2).reshape(64, 4) << np.arange(0, 8, 2)).sum(1).astype(np.uint8)
    index_map = Fragment("u2", ("l0", "l1", "l2", "l3"), ("e0", "e1", "l4", "l5"), 8)
    got = MatrixUnit(False).multiply_sparse(
        ONE_WAVE, (halves(a), b_words, sums(c)), (A16, b_map, C16, C16), (packed.reshape(1, 1, 64),), index_map, Accumulation("f32")
    )
    rows = 4 * (np.arange(16) // 2) + named
    assert np.array_equal(dense(got), np.einsum("ie,iej->ij", a, b[rows]) + c)


def summed(a: list[float], b: list[float], c: float, accumulation: Accumulation) -> float:
    """Element (0, 0) of a product that has those factors in its first row and column."""
    left, right, addend = np.zeros((16, 16)), np.zeros((16, 16)), np.zeros((16, 16))
    left[0, : len(a)], right[0, : len(b)], addend[0, 0] = a, b, c
    operands = (halves(left), halves(right), sums(addend))
    return float(dense(MatrixUnit(True).multiply(ONE_WAVE, operands, (A16, B16, C16, C16), accumulation))[0, 0])


def test_products_are_cut_before_the_running_sum_joins_them() -> None:
    tiny = 2.0**-13
    # 2**-26 lies below the 24 bits under the product 1, but above those under itself: alone it survives.
    assert summed([1.0, tiny], [1.0, tiny], 0.0, SUM) == 1.0
    assert summed([tiny], [tiny], 0.0, SUM) == tiny**2
    # Between blocks of eight the running sum is rounded to f32 once, to nearest.
    assert summed([1.0] + [0.0] * 7 + [tiny], [1.0] + [0.0] * 7 + [tiny], 0.0, SUM) == 1.0


def test_cuts_of_the_joined_sum_go_downwards() -> None:
    """A product of -2**-26 beside a running sum of 1 stays (32 bits are kept of it), a running sum of -2**-30 beside a
    product of 1 is cut to -2**-24 (24 are kept, downwards)."""
    tiny = 2.0**-13
    assert summed([tiny], [-tiny], 1.0, SUM) == 1.0  # 1 - 2**-26, to nearest
    assert summed([3 * tiny], [-tiny], 1.0, SUM) == 1.0 - 2.0**-24  # 1 - 0.75 * 2**-24, to nearest
    assert summed([1.0], [1.0], -(2.0**-30), SUM) == 1.0 - 2.0**-24


def test_a_running_sum_far_below_is_dropped_where_the_model_says_so() -> None:
    dropping = Accumulation("f32", 8, 24, result_rounding="rn", stages=Stages(31, groups=2, drops_far=True))
    assert summed([1.0], [1.0], -(2.0**-30), dropping) == 1.0
    assert summed([1.0], [1.0], -(2.0**-25), dropping) == 1.0 - 2.0**-24


def test_sums_without_a_model_are_refused_under_hw_numerics_only() -> None:
    unknown = Accumulation("f32", unknown="made_up_multiply")
    assert MatrixUnit(False).multiply(ONE_WAVE, (halves(np.eye(16)),) * 2 + (sums(np.eye(16)),), (A16, B16, C16, C16), unknown)
    with pytest.raises(UnsupportedError, match="made_up_multiply"):
        summed([1.0], [1.0], 0.0, unknown)


def test_elements_of_six_bits_lie_one_behind_the_other() -> None:
    """A of 16 x 128 e2m3, 32 of a row in the six registers of a lane, by ones: the sums of rows."""
    codes = np.random.default_rng(4).integers(0, 64, (64, 32), np.uint8)
    stream = (codes[:, :, None] >> np.arange(6, dtype=np.uint8) & 1).reshape(64, 192)
    packed = np.packbits(stream, axis=1, bitorder="little").view(np.uint32).T
    k = ("e0", "e1", "e2", "e3", "e4", "l4", "l5")
    row = ("l0", "l1", "l2", "l3")
    maps = (Fragment("f6E2M3FN", row, k, 192), Fragment("f4E2M1FN", ("e0", "e1", "e2", "r0", "r1", "l4", "l5"), row), C16, C16)
    ones = np.full((4, 64), 0x22222222, np.uint32)  # 1.0 of e2m1 is 2
    got = MatrixUnit(False).multiply(ONE_WAVE, (words(packed), words(ones), sums(np.zeros((16, 16)))), maps, SUM)
    value = codes.view(ml_dtypes.float6_e2m3fn).astype(np.float64).reshape(4, 16, 32).sum(axis=(0, 2))
    assert np.array_equal(dense(got), np.broadcast_to(value[:, None], (16, 16)))


# 16 x 128 by 128 x 16 of f8E4M3FN with a scale for each 32 k, in the lane of row or column and block.
_ROW, _K = ("l0", "l1", "l2", "l3"), ("e0", "e1", "r0", "r1", "r2", "l4", "l5")
A8, B8 = Fragment("f8E4M3FN", _ROW, _K), Fragment("f8E4M3FN", _K, _ROW)
SCALES_A, SCALES_B = Fragment("f8E8M0FNU", _ROW, ("l4", "l5"), 8), Fragment("f8E8M0FNU", ("l4", "l5"), _ROW, 8)
ONES = np.full((8, 64), 0x38383838, np.uint32)


def scale_codes(exponents: np.ndarray) -> np.ndarray:
    """[rows, blocks] of powers of two as a value of 8 bits."""
    return (exponents.T.reshape(1, 1, 64) + 127).astype(np.uint8)


def test_each_run_of_k_has_its_scale() -> None:
    rng = np.random.default_rng(5)
    first, second = rng.integers(-3, 4, (16, 4)), rng.integers(-3, 4, (16, 4))
    lanes = executing_lanes(64)
    got = lanes.scaled_matrix_multiply(
        words(ONES), scale_codes(first), words(ONES), scale_codes(second), sums(np.ones((16, 16))), A8, SCALES_A, B8, SCALES_B,
        C16, SUM,
    )  # fmt: skip
    assert np.array_equal(dense(got), 32 * (2.0**first @ (2.0**second).T) + 1)


def test_an_undefined_scale_is_an_undefined_row_or_column() -> None:
    lanes = executing_lanes(64, follow_undefined=True).shadow
    poison = np.zeros((1, 1, 64), np.uint8)
    poison[0, 0, 16 + 3] = 0xFF  # block 1 of row 3

    def clean(values: list[np.ndarray]) -> list[Shadowed]:
        return [Shadowed(v, np.zeros_like(v)) for v in values]

    codes = scale_codes(np.zeros((16, 4), np.int64))
    got = lanes.scaled_matrix_multiply(
        clean(words(ONES)), Shadowed(codes, poison), clean(words(ONES)), Shadowed(codes, np.zeros_like(codes)),
        clean(sums(np.ones((16, 16)))), A8, SCALES_A, B8, SCALES_B, C16, SUM,
    )  # fmt: skip
    marks = np.stack([np.broadcast_to(v.poison, ONE_WAVE).reshape(64) for v in got])
    lost = marks.reshape(4, 4, 16).transpose(1, 0, 2).reshape(16, 16)
    assert (lost[3] != 0).all() and not np.delete(lost, 3, axis=0).any()
