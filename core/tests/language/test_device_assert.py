"""`tl.device_assert` in debug builds: a failed one is a finding with its program and line; otherwise it is nothing."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CheckError, CompileError, KernelError
from tilefw.runtime.plugins.loader import find_target


@tilefw.jit
def checked(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.device_assert(x >= 0, "x is negative", mask=x != -7)
    tl.store(out_ptr + at, x + 1)


@tilefw.jit(debug=True)
def asserted(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.program_id(0))
    assert x < 3, "too large"
    tl.store(out_ptr + tl.program_id(0), x)


@tilefw.jit(debug=True)
def mistaken(x_ptr):
    tl.device_assert(tl.load(x_ptr) > 0, 3)  # type: ignore[arg-type]


@tilefw.jit
def exact_sum(a, b):
    wide = a.to(tl.int64) + b.to(tl.int64)
    tl.device_assert((wide >= -(2**31)) & (wide < 2**31), "the sum wraps")
    if a < -1000:
        tl.device_assert(b >= 0, "two are negative")
    return a + b


@tilefw.jit
def checked_root(x):
    assert x >= 0, "no root"
    return tl.sqrt(x)


@tilefw.jit(debug=True)
def combined(x_ptr, sum_ptr, prefix_ptr, N: tl.constexpr, M: tl.constexpr):
    at = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(sum_ptr + tl.arange(0, N), tl.reduce(x, 1, exact_sum))
    tl.store(prefix_ptr + at, tl.associative_scan(x, 0, exact_sum))


@tilefw.jit(debug=True)
def mapped(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.map_elementwise(checked_root, tl.load(x_ptr + at)))


def line_of(kernel: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(index for index, line in enumerate(lines) if text in line)


def test_without_debug_it_is_nothing(target: str) -> None:
    x, out = np.full(256, -1, np.int32), np.zeros(256, np.int32)
    checked[(2,)](x, out, N=128)
    assert (out == 0).all()


def test_what_holds_or_is_masked_passes(target: str) -> None:
    x, out = np.full(256, -7, np.int32), np.zeros(256, np.int32)
    x[::3] = 5
    checked[(2,)](x, out, N=128, debug=True)
    np.testing.assert_array_equal(out, x + 1)


def test_what_fails_is_reported_with_program_and_line(target: str) -> None:
    x = np.zeros(256, np.int32)
    x[200] = -1
    with pytest.raises(CheckError) as caught:
        checked[(2,)](x, np.zeros_like(x), N=128, debug=True)
    (finding,) = [found for found in caught.value.findings if found.check == "trap"]
    assert finding.code == "TFW0812" and finding.workgroup == (1, 0, 0)
    assert finding.source is not None and finding.source.line == line_of(checked, "device_assert")


def test_an_assert_statement_is_one(target: str) -> None:
    asserted[(2,)](np.array([1, 2], np.int32), np.zeros(2, np.int32))
    with pytest.raises(CheckError, match="TFW0812"):
        asserted[(2,)](np.array([1, 3], np.int32), np.zeros(2, np.int32))


def test_combine_functions_assert(target: str) -> None:
    """Any pair that is combined may fail; which ones are combined is the compiler's choice."""
    x = np.random.default_rng(1).integers(0, 9, (4, 64)).astype(np.int32)
    sums, prefixes = np.zeros(4, np.int32), np.zeros_like(x)
    combined[(1,)](x, sums, prefixes, N=4, M=64)
    np.testing.assert_array_equal(sums, x.sum(1))
    np.testing.assert_array_equal(prefixes, x.cumsum(0))
    for value, line in ((2**30, "the sum wraps"), (-2000, "two are negative")):
        x[2] = value
        with pytest.raises(CheckError) as caught:
            combined[(1,)](x, sums, prefixes, N=4, M=64)
        lines = {found.source.line for found in caught.value.findings if found.check == "trap" and found.source}
        assert line_of(exact_sum, line) in lines


def test_mapped_functions_assert(target: str) -> None:
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    mapped[(1,)](x, out, N=32)
    np.testing.assert_allclose(out, np.sqrt(x), rtol=1e-6)
    x[17] = -1
    with pytest.raises(CheckError, match="TFW0812"):
        mapped[(1,)](x, out, N=32)


def test_the_environment_asks_for_debug_builds(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DEBUG", "1")
    with pytest.raises(CheckError, match="TFW0812"):
        checked[(1,)](np.full(128, -1, np.int32), np.zeros(128, np.int32), N=128)


def test_the_reference_tells_the_message() -> None:
    with pytest.raises(CheckError, match="device assertion failed: too large"):
        asserted[(1,)](np.array([4], np.int32), np.zeros(1, np.int32))


def test_a_message_is_a_string() -> None:
    with pytest.raises(CompileError, match=r"the message of tl\.device_assert is a string"):
        mistaken[(1,)](np.zeros(1, np.int32))


def test_a_chip_without_a_trap_says_so() -> None:
    try:
        find_target("spatial-sdm1")
    except KernelError:
        pytest.skip("spatial-sdm1 is not installed")
    with tilefw.target("spatial-sdm1"), pytest.raises(KernelError, match=r"tile\.trap|cf\.branch"):
        asserted[(1,)](np.array([1], np.int32), np.zeros(1, np.int32))


@tilefw.jit
def choosing(out_ptr, n, MODE: tl.constexpr):
    chosen = 0
    if n > 5:
        chosen = 1
    elif n > 0:
        chosen = 2
    else:
        assert False, "n is not positive"  # noqa: B011
    if MODE == "strict":
        assert False, "no such mode"  # noqa: B011
    tl.store(out_ptr, chosen)


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80", "amd-cdna3"])
def test_an_assertion_that_fails_in_a_branch_of_run_time_is_one_of_debug_builds(target: str) -> None:
    out = np.zeros(1, np.int32)
    for n, chosen in ((7, 1), (3, 2)):
        choosing[(1,)](out, n, "any", debug=True, target=target)
        assert out[0] == chosen
    choosing[(1,)](out, -1, "any", target=target)
    assert out[0] == 0
    with pytest.raises(CheckError) as told:
        choosing[(1,)](out, -1, "any", debug=True, target=target)
    assert told.value.code == "TFW0812" and told.value.place is not None
    assert 'assert False, "n is not positive"' in told.value.place.text
    with pytest.raises(CompileError, match="assertion failed: no such mode"):
        choosing[(1,)](out, 7, "strict", target=target)


@tilefw.jit
def known(out_ptr, n, HELD: tl.constexpr):
    if n > 0:
        tl.store(out_ptr, n)
    else:
        assert HELD


@pytest.mark.parametrize("held", [None, (), 0])
def test_whatever_python_takes_for_false_fails_in_a_branch_of_run_time(held: object) -> None:
    out = np.zeros(1, np.int32)
    known[(1,)](out, 3, held, debug=True, target="reference")
    assert out[0] == 3
    with pytest.raises(CheckError, match="device assertion failed"):
        known[(1,)](out, -3, held, debug=True, target="reference")
