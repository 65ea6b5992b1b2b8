"""`*args` of a jit function: what remains of the arguments by position, as a tuple."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.debug
import tilefw.language as tl
from tilefw.api.errors import CompileError, LaunchError


@tilefw.jit
def total(first, *rest, scale=1.0):
    found = first
    for i in tl.static_range(len(rest)):
        found = found + rest[i] * scale
    return found


@tilefw.jit
def combined(out_ptr, *args, BLOCK: tl.constexpr, SCALE: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    found = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(len(args)):
        if args[i].dtype.is_ptr():
            found = total(found, tl.load(args[i] + offsets))
        else:
            found = total(found, args[i], args[i], scale=SCALE)
    tl.store(out_ptr + offsets, total(found, *args[1:1]) + len(args))


@tilefw.jit
def names_rest(out_ptr):
    tl.store(out_ptr, total(1.0, rest=2.0))


@pytest.fixture
def out() -> np.ndarray:
    return np.zeros(8, np.float32)


def test_the_remaining_arguments_are_a_tuple(out: np.ndarray) -> None:
    x = np.arange(8, dtype=np.float32)
    for args, expected in (((x, x, x), 3 * x + 3), ((x, 2.5), x + 12), ((x, 3, 5), x + 35), ((), np.zeros(8))):
        combined[(1,)](out, *args, BLOCK=8, SCALE=2)
        assert np.array_equal(out, expected), args
    combined[(1,)](out, x, 2.5, BLOCK=8, SCALE=1)
    assert np.array_equal(out, x + 7)


def test_autotune_and_the_debugger_hand_them_on(out: np.ndarray) -> None:
    x = np.arange(8, dtype=np.float32)
    scaled = tilefw.heuristics({"SCALE": lambda named: len(named["args"])})(combined)
    tuned = tilefw.autotune([tilefw.Config({"BLOCK": 8}, num_warps=n) for n in (1, 2)], key=[], reset_to_zero=["out_ptr"])(scaled)
    tuned[(1,)](out, x, x, 1.5)
    assert np.array_equal(out, 2 * x + 2 * 3 * 1.5 + 3)
    with tilefw.debug.eager():
        combined[(1,)](out, x, BLOCK=8, SCALE=2)
    assert np.array_equal(out, x + 1)


def test_what_does_not_fit_is_told(out: np.ndarray) -> None:
    with pytest.raises(LaunchError, match="needs the argument `BLOCK`") as told:
        combined[(1,)](out, out)
    assert told.value.note is not None and "*args" in told.value.note
    with pytest.raises(LaunchError, match="knows no launch keyword 'args'"):
        combined[(1,)](out, args=out, BLOCK=8, SCALE=2)
    with pytest.raises(CompileError, match="parameter `args` of kernel `with_default` has neither a type"):
        tilefw.compile(with_default, signature={"out_ptr": "*fp32", "args.1": "fp32"}, target="amd-cdna3")
    with pytest.raises(CompileError, match="total has no parameter `rest` that can be named"):
        names_rest[(1,)](out)


@tilefw.jit
def of_constants(out_ptr, *args: tl.constexpr):
    found: tl.constexpr = args[0] + args[1]
    tl.store(out_ptr, found)


def test_each_of_them_is_a_constant_as_that_of_a_parameter_is(out: np.ndarray) -> None:
    for args in ((1, 2.5), (np.int64(1), np.float32(2.5)), (tl.constexpr(1), 2.5), (1, 3.5)):
        of_constants[(1,)](out, *args)
        assert out[0] == float(args[-1]) + 1, args


@tilefw.jit
def with_default(out_ptr, *args, SCALE: tl.constexpr = 2):
    tl.store(out_ptr, total(0.0, *args) * SCALE)


def test_a_compiled_kernel_is_launched_with_its_constants_by_name(out: np.ndarray) -> None:
    warm = with_default.warmup(tl.float32, 1.0, 2.0, grid=(1,), SCALE=3)
    warm[(1,)](out, 1.0, 2.0)
    assert out[0] == 9
    warm[(1,)](out, 1.0, SCALE=5)
    assert out[0] == 5


@tilefw.jit
def doubled(out_ptr, *args, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for i in tl.static_range(len(args) - 1):
        tl.store(args[i] + offsets, tl.load(args[i] + offsets) * 2 + args[len(args) - 1])
    tl.store(out_ptr, 1.0)


def test_autotune_keeps_arrays_among_them_as_they_were(out: np.ndarray) -> None:
    configs = [tilefw.Config({"BLOCK": 8}, num_warps=n) for n in (1, 2)]
    for option, expected in (("restore_value", 7), ("reset_to_zero", 1)):
        tuned = tilefw.autotune(configs, key=["args"], **{option: ["args"]})(doubled)
        x, y = np.full(8, 3, np.float32), np.full(8, 3, np.int32)
        tuned[(1,)](out, x, y, 1)
        assert x.tolist() == y.tolist() == [expected] * 8
        for args in ((x, x, 1), (x, np.zeros(16, np.float32), 1), (x, y, 2), (x, y, 1)):
            tuned[(1,)](out, *args)
        assert len(tuned.cache) == 4


@tilefw.jit
def scaled(out_ptr, *, BLOCK: tl.constexpr, scale=2):
    tl.store(out_ptr + tl.arange(0, BLOCK), scale * 1.0)


def test_parameters_behind_a_star_are_given_by_name_alone(out: np.ndarray) -> None:
    scaled[(1,)](out, BLOCK=1)
    assert out[0] == 2
    with pytest.raises(LaunchError, match=r"takes 1 arguments by position, not 2(.|\n)*\(out_ptr, \*, BLOCK: constexpr, scale\)"):
        scaled[(1,)](out, 1)
