"""Checks of programs: each finds what it names where it reaches a store, on any target, and lets pass what a mask leaves out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.checks import PROGRAM_CHECK_INFOS, PROGRAM_CHECKS
from tilefw.api.errors import CheckError, UsageError
from tilefw.runtime.checks.launch_checks import made_by
from tilefw.runtime.config import parse_checks


def codes(kernel: Any, *args: Any, checks: str, grid: tuple[int, ...] = (1,), **constexprs: Any) -> set[str]:
    """The codes of the errors that a launch on the reference ends with."""
    try:
        result = kernel[grid](*args, **constexprs, target="reference", checks=checks)
    except CheckError as error:
        return {finding.code for finding in error.findings if finding.severity == "error"}
    assert parse_checks(checks) & PROGRAM_CHECKS <= result.checks
    return set()


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


# --- division by zero --------------------------------------------------------------------------------------------------


@tilefw.jit
def divide(a, b, out, n, OTHER: tl.constexpr, GUARD: tl.constexpr):
    i = tl.arange(0, 4)
    x = tl.load(a + i, i < n, other=1)
    y = tl.load(b + i, i < n, other=OTHER)
    q = x // y + x % y
    if GUARD:
        q = tl.where(y == 0, 0, q)
    tl.store(out + i, q, i < n)


@pytest.mark.parametrize(("divisors", "guard", "found"), [
    ((1, 2, 3), False, set()), ((1, 0, 3), False, {"TFW0452"}), ((1, 0, 3), True, set()),
])
def test_a_quotient_of_zero_is_found_where_it_is_stored(divisors: tuple[int, ...], guard: bool, found: set[str]) -> None:
    args = ints(7, 8, 9), ints(*divisors), ints(0, 0, 0), 3
    assert codes(divide, *args, checks="division-by-zero", OTHER=0, GUARD=guard) == found


@tilefw.jit
def jump(a, b, out):
    if tl.load(a) // tl.load(b) > 3:
        tl.store(out, 1)


def test_a_quotient_of_zero_is_found_where_it_decides_control_flow() -> None:
    assert codes(jump, ints(7), ints(0), ints(0), checks="division_by_zero") == {"TFW0452"}
    assert codes(jump, ints(7), ints(1), ints(0), checks="division_by_zero") == set()


# --- one address -------------------------------------------------------------------------------------------------------


@tilefw.jit
def halves(a, out):
    i = tl.program_id(0) * 4 + tl.arange(0, 4)
    tl.store(out + i // 2, tl.load(a + i))


def test_different_values_of_one_store_at_one_address_are_found() -> None:
    assert codes(halves, floats(1, 2, 3, 3), floats(0, 0), checks="same-address-stores") == {"TFW0453"}
    assert codes(halves, floats(1, 1, 3, 3), floats(0, 0), checks="same-address-stores") == set()


@tilefw.jit
def everyone(out):
    tl.store(out, tl.program_id(0))


def test_stores_of_two_programs_are_a_race_and_no_finding_of_one_store() -> None:
    assert codes(everyone, ints(0), checks="same_address_stores", grid=(3,)) == set()
    assert codes(everyone, ints(0), checks="races", grid=(3,)) == {"TFW0444"}


# --- undefined elements ------------------------------------------------------------------------------------------------


@tilefw.jit
def total(a, out, n, WHERE: tl.constexpr, OTHER: tl.constexpr):
    i = tl.arange(0, 8)
    if OTHER:
        x = tl.load(a + i, i < n, other=0)
    else:
        x = tl.load(a + i, i < n)
    if WHERE:
        x = tl.where(i < n, x, 0)
    tl.store(out, tl.sum(x, 0))


@pytest.mark.parametrize(("where", "other", "n", "found"), [
    (False, False, 5, {"TFW0454"}), (True, False, 5, set()), (False, True, 5, set()), (False, False, 8, set()),
])
def test_undefined_elements_are_found_behind_a_reduction(where: bool, other: bool, n: int, found: set[str]) -> None:
    args = np.ones(8, np.float32), floats(0), n
    assert codes(total, *args, checks="undefined_elements", WHERE=where, OTHER=other) == found


@tilefw.jit
def rows(a, b, out, m, MASK: tl.constexpr):
    i, k = tl.arange(0, 16)[:, None], tl.arange(0, 16)
    x = tl.load(a + i * 16 + k[None, :], i < m)
    y = tl.load(b + k[:, None] * 16 + k[None, :])
    z = tl.dot(x, y)
    s = tl.cumsum(tl.sum(z, 1), 0)
    if MASK:
        tl.store(out + tl.arange(0, 16), s, tl.arange(0, 16) < m)
    else:
        tl.store(out + tl.arange(0, 16), s)


def test_rows_of_a_dot_depend_on_their_own_rows_and_sums_of_a_scan_on_earlier_ones() -> None:
    args = np.ones((16, 16), np.float32), np.ones((16, 16), np.float32), np.zeros(16, np.float32), 5
    assert codes(rows, *args, checks="undefined_elements", MASK=True) == set()
    assert codes(rows, *args, checks="undefined_elements", MASK=False) == {"TFW0454"}


@tilefw.jit
def picked(a, b, out, n, m):
    i = tl.arange(0, 8)
    x = tl.load(a + i, i < n)
    tl.store(out + i, tl.gather(x, tl.load(b + i, i < m), 0), i < 6)


@pytest.mark.parametrize(("n", "m", "found"), [(4, 6, {"TFW0454"}), (5, 6, set()), (5, 5, {"TFW0454"})])
def test_undefined_elements_are_found_where_they_are_gathered_and_where_they_are_indices(n: int, m: int, found: set[str]) -> None:
    args = np.ones(8, np.float32), ints(0, 1, 2, 3, 4, 0, 7, 7), floats(*range(8)), n, m
    assert codes(picked, *args, checks="undefined_elements") == found


@tilefw.jit
def carried(a, out, n, steps):
    i = tl.arange(0, 4)
    acc = tl.zeros((4,), tl.float32)
    for step in range(steps):
        if step % 2 == tl.program_id(0):
            acc += tl.load(a + step * 4 + i, step * 4 + i < n)
    tl.store(out + tl.program_id(0) * 4 + i, acc)


@pytest.mark.parametrize(("n", "found"), [(16, set()), (14, {"TFW0454"})])
def test_undefined_elements_are_followed_through_loops_and_branches(n: int, found: set[str]) -> None:
    args = np.ones(16, np.float32), np.zeros(8, np.float32), n, 4
    assert codes(carried, *args, checks="undefined_elements", grid=(2,)) == found


@tilefw.jit
def indirect(a, index, out, n):
    i = tl.arange(0, 4)
    at = tl.load(index + i, i < n)
    tl.store(out + i, tl.load(a + at, i < 4), i < n)


def test_an_undefined_address_is_found_unless_it_is_masked() -> None:
    assert codes(indirect, floats(1, 2, 3, 4), ints(0, 1, 2, 3), floats(0, 0, 0, 0), 3, checks="undefined_elements") == {"TFW0454"}
    assert codes(indirect, floats(1, 2, 3, 4), ints(0, 1, 2, 3), floats(0, 0, 0, 0), 4, checks="undefined_elements") == set()


# --- infinities and NaN ------------------------------------------------------------------------------------------------


@tilefw.jit
def softmax(a, out, n, SHIFT: tl.constexpr):
    i = tl.arange(0, 8)
    x = tl.load(a + i, i < n, other=float("-inf"))
    if SHIFT:
        x = x - tl.max(x, 0)
    e = tl.exp(x)
    tl.store(out + i, e / tl.sum(e, 0), i < n)


@pytest.mark.parametrize(("scale", "shift", "found"), [(1, False, set()), (100, True, set()), (100, False, {"TFW0455"})])
def test_an_overflow_is_found_and_an_infinity_that_the_kernel_names_is_not(scale: float, shift: bool, found: set[str]) -> None:
    x = (scale * np.arange(1, 6)).astype(np.float32)
    assert codes(softmax, x, np.zeros(5, np.float32), 5, checks="nonfinite", SHIFT=shift) == found


@tilefw.jit
def doubled(a, out):
    i = tl.arange(0, 4)
    tl.store(out + i, tl.load(a + i) * 2)


def test_infinities_and_nan_that_are_loaded_are_no_finding() -> None:
    assert codes(doubled, floats(1, np.inf, np.nan, -np.inf), np.zeros(4, np.float32), checks="nonfinite") == set()
    assert codes(doubled, floats(1, 3e38, 1, 1), np.zeros(4, np.float32), checks="nonfinite") == {"TFW0455"}


def test_the_finding_is_at_the_operation_that_made_it() -> None:
    x = np.full(5, 100, np.float32)
    with pytest.raises(CheckError) as raised:
        softmax[(1,)](x, np.zeros(5, np.float32), 5, SHIFT=False, target="reference", checks="nonfinite")
    finding = next(f for f in raised.value.findings if f.code == "TFW0455")
    assert finding.source is not None and finding.source.text is not None and "tl.exp(x)" in finding.source.text
    assert finding.note is not None and "it is stored at" in finding.note


# --- offsets -----------------------------------------------------------------------------------------------------------


@tilefw.jit
def strided(a, out, stride):
    r = tl.arange(0, 4)
    tl.store(out + r, tl.load(a + r * stride))


def test_an_offset_that_wraps_back_into_bounds_is_found() -> None:
    args = np.zeros(64, np.float32), np.zeros(4, np.float32)
    assert codes(strided, *args, 16, checks="offsets") == set()
    assert codes(strided, *args, 1 << 30, checks="offsets") >= {"TFW0445"}
    assert codes(strided, *args, 1 << 28, checks="offsets") == {"TFW0441"}


# --- host arrays -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64])
def test_elements_that_the_host_never_wrote_are_found_where_they_are_read(dtype: type) -> None:
    x = tilefw.empty(16, dtype)
    assert codes(copied, x, np.zeros(16, dtype), checks="uninitialised-host") == {"TFW0443"}
    x[:8] = 1
    assert codes(copied, x, np.zeros(16, dtype), checks="uninitialised-host") == {"TFW0443"}
    x[8:] = 2
    assert codes(copied, x, tilefw.empty_like(x), checks="uninitialised-host") == set()


@tilefw.jit
def copied(a, out):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(a + i))


def test_unwritten_elements_are_found_in_arrays_of_any_order() -> None:
    x = tilefw.empty((4, 4), np.float32).T
    x[...] = 0
    assert codes(copied, x, np.zeros(16, np.float32), checks="uninitialised_host") == set()
    assert codes(copied, tilefw.empty((4, 4), np.float32), np.zeros(16, np.float32), checks="uninitialised_host") == {"TFW0443"}


def test_a_script_that_is_run_with_the_check_has_numpys_empty_followed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, tilefw, tilefw.language as tl\n"
        "@tilefw.jit\n"
        "def k(a, out):\n"
        "    i = tl.arange(0, 16)\n"
        "    tl.store(out + i, tl.load(a + i))\n"
        "k[(1,)](np.empty(16, np.float32), np.empty(16, np.float32))\n"
    )
    command = [sys.executable, "-m", "tilefw", "run", str(script), "--target", "reference"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    found = subprocess.run([*command, "--checks", "uninitialised-host"], capture_output=True, text=True, check=False)
    assert found.returncode == 1 and "TFW0443" in found.stderr


# --- names -------------------------------------------------------------------------------------------------------------


def test_all_stands_for_what_devices_make_and_program_for_the_rest() -> None:
    assert not parse_checks("all") & PROGRAM_CHECKS
    assert parse_checks("program") == PROGRAM_CHECKS == {info.name for info in PROGRAM_CHECK_INFOS}
    assert parse_checks("bounds, division-by-zero") == {"bounds", "division_by_zero"}
    assert parse_checks("all,nonfinite") == parse_checks("all") | {"nonfinite"}
    with pytest.raises(UsageError, match="divison"):
        parse_checks("divison_by_zero")


def test_a_check_of_programs_is_refused_for_machine_code() -> None:
    from tilefw.runtime.executor import executor_for
    from tilefw.runtime.plugins.loader import find_target

    with pytest.raises(UsageError) as raised:
        made_by(executor_for(find_target("reference"), "sim").device, frozenset({"nonfinite"}))
    assert raised.value.code == "TFW0903"
