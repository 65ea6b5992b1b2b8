"""Products by a processor's own instructions keep what is promised of products, on every family of instructions that is here."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.ir import FuncOp, entry_of, parse
from tilefw.hardware.processor_device import PROCESSOR_ENTRY
from tilefw_cpu.compile import NativeCode, object_of
from tilefw_cpu.emit import functions_text
from tilefw_cpu.matrix_engines import engines_of
from tilefw_cpu.processor import Processor, processor

TEXT = """builtin.module {{
func.func @k(%x: !tile.ptr<{t}>, %y: !tile.ptr<{t}>, %z: !tile.ptr<{s}>) {{
%zero = tile.constant 0 : i32
%one = tile.constant 1 : i32
%n = tile.constant {n} : i32
%k = tile.constant {k} : i32
%a = tile.load_block %x at (%zero, %zero : i32, i32) strides (%k, %one : i32, i32) : !tile.ptr<{t}>, tensor<{m}x{k}x{t}>
%b = tile.load_block %y at (%zero, %zero : i32, i32) strides (%n, %one : i32, i32) : !tile.ptr<{t}>, tensor<{k}x{n}x{t}>
%c = tile.load_block %z at (%zero, %zero : i32, i32) strides (%n, %one : i32, i32) : !tile.ptr<{s}>, tensor<{m}x{n}x{s}>
%d = tile.dot %a, %b, %c {word}: tensor<{m}x{k}x{t}>, tensor<{k}x{n}x{t}>, tensor<{m}x{n}x{s}>
tile.store_block %z, %d at (%zero, %zero : i32, i32) strides (%n, %one : i32, i32) : !tile.ptr<{s}>, tensor<{m}x{n}x{s}>
func.return
}}
}}"""
TYPES = {
    **dict.fromkeys(("f32", "tf32", "bf16x3"), np.float32), "bf16": ml_dtypes.bfloat16, "f16": np.float16,
    "f8E5M2": ml_dtypes.float8_e5m2, "i8": np.int8, "u8": np.uint8,
}
WORDS = {"u8": "unsigned ", "tf32": "tf32 ", "bf16x3": "bf16x3 "}
"""How factors of a type, or of f32 with a precision, are multiplied."""
HIDDEN = ((), ("amx",), ("amx", "avx512"))
"""Prefixes of the features that a processor is taken not to have: tiles, vectors of 512 bits, of 256."""
M, N, K = 144, 64, 32


def _without(hidden: tuple[str, ...]) -> Processor:
    here = processor()
    gone = frozenset(name for name in here.features if name.startswith(hidden)) if hidden else frozenset[str]()
    return replace(here, features=here.features - gone, absent=here.absent | gone)


@cache
def _code(found: Processor, type_: str, sizes: tuple[int, int, int]) -> tuple[NativeCode, str, int]:
    """The code of a product, its text, and the bytes of scratch that it needs."""
    sums = "i32" if type_ in ("i8", "u8") else "f32"
    stored = {"u8": "i8", "tf32": "f32", "bf16x3": "f32"}.get(type_, type_)
    m, n, k = sizes
    text = TEXT.format(t=stored, s=sums, m=m, n=n, k=k, word=WORDS.get(type_, ""))
    functions = [(op, entry_of(op)) for op in parse(text, "k").body.block.ops if isinstance(op, FuncOp)]
    written, emitted = functions_text(functions, found, False)
    return NativeCode(object_of(written, found), found), written, emitted["k"].scratch_bytes


def _product(found: Processor, type_: str, a: Any, b: Any, c: Any) -> tuple[Any, str]:
    """a · b + c by the processor's code, and its text."""
    code, written, needed = _code(found, type_, (*c.shape, a.shape[1]))
    made = c.copy()
    block = (ctypes.c_uint64 * 3)(*(array.ctypes.data for array in (a, b, made)))
    scratch = np.empty(needed + 64, np.uint8)
    counter = (ctypes.c_int64 * 2)()
    place = -(-scratch.ctypes.data // 64) * 64
    assert PROCESSOR_ENTRY(code.address("k"))(ctypes.addressof(block), place, ctypes.addressof(counter), 1, 1, 1, 1) == 0
    return made, written


def _random(type_: str, rows: int, columns: int, seed: int) -> Any:
    random, dtype = np.random.default_rng(seed), TYPES[type_]
    if type_ in ("i8", "u8"):
        return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (rows, columns), dtype, endpoint=True)
    return random.standard_normal((rows, columns)).astype(dtype)


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("type_", ["i8", "u8"])
def test_bytes_are_summed_up_exactly(type_: str, hidden: tuple[str, ...]) -> None:
    found = _without(hidden)
    if type_ not in engines_of(found):
        pytest.skip("the processor has no products of bytes")
    a, b, c = _random(type_, M, K, 0), _random(type_, K, N, 1), np.arange(M * N, dtype=np.int32).reshape(M, N) - 99
    a[0], b[:, 0] = np.iinfo(a.dtype).min, np.iinfo(a.dtype).max
    made, text = _product(found, type_, a, b, c)
    assert engines_of(found)[type_].instructions[type_] in text
    assert np.array_equal(made, a.astype(np.int32) @ b.astype(np.int32) + c)


@pytest.mark.parametrize("type_", ["f32", "bf16", "f16", "f8E5M2"])
def test_floats_are_within_the_bound_subnormal_and_infinite_ones_too(type_: str) -> None:
    """The instructions take what is subnormal for zero, and an infinity is no sum of two halves: neither may show."""
    found = processor()
    taken = type_ if type_ == "f16" else "bf16"
    if taken not in engines_of(found):
        pytest.skip("the processor has no products of pairs")
    a, b = _random(type_, M, K, 0), _random(type_, K, N, 1)
    c = np.random.default_rng(2).standard_normal((M, N)).astype(np.float32)
    c[3] = 1e-40
    b[:, 7] = 0
    _within_bound(found, type_, a, b, c)
    wide = type_ in ("f32", "bf16")
    small = 2.0**-70 if wide else 2.0**-14
    tiny, little = (a.astype(np.float64) * small).astype(a.dtype), (b.astype(np.float64) * small).astype(a.dtype)
    _within_bound(found, type_, tiny, little, np.zeros_like(c))  # products below 2^-126, or subnormal factors
    a[5], c[5] = 0, 0  # but for one subnormal number
    a[5, 3] = 1e-40 if wide else 6e-8
    b = (b.astype(np.float64) * (1e20 if wide else 1)).astype(a.dtype)
    _within_bound(found, type_, a, b, c)
    a[6, 2], a[8, 0] = np.inf, np.nan
    _within_bound(found, type_, a, b, c)


@pytest.mark.parametrize(("type_", "bits"), [("f32", 24), ("tf32", 11), ("bf16x3", 8)])
def test_numbers_of_a_precision_are_multiplied_as_they_are(type_: str, bits: int) -> None:
    """Of their last bits nothing is lost, those that are all ones too; sums that fit are exact."""
    found = processor()
    if type_ not in engines_of(found):
        pytest.skip("the processor has no products of pairs")
    drop = np.uint32(0xFFFFFFFF << (24 - bits) & 0xFFFFFFFF)
    a, b = ((_random(type_, *shape, 3).view(np.uint32) & drop).view(np.float32) for shape in [(M, K), (K, N)])
    most = np.array([0x3FFFFFFF], np.uint32) & drop
    a[7], b[:, 9] = most.view(np.float32), -most.view(np.float32)
    _within_bound(found, type_, a, b, np.zeros((M, N), np.float32))
    limit = 2 ** min(9, bits // 2)
    random = np.random.default_rng(0)
    a, b = (random.integers(1 - limit, limit, shape).astype(np.float32) for shape in [(M, K), (K, N)])
    a[0], b[:, 0] = 0, 0
    a[0, 3], b[3] = 2 ** (bits - 1) + 1, 1
    made, _ = _product(found, type_, a, b, np.zeros((M, N), np.float32))
    assert np.array_equal(made, a.astype(np.float64) @ b)


@pytest.mark.parametrize("type_", ["f32", "f16"])
def test_rows_that_no_vector_of_parts_divides_are_multiplied(type_: str) -> None:
    """Those of a block, of which there is one, end within a vector, and behind them are the rows of the next part."""
    found = processor()
    if type_ not in engines_of(found):
        pytest.skip("the processor has no products of pairs")
    sizes = 129, 32, 48
    a, b = _random(type_, sizes[0], sizes[2], 0), _random(type_, sizes[2], sizes[1], 1)
    _within_bound(found, type_, a, b, _random("f32", sizes[0], sizes[1], 2))


def _within_bound(found: Processor, type_: str, a: Any, b: Any, c: Any) -> None:
    made, text = _product(found, type_, a, b, c)
    assert engines_of(found)["f16" if type_ == "f16" else "bf16"].instructions["bf16"] in text
    wide = [each.astype(np.float64) for each in (a, b, c)]
    with np.errstate(all="ignore"):
        exact = wide[0] @ wide[1] + wide[2]
        reach = np.abs(wide[0]) @ np.abs(wide[1]) + np.abs(wide[2])
    np.testing.assert_array_equal(np.isfinite(made), np.isfinite(exact))
    finite = np.isfinite(exact)
    limit = (a.shape[1] + 1) * (2.0**-23 * reach + 2.0**-149)
    assert (np.abs(made[finite] - exact[finite]) <= limit[finite]).all()
    np.testing.assert_array_equal(made[~finite], exact[~finite].astype(np.float32))


@tilefw.jit
def two_shapes(a, b, c, out, turns):
    small, wide = tl.arange(0, 16), tl.arange(0, 64)
    left = tl.load(a + small[:, None] * 64 + wide[None, :])
    right = tl.load(b + wide[:, None] * 16 + small[None, :])
    last = tl.load(c + small[:, None] * 64 + wide[None, :])
    total = tl.zeros((16, 64), tl.float32)
    for _ in range(turns):
        first = tl.dot(left, right).to(tl.bfloat16)
        total = tl.dot(first, last, total)
    tl.store(out + small[:, None] * 64 + wide[None, :], total)


def test_products_of_two_shapes_take_turns() -> None:
    """The tiles are configured for each."""
    random = np.random.default_rng(0)
    a, b, c = (random.integers(-1, 2, shape).astype(ml_dtypes.bfloat16) for shape in [(16, 64), (64, 16), (16, 64)])
    out = np.empty((16, 64), np.float32)
    two_shapes[(1,)](a, b, c, out, 3)
    assert np.array_equal(out, 3 * ((a.astype(np.float32) @ b.astype(np.float32)) @ c.astype(np.float32)))


@tilefw.jit
def in_steps(a, b, out, turns, WHOLE: tl.constexpr):
    size = tl.arange(0, 32)
    total = tl.zeros((32, 32), tl.int32 if WHOLE else tl.float32)
    for turn in range(turns):
        left = tl.load(a + turn * 1024 + size[:, None] * 32 + size[None, :])
        right = tl.load(b + turn * 1024 + size[:, None] * 32 + size[None, :])
        total = tl.dot(left, right, total)
    tl.store(out + size[:, None] * 32 + size[None, :], total)


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_sums_begin_with_the_first_product_that_there_is(turns: int) -> None:
    """Those of no turn are zeros, and those that loops begin, because of a subnormal factor, begin at zero too."""
    random = np.random.default_rng(turns)
    for type_ in ("bf16", "i8"):
        a, b = (random.integers(-9, 10, (3, 32, 32)).astype(TYPES[type_]) for _ in range(2))
        for turn in range(3):
            if type_ == "bf16":
                a[turn, 1, 1] = 1e-39
            out = np.full((32, 32), 77, np.int32 if type_ == "i8" else np.float32)
            in_steps[(1,)](a, b, out, turns, WHOLE=type_ == "i8")
            wide = [each[:turns].astype(np.float64) for each in (a, b)]
            assert np.abs(out - (wide[0] @ wide[1]).sum(0)).max() < 1e-30
            a[turn, 1, 1] = 1


@tilefw.jit
def kept_twice(a, b, out, last, turns):
    size = tl.arange(0, 32)
    at = size[:, None] * 32 + size[None, :]
    total, before = tl.zeros((32, 32), tl.float32), tl.load(last + at)
    for turn in range(turns):
        total = tl.dot(tl.load(a + turn * 1024 + at), tl.load(b + turn * 1024 + at), total)
        before = total
    tl.store(out + at, total)
    tl.store(last + at, before)


def test_sums_that_a_loop_carries_twice_begin_at_zero() -> None:
    """Also those that loops begin, because of a subnormal factor."""
    a, b = (np.random.default_rng(seed).integers(-9, 10, (2, 32, 32)).astype(ml_dtypes.bfloat16) for seed in (0, 1))
    a[0, 1, 1] = 1e-39
    out, last = (np.full((32, 32), 77, np.float32) for _ in range(2))
    kept_twice[(1,)](a, b, out, last, 2)
    assert np.abs(out - (a.astype(np.float64) @ b.astype(np.float64)).sum(0)).max() < 1e-30
    assert np.array_equal(out, last)


@tilefw.jit
def across_batches(x, y, out, turns):
    size = tl.arange(0, 16)
    at = size[:, None, None] * 256 + size[None, :, None] * 16 + size[None, None, :]
    total, right = tl.load(x + at), tl.load(y + at)
    for _ in range(turns):
        total = tl.dot(tl.permute(total, (1, 0, 2)).to(tl.bfloat16), right, total)
    tl.store(out + at, total)


def test_a_factor_from_sums_of_all_batches_is_there_until_the_last() -> None:
    random = np.random.default_rng(0)
    total, right = (random.integers(-1, 2, (16, 16, 16)).astype(np.float32) for _ in range(2))
    out = np.empty_like(total)
    across_batches[(1,)](total, right.astype(ml_dtypes.bfloat16), out, 2)
    once = total.transpose(1, 0, 2) @ right + total
    assert np.array_equal(out, once.transpose(1, 0, 2) @ right + once)


@pytest.mark.parametrize("type_", ["f32", "tf32", "bf16x3", "f16", "bf16"])
def test_a_nan_is_one_whatever_it_is_multiplied_by(type_: str) -> None:
    """The first part of one with low bits alone is an infinity."""
    found = processor()
    if type_ not in engines_of(found):
        pytest.skip("the processor has no products of pairs")
    a, b = _random(type_, M, K, 0), _random(type_, K, N, 1)
    word = np.uint32 if a.itemsize == 4 else np.uint16
    signalling = {"f16": 0x7C01, "bf16": 0x7F81}.get(type_, 0x7F800001)
    b[3], a[5] = 0, 0
    a.view(word)[7, 3], b.view(word)[4, 9] = signalling, signalling
    made, _ = _product(found, type_, a, b, np.zeros((M, N), np.float32))
    wanted = np.zeros((M, N), bool)
    wanted[7], wanted[:, 9] = True, True
    assert np.array_equal(np.isnan(made), wanted)
