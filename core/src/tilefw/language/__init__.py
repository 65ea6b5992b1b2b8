"""`import tilefw.language as tl`: what kernel authors write. Names and behaviour are those of Triton 3.9's language.

Every function here is documented where it is defined and has its meaning in the front end. Types that Triton lacks: `int4`,
`uint4`, `float6e2m3`, `float6e3m2`, `float4e2m1`.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from typing import Any

from tilefw.language import extra, math
from tilefw.language.aggregates import aggregate, aggregate_replace
from tilefw.language.atomics import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_poll,
    atomic_store,
    atomic_xchg,
    atomic_xor,
)
from tilefw.language.block_pointers import advance, make_block_ptr
from tilefw.language.compile_time import _log2 as _log2
from tilefw.language.compile_time import _unwrap_if_constexpr as _unwrap_if_constexpr
from tilefw.language.compile_time import get_int_dtype as get_int_dtype
from tilefw.language.constants import constexpr, constexpr_type
from tilefw.language.control import condition, range, static_range
from tilefw.language.counting import histogram
from tilefw.language.creation import arange, full, num_programs, program_id, to_tensor, zeros, zeros_like
from tilefw.language.debug import device_assert, device_print, static_assert, static_print
from tilefw.language.dtypes import (
    TRITON_MAX_TENSOR_NUMEL,
    bfloat16,
    block_type,
    const,
    dtype,
    float4e2m1,
    float6e2m3,
    float6e3m2,
    float8e4b8,
    float8e4b15,
    float8e4nv,
    float8e5,
    float8e5b16,
    float16,
    float32,
    float64,
    int1,
    int4,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    pointer_type,
    str_to_ty,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)
from tilefw.language.elementwise import inline_asm_elementwise, map_elementwise
from tilefw.language.hints import assume, expect_zero, max_constancy, max_contiguous, multiple_of
from tilefw.language.math import (
    PropagateNan,
    abs,
    add,
    cdiv,
    ceil,
    clamp,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    fdiv,
    floor,
    fma,
    log,
    log2,
    maximum,
    minimum,
    mul,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    sqrt_rn,
    sub,
    swizzle2d,
    umulhi,
    where,
)
from tilefw.language.matrix import dot, dot_scaled
from tilefw.language.memory import debug_barrier, load, store
from tilefw.language.random import (
    pair_uniform_to_normal,
    philox,
    philox_impl,
    rand,
    rand4x,
    randint,
    randint4x,
    randn,
    randn4x,
    uint_to_uniform_float,
)
from tilefw.language.rearrange import cat, flip, gather, interleave, join, split
from tilefw.language.reduction import argmax, argmin, max, min, reduce, reduce_or, softmax, sum, xor_sum
from tilefw.language.scan import associative_scan, cumprod, cumsum
from tilefw.language.shape import (
    broadcast,
    broadcast_to,
    cast,
    expand_dims,
    permute,
    ravel,
    reshape,
    squeeze,
    trans,
    unsqueeze,
    view,
)
from tilefw.language.sorting import bitonic_merge, sort, topk
from tilefw.language.tensor import tensor
from tilefw.language.tensor_descriptors import (
    load_tensor_descriptor,
    make_tensor_descriptor,
    store_tensor_descriptor,
    tensor_descriptor,
    tensor_descriptor_type,
)

# Tuples and slices of a kernel are Python's own.
tuple = builtins.tuple
slice = builtins.slice

# Triton keeps its language in these two modules, and some programs name them: `tl.core.view` is `tl.view`.
core = standard = sys.modules[__name__]
# `triton.aggregate` is defined there as this, and older programs name it so.
_aggregate = aggregate
del aggregate
# Triton's `core` has it, and programs take it for a default.
CONSTEXPR_0 = constexpr(0)

__all__ = [
    "PropagateNan", "TRITON_MAX_TENSOR_NUMEL", "abs", "add", "advance", "aggregate_replace", "arange", "argmax", "argmin",
    "associative_scan", "assume", "atomic_add", "atomic_and", "atomic_cas", "atomic_load", "atomic_max", "atomic_min",
    "atomic_or", "atomic_poll", "atomic_store", "atomic_xchg", "atomic_xor", "bfloat16", "bitonic_merge", "block_type",
    "broadcast", "broadcast_to", "cast", "cat", "cdiv", "ceil", "clamp", "condition", "const", "constexpr", "constexpr_type",
    "cos", "cumprod", "cumsum", "debug_barrier", "device_assert", "device_print", "div_rn", "dot", "dot_scaled", "dtype", "erf",
    "exp", "exp2", "expand_dims", "expect_zero", "extra", "fdiv", "flip", "float16", "float32", "float4e2m1", "float64",
    "float6e2m3", "float6e3m2", "float8e4b15", "float8e4b8", "float8e4nv", "float8e5", "float8e5b16", "floor", "fma", "full",
    "gather", "histogram", "inline_asm_elementwise", "int1", "int16", "int32", "int4", "int64", "int8", "interleave", "join",
    "load", "load_tensor_descriptor", "log", "log2", "make_block_ptr", "make_tensor_descriptor", "map_elementwise", "math",
    "max", "max_constancy", "max_contiguous", "maximum", "min", "minimum", "mul", "multiple_of", "num_programs",
    "pair_uniform_to_normal", "permute", "philox", "philox_impl", "pi32_t", "pointer_type", "program_id", "rand", "rand4x",
    "randint", "randint4x", "randn", "randn4x", "range", "ravel", "reduce", "reduce_or", "reshape", "rsqrt", "sigmoid", "sin",
    "slice", "softmax", "sort", "split", "sqrt", "sqrt_rn", "squeeze", "static_assert", "static_print", "static_range", "store",
    "store_tensor_descriptor", "str_to_ty", "sub", "sum", "swizzle2d", "tensor", "tensor_descriptor", "tensor_descriptor_type",
    "to_tensor", "topk", "trans", "tuple", "uint16", "uint32", "uint4", "uint64", "uint8", "uint_to_uniform_float", "umulhi",
    "unsqueeze", "view", "void", "where", "xor_sum", "zeros", "zeros_like",
]


def __getattr__(name: str) -> Any:
    if name == "target_info":  # which chip is chosen is for later packages to know
        return importlib.import_module("tilefw.triton.target_info")
    if name in ("builtin", "extern"):  # of Triton's `core` alone: kernels have no use for them
        return getattr(importlib.import_module("tilefw.language.compiler_extension"), name)
    raise AttributeError(f"tilefw.language has no name {name!r}")
