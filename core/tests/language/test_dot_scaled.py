"""tl.dot_scaled is the product of elements times scales in NumPy: every format, packing, scale and shape, in the op's own meaning
and as it is written for chips without such products."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.frontend import build_module
from tilefw.passes.expand_dot_scaled import ExpandDotScaledPass
from tilefw.passes.manager import PassManager
from tilefw.tile.dialect.dot_scaled_op import DotScaledOp
from tilefw.tile.reference.interpret import RefPointer, run
from tilefw.tile.reference.memory import RefMemory

FORMATS = {
    "e2m1": (ml_dtypes.float4_e2m1fn, 4, "u8"), "e2m3": (ml_dtypes.float6_e2m3fn, 6, "fp6e2m3"),
    "e3m2": (ml_dtypes.float6_e3m2fn, 6, "fp6e3m2"), "e4m3": (ml_dtypes.float8_e4m3fn, 8, "u8"),
    "e5m2": (ml_dtypes.float8_e5m2, 8, "fp8e5"), "fp16": (np.float16, 16, "fp16"), "bf16": (ml_dtypes.bfloat16, 16, "u16"),
}
LEFT, RIGHT, DEEP = 16, 8, 128
UNIT = 2.0**-23  # of one rounding, also one that cuts


@tilefw.jit
def product(a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, A_K_PACK: tl.constexpr,
            B_K_PACK: tl.constexpr, SCALED: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUPS: tl.constexpr):
    A_BYTES: tl.constexpr = 2 if A == "e2m1" else 1
    B_BYTES: tl.constexpr = 2 if B == "e2m1" else 1
    A_M: tl.constexpr = M if A_K_PACK else M // A_BYTES
    A_K: tl.constexpr = K // A_BYTES if A_K_PACK else K
    B_N: tl.constexpr = N if B_K_PACK else N // B_BYTES
    B_K: tl.constexpr = K // B_BYTES if B_K_PACK else K
    a = tl.load(a_ptr + tl.arange(0, A_M)[:, None] * A_K + tl.arange(0, A_K)[None, :])
    b = tl.load(b_ptr + tl.arange(0, B_K)[:, None] * B_N + tl.arange(0, B_N)[None, :])
    groups = tl.arange(0, GROUPS)[None, :]
    a_scale = None
    b_scale = None
    if "a" in SCALED:
        a_scale = tl.load(a_scale_ptr + tl.arange(0, M)[:, None] * GROUPS + groups)
    if "b" in SCALED:
        b_scale = tl.load(b_scale_ptr + tl.arange(0, N)[:, None] * GROUPS + groups)
    y = tl.dot_scaled(a, a_scale, A, b, b_scale, B, lhs_k_pack=A_K_PACK, rhs_k_pack=B_K_PACK)
    tl.store(out_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], y)


class Problem:
    """Random codes of two matrices and their scales, packed as the kernel takes them, and their product in float64."""

    def __init__(
        self, a: str, b: str, scaled: str = "ab", group: int = 32, kind: str = "e8m0",
        packing: tuple[bool, bool] = (True, True), seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.constexprs = {"A": a, "B": b, "A_K_PACK": packing[0], "B_K_PACK": packing[1], "SCALED": scaled, "M": LEFT, "N": RIGHT,
                           "K": DEEP, "GROUPS": DEEP // group}
        left, left_bytes = elements(rng, a, (LEFT, DEEP), -1 if packing[0] else -2)
        right, right_bytes = elements(rng, b, (DEEP, RIGHT), -2 if packing[1] else -1)
        rows, row_bytes = scales(rng, kind, (LEFT, DEEP // group))
        columns, column_bytes = scales(rng, kind, (RIGHT, DEEP // group))
        self.arrays = [left_bytes, right_bytes, row_bytes, column_bytes]
        type = "u8" if kind == "e8m0" else "fp8e4nv"
        self.types = [FORMATS[a][2], FORMATS[b][2], type, type, "fp32"]
        left = left * np.repeat(rows, group, 1) if "a" in scaled else left
        right = right * np.repeat(columns, group, 1).T if "b" in scaled else right
        self.wanted, self.magnitude = left @ right, np.abs(left) @ np.abs(right)

    def check(self, found: np.ndarray) -> None:
        """Sums that may overflow may be anything; all others are within what one rounding each step allows."""
        sure = self.magnitude < 2.0**127
        nan = np.isnan(self.wanted)
        assert (sure | nan).sum() > self.wanted.size // 8
        assert np.isnan(found[nan]).all()
        bound = (DEEP + 4) * (UNIT * self.magnitude[sure] + 2.0**-149)
        assert (np.abs(found[sure] - self.wanted[sure]) <= bound).all()


def elements(rng: np.random.Generator, format: str, shape: tuple[int, int], axis: int) -> tuple[np.ndarray, np.ndarray]:
    """All finite elements alike, but of bf16 those within 2^40; a byte of e2m1 has two neighbours along `axis`."""
    type, bits, _ = FORMATS[format]
    codes = rng.integers(0, 1 << bits, shape).astype(np.uint16 if bits == 16 else np.uint8)
    if format == "bf16":
        codes = np.ldexp(rng.standard_normal(shape), rng.integers(-40, 41, shape)).astype(type).view(np.uint16)
    with np.errstate(invalid="ignore"):
        codes = np.where(np.isfinite(codes.view(type).astype(np.float64)), codes, 0).astype(codes.dtype)
    values = codes.view(type).astype(np.float64)
    if bits != 4:
        return values, codes
    last = np.moveaxis(codes, axis, -1)
    return values, np.ascontiguousarray(np.moveaxis(last[..., ::2] + 16 * last[..., 1::2], -1, axis))


def scales(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Any scales of e4m3; scales of e8m0 that are near one another in a row."""
    codes = rng.integers(0, 0x7F, shape)
    if kind == "e4m3":
        return codes.astype(np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64), codes.astype(np.uint8)
    codes = np.clip(rng.integers(0, 255, (shape[0], 1)) + rng.integers(-9, 10, shape), 0, 254)
    codes[0, 0] = 255
    return np.where(codes == 255, np.nan, 2.0 ** (codes - 127.0)), codes.astype(np.uint8)


def interpreted(problem: Problem, expanded: bool) -> np.ndarray:
    names = ("a_ptr", "b_ptr", "a_scale_ptr", "b_scale_ptr", "out_ptr")
    signature = {name: f"*{type}" for name, type in zip(names, problem.types, strict=True)}
    module = build_module(product, signature, problem.constexprs)
    if expanded:
        PassManager([ExpandDotScaledPass()], "reference").run(module)
        assert not any(isinstance(op, DotScaledOp) for op in module.walk())
    module.verify()
    memory = RefMemory()
    buffers = []
    for array in (*problem.arrays, np.zeros((LEFT, RIGHT), np.float32)):
        buffers.append(memory.allocate(array.nbytes, "", False))
        buffers[-1].write_bytes(memoryview(array.tobytes()), 0)
    run(module, "product", (1, 1, 1), [RefPointer(buffer, 0) for buffer in buffers], memory=memory)
    return np.frombuffer(buffers[-1].read_bytes(4 * LEFT * RIGHT, 0), np.float32).reshape(LEFT, RIGHT)


PROBLEMS: dict[str, dict[str, Any]] = {
    **{f"{a} by {b}": {"a": a, "b": b} for a in ("e2m1", "e4m3", "e5m2") for b in ("e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "fp16")},
    "halves": {"a": "fp16", "b": "fp16"}, "bf16 by a scaled format": {"a": "bf16", "b": "e5m2", "scaled": "b"},
    "scaled bf16": {"a": "bf16", "b": "e4m3"}, "bf16 by fp16": {"a": "bf16", "b": "fp16", "scaled": ""},
    "NVFP4": {"a": "e2m1", "b": "e2m1", "group": 16, "kind": "e4m3"},
    "NVFP4 by bf16": {"a": "e2m1", "b": "bf16", "scaled": "a", "group": 16, "kind": "e4m3"},
    "groups of 16": {"a": "e2m1", "b": "e4m3", "group": 16}, "a's scales": {"a": "e4m3", "b": "e2m1", "scaled": "a"},
    "b's scales": {"a": "e2m1", "b": "e4m3", "scaled": "b"}, "no scales": {"a": "e2m1", "b": "e5m2", "scaled": ""},
    "packed along M and N": {"a": "e2m1", "b": "e2m1", "packing": (False, False)},
    "packed along K and N": {"a": "e2m1", "b": "e2m1", "packing": (True, False)},
}


@pytest.mark.parametrize("expanded", [False, True], ids=["as it is", "expanded"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_elements_times_scales_multiply(name: str, expanded: bool) -> None:
    for seed in (1, 2):
        problem = Problem(**PROBLEMS[name], seed=seed)
        problem.check(interpreted(problem, expanded))


@pytest.mark.parametrize("format", ["e4m3", "e5m2", "e2m1"])
def test_scales_at_opposite_ends_of_their_range_give_ordinary_numbers(format: str) -> None:
    """The largest scale times the largest element is no float32, and the least times the least none either; their products are."""
    for codes in ((254, 0), (0, 254), (254, 1), (127, 127)):
        problem = Problem(format, format, seed=3)
        left, right = (np.full_like(array, code) for array, code in zip(problem.arrays[2:], codes, strict=True))
        problem.arrays[2:] = [left, right]
        rng = np.random.default_rng(3)
        values = [elements(rng, format, (LEFT, DEEP), -1)[0], elements(rng, format, (DEEP, RIGHT), -2)[0]]
        factor = 2.0 ** (sum(codes) - 254)
        problem.wanted, problem.magnitude = values[0] @ values[1] * factor, np.abs(values[0]) @ np.abs(values[1]) * factor
        for expanded in (False, True):
            problem.check(interpreted(problem, expanded))


@tilefw.jit
def added_to_product(a_ptr, b_ptr, scale_ptr, x_ptr, M: tl.constexpr, K: tl.constexpr):
    m, k, group = tl.arange(0, M), tl.arange(0, K), tl.arange(0, K // 32)
    a, b = tl.load(a_ptr + m[:, None] * K + k), tl.load(b_ptr + k[:, None] * M + m)
    scale = tl.load(scale_ptr + m[:, None] * (K // 32) + group)
    at = x_ptr + m[:, None] * M + m
    tl.store(at, tl.load(at) + tl.dot_scaled(a, scale, "e4m3", b, scale, "e4m3"))


@pytest.mark.parametrize("x, exact", [(7.0, True), (0.1, False)])
def test_a_product_with_scales_may_be_summed_onto_what_it_is_added_to(x: float, exact: bool) -> None:
    three, scale = np.full((16, 64), 0x44, np.uint8), np.full((16, 2), 128, np.uint8)
    sums = np.full((16, 16), x, np.float32)
    found = tilefw.reference(added_to_product, (1,), three, three.reshape(64, 16), scale, sums, M=16, K=64)["x_ptr"]
    assert np.allclose(found.value, 64 * 36 + x, rtol=1e-7)
    assert (found.bound < 1e-300 if exact else (found.bound > 32 * 2.0**-23 * 2304) & (found.bound < 70 * 2.0**-23 * 2304)).all()
