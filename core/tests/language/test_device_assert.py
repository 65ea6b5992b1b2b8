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


@pytest.fixture(params=["reference", "nvidia-sm80", "amd-cdna3"])
def target(request: Any) -> Any:
    try:
        find_target(request.param)
    except KernelError:
        pytest.skip(f"{request.param} is not installed")
    with tilefw.target(request.param):
        yield request.param


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
