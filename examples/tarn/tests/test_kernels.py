"""Kernels of every kind on the simulator: copies a turn early, products on the matrix unit, ragged blocks, small formats, traps."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.expand import missing
from tilefw.cli.main import main
from tilefw_tarn.writer import TarnWriter

KERNELS = (
    "vector_add n=1500", "cast n=300", "softmax rows=5 columns=300", "argmax rows=6 columns=90", "histogram n=200 block=64",
    "attention queries=40 keys=50", "scan_tile", "sort_tile columns=16", "chained_sum n=100",
)


@tilefw.jit
def product(a, b, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for at in range(0, k, K):
        step = at + inner
        left = tl.load(a + rows[:, None] * k + step[None, :], mask=(rows[:, None] < m) & (step[None, :] < k), other=0.0)
        right = tl.load(b + step[:, None] * n + columns[None, :], mask=(step[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(out + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


@tilefw.jit(debug=True)
def below(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.device_assert(tl.load(x + at) < n, "too large")


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_right(kernel: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *parameters = kernel.split()
    given = [word for p in parameters for word in ("--param", p)]
    assert main(["run", name, "--target", "tarn-n1", "--checks", "all", *given]) == 0, capsys.readouterr()


@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 48), (27, 20, 37), (5, 3, 16), (16, 32, 0)])
def test_a_product_copies_a_turn_early_and_uses_the_matrix_unit(m: int, n: int, k: int) -> None:
    random = np.random.default_rng(m)
    a, b = random.integers(-8, 8, (m, k)).astype(np.float32), random.integers(-8, 8, (k, n)).astype(np.float32)
    out = np.full((m, n), np.nan, np.float32)
    product[(2,)](a, b, out, m, n, k, M=16, N=32, K=16, target="tarn-n1", checks="all")
    np.testing.assert_array_equal(out, a @ b)
    signature = {"a": "*fp32", "b": "*fp32", "out": "*fp32", "m": "i32", "n": "i32", "k": "i32"}
    text = tilefw.compile(product, "tarn-n1", signature, {"M": 16, "N": 32, "K": 16}).text
    turn = text[text.index("wait 1:i64") :]
    assert turn.index("dma.in.2 1:i64") < turn.index("mma.f32.f32.16x16x16")


def test_what_a_loop_writes_is_not_copied_early() -> None:
    @tilefw.jit
    def running(x, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        for i in range(n):
            tl.store(x + (i + 1) * BLOCK + at, tl.load(x + i * BLOCK + at) + 1.0)

    x = np.zeros((5, 64), np.float32)
    running[(1,)](x, 4, BLOCK=64, target="tarn-n1", checks="all")
    np.testing.assert_array_equal(x[:, 7], np.arange(5))


def test_f64_alone_is_missing() -> None:
    assert all("f64" in row for row in missing(TarnWriter()))
    assert missing(TarnWriter())["exp.f64"]


def test_a_failed_assertion_is_told_with_its_line() -> None:
    with pytest.raises(tilefw.KernelError, match="too large") as told:
        below[(1,)](np.arange(8, dtype=np.int32), 4, BLOCK=8, target="tarn-n1")
    assert "test_kernels.py" in str(told.value.place)


def test_tiles_that_the_scratch_cannot_hold_are_refused_at_their_line() -> None:
    @tilefw.jit
    def large(x, y, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        v = tl.load(x + at)
        tl.store(y + at, v + tl.sum(v, 0))

    with pytest.raises(tilefw.CompileError, match="131072 bytes at once, and there are 65536") as told:
        tilefw.compile(large, "tarn-n1", {"x": "*fp32", "y": "*fp32"}, {"BLOCK": 32768})
    assert told.value.place is not None and "tl.sum" in told.value.place.text and told.value.note is None


@tilefw.jit
def same_plane(out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    places = tl.make_block_ptr(out, (A, B, C), (0, C, 1), (0, 0, 0), (A, B, C), (2, 1, 0))
    tl.store(places, tl.full((A, B, C), 7.0, tl.float32))


def test_copies_of_a_block_to_one_place_wait_for_each_other() -> None:
    """The engine counts two dims: the outermost is a loop of copies, all to one place."""
    out = np.zeros((4, 8), np.float32)
    same_plane[(1,)](out, A=2, B=4, C=8, target="tarn-n1", checks="all")
    assert (out == 7).all()
