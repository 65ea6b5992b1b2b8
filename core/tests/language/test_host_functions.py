"""Plain Python functions in a constexpr are called while the kernel is compiled, as Triton calls them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CompileError


@tl.constexpr
def accumulator(element: tl.dtype) -> tl.dtype:
    return tl.float32 if element.is_fp16() else element


def _factor(of: Any) -> Any:
    return 2 * of if of > 2 else tl.constexpr(1)


FACTOR = tl.constexpr(_factor)


@tilefw.jit
def summed(x_ptr, out_ptr, N: tl.constexpr):
    kind: tl.constexpr = accumulator(x_ptr.dtype.element_ty)
    x = tl.load(x_ptr + tl.arange(0, N)).to(kind)
    tl.store(out_ptr, tl.sum(x) * FACTOR(N))


MODULE = ModuleType("module")
vars(MODULE)["FACTOR"] = FACTOR


def _applied(function: Any, to: Any) -> Any:
    return function(to)


APPLIED = tl.constexpr(_applied)


@tilefw.jit
def by(FUNCTION: tl.constexpr, N: tl.constexpr):
    return FUNCTION(N)


@tilefw.jit
def handed_on(out_ptr):
    tl.store(out_ptr, MODULE.FACTOR(3) + by(FACTOR, 4) + APPLIED(FACTOR, 5))


@tilefw.jit
def told(x_ptr):
    tl.store(x_ptr, FACTOR(tl.load(x_ptr)))


def test_their_results_are_compile_time_values() -> None:
    x, out = np.full(4, 40000, np.float16), np.zeros(1, np.float32)
    summed[1,](x, out, N=4)
    assert out[0] == 4 * 40000 * 8


def test_they_know_no_run_time_values() -> None:
    with pytest.raises(CompileError, match="compile time") as error:
        told[1,](np.ones(1, np.float32))
    assert error.value.code in ("TFW0114", "TFW0106")


def test_they_are_read_from_modules_and_handed_on() -> None:
    out = np.zeros(1, np.int32)
    handed_on[1,](out)
    assert out[0] == 2 * (3 + 4 + 5)


@tilefw.jit
def by_argument(out_ptr, FUNCTION: tl.constexpr, DEFAULT: tl.constexpr = _factor):
    tl.store(out_ptr, FUNCTION(3) + by(FUNCTION, 4) + DEFAULT(5))


def test_they_may_be_arguments_and_their_code_is_part_of_the_key() -> None:
    out = np.zeros(1, np.int32)
    for added in (7, 8):
        for function in (lambda x, added=added: x + added, eval(f"lambda x: x + {added}")):
            by_argument[(1,)](out, FUNCTION=function)
            assert out[0] == 3 + added + 4 + added + 10
