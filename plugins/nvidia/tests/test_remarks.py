"""What a user learns beside the result: dots without a matrix instruction, occupancy from ptxas's report."""


import numpy as np
import pytest
from chips_here import OLDEST

import tilefw
import tilefw.language as tl
from tilefw.api import CapacityError
from tilefw_nvidia.chips.occupancy import occupancy
from tilefw_nvidia.ptxas import find_ptxas


@tilefw.jit
def product(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    c = tl.dot(tl.load(a + m * K + k[None, :]), tl.load(b + k[:, None] * N + n), input_precision=PRECISION)
    tl.store(out + m * N + n, c)


@pytest.mark.parametrize(
    "shape, element, precision, sizes",
    [
        ((8, 16, 16), np.float16, "ieee", "m 16, n 8, k 16"),
        ((16, 8, 8), np.float16, "ieee", None),
        ((4, 4, 4), np.float32, "tf32", "k 8"),
        ((4, 4, 4), np.float32, "ieee", None),  # as precise as that no matrix instruction is, whatever its sizes
        ((16, 8, 8), np.int8, "ieee", "k 16"),
    ],
)
def test_a_dot_that_no_matrix_instruction_serves_is_remarked_on_with_the_sizes_that_would_do(shape, element, precision, sizes):
    m, n, k = shape
    a, b = np.ones((m, k), element), np.ones((k, n), element)
    out = np.empty((m, n), np.int32 if element is np.int8 else np.float32)
    result = product[(1,)](a, b, out, m, n, k, precision, target="nvidia-sm80")
    assert (out == k).all()
    if sizes is None:
        assert not result.remarks and "remark[" not in str(result)
    else:
        (remark,) = result.remarks
        assert remark.code == "TFW0623" and sizes in remark.help and f"{m}x{n}x{k}" in remark.message
        assert remark.place is not None and (remark.place.file, remark.place.line) == (__file__, 18)
        assert f"remark[TFW0623]: {remark.message}\n --> {remark.place}\n" in str(result)


@pytest.mark.parametrize(
    ("shape", "warps", "reason"),
    [
        ((64, 16, 16), 2, "4 warps multiply together, and there are 2"), ((32, 64, 64), 4, "its m of 32 is no multiple of 64"),
        ((64, 8, 16), 8, "not all of the 8 warps would have a part of it"), ((64, 64, 64), 4, None),
    ],
)
def test_a_dot_that_the_unit_of_warpgroups_does_not_take_is_remarked_on_with_the_reason(shape, warps, reason):
    m, n, k = shape
    a, b, out = np.ones((m, k), np.float16), np.ones((k, n), np.float16), np.empty((m, n), np.float32)
    result = product[(1,)](a, b, out, m, n, k, "ieee", target="nvidia-sm90a", num_warps=warps)
    assert (out == k).all()
    found = [remark.message for remark in result.remarks if remark.code == "TFW0628"]
    assert len(found) == (reason is not None) and all(message.endswith(str(reason)) for message in found)


@pytest.mark.parametrize(
    "threads, registers, shared, expected",
    # From the CUDA Occupancy Calculator.
    [
        (128, 32, 0, 1.0), (128, 128, 0, 0.25), (256, 168, 49152, 0.125), (256, 255, 0, 0.125), (1024, 65, 0, 0.0),
        (128, 64, 40960, 0.25), (128, 64, 41984, 0.1875), (32, 16, 0, 0.5), (128, 33, 1024, 0.75),
    ],
)
def test_occupancy_by_registers_shared_memory_and_blocks(threads, registers, shared, expected):
    assert occupancy(OLDEST, threads, registers, shared) == expected


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
def test_an_artifact_has_its_occupancy():
    artifact = tilefw.compile(
        product, target="nvidia-sm80", signature=dict.fromkeys(("a", "b", "out"), "*fp32"),
        constexprs={"M": 16, "N": 16, "K": 16, "PRECISION": "tf32"}, num_warps=4,
    )
    assert artifact.resources.occupancy is not None and 0.25 <= artifact.resources.occupancy <= 1


def compiled(size, **keywords):
    return tilefw.compile(
        product, target="nvidia-sm80", signature=dict.fromkeys(("a", "b", "out"), "*fp32"),
        constexprs={"M": size, "N": size, "K": 16, "PRECISION": "tf32"}, num_warps=1, **keywords,
    )


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
def test_spills_are_noted_and_a_cap_below_what_an_instruction_takes_is_refused():
    assert not compiled(32).remarks
    spilled = compiled(64, maxnreg=40)
    assert spilled.resources.spills and [remark.code for remark in spilled.remarks] == ["TFW0652"]
    with pytest.raises(CapacityError, match="maxnreg is too small") as caught:
        compiled(64, maxnreg=16)
    assert caught.value.code == "TFW0650" and "leave maxnreg out" in caught.value.help


@tilefw.jit
def turned(a, out, N: tl.constexpr):
    m, n = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + n * N + m, tl.load(a + m * N + n))


def test_an_error_of_the_lowering_shows_the_users_line_and_the_buffers():
    with pytest.raises(CapacityError, match="at once; a workgroup has at most 166912") as caught:
        tilefw.compile(turned, target="nvidia-sm80", signature={"a": "*fp32", "out": "*fp32"}, constexprs={"N": 256}, num_warps=16)
    assert caught.value.code == "TFW0651" and "bytes for" in caught.value.note
    assert "tl.store(out" in caught.value.place.text


@tilefw.jit
def pairs(a, b, out, steps):
    m, k, n = tl.arange(0, 64)[:, None], tl.arange(0, 64), tl.arange(0, 128)[None, :]
    sums = tl.zeros((64, 64), tl.float32)
    for step in range(steps):
        here = step * 64 + k
        products = tl.dot(tl.load(a + m * steps * 64 + here[None, :]), tl.load(b + here[:, None] * 128 + n))
        first, second = tl.split(tl.reshape(products, (64, 64, 2)))
        sums += first - second
    tl.store(out + m * 64 + k[None, :], sums)


def test_loops_have_fewer_stages_where_the_wanted_ones_do_not_fit_and_a_remark_says_so():
    generator, steps = np.random.default_rng(3), 4
    a, b = (generator.integers(-4, 4, shape).astype(np.float32) for shape in ((64, 64 * steps), (64 * steps, 128)))
    out = np.zeros((64, 64), np.float32)
    result = pairs[(1,)](a, b, out, steps, num_stages=3, target="nvidia-sm80")
    assert [remark.code for remark in result.artifact.remarks] == ["TFW0653"]
    np.testing.assert_array_equal(out, a @ b[:, ::2] - a @ b[:, 1::2])
