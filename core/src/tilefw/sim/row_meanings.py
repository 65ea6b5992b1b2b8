"""What rows of the elementwise table compute, on NumPy arrays: for simulators whose instructions are rows.

An element is kept as its code in an unsigned word (an i1 as a bool, f32 as a float), whatever computes it. Floats are binary32 with
subnormals, rounded to nearest even; integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilefw.sim.floats import Array

Meaning = Callable[..., Any]
"""What a row computes: arrays of elements in, one out."""

WORDS: dict[str, Any] = {
    "i1": np.bool_, "i4": np.uint8, "i8": np.uint8, "i16": np.uint16, "i32": np.uint32, "i64": np.uint64, "f16": np.uint16,
    "bf16": np.uint16, "f32": np.float32, "f64": np.uint64,
    **dict.fromkeys(
        ("f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "!tile.fp8e4b15", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN"), np.uint8
    ),
}
"""The word of each type in a register, and in memory."""


def signed(x: Array) -> Array:
    """The same bits, read with a sign."""
    return x.view({1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[x.dtype.itemsize])


def _shift(x: Array, y: Array, left: bool) -> Array:
    width = x.dtype.type(8 * x.dtype.itemsize)
    within = np.minimum(y, width - x.dtype.type(1))
    return np.where(y < width, x << within if left else x >> within, x.dtype.type(0))


def _shift_signed(x: Array, y: Array) -> Array:
    within = np.minimum(y, x.dtype.type(8 * x.dtype.itemsize - 1))
    return (signed(x) >> signed(within)).view(x.dtype)


def _divided(x: Array, y: Array) -> tuple[Array, Array]:
    """Quotient towards zero and remainder; by 0 the quotient is -1."""
    a, b = np.broadcast_arrays(signed(x), signed(y))
    one = b.dtype.type(1)
    small = np.where((b == 0) | (b == -1), one, b)
    quotient = (np.abs(a).view(x.dtype) // np.abs(small).view(x.dtype)).view(a.dtype)
    rest = np.fmod(a, small)
    quotient = np.where((a < 0) == (small < 0), quotient, -quotient)
    quotient = np.where(b == 0, -one, np.where(b == -1, -a, quotient))
    return quotient.view(x.dtype), np.where(b == 0, a, np.where(b == -1, 0 * one, rest)).view(x.dtype)


def _fused(x: Array, y: Array, z: Array) -> Array:
    """x · y + z rounded once: in f64, rounded to odd, then to f32."""
    product, addend = x.astype(np.float64) * y, z.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    even = (total.view(np.int64) & 1) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    return np.where(np.isfinite(total) & (error != 0) & even, np.nextafter(total, towards), total).astype(np.float32)


def _to_integer(x: Array, bits: int, has_sign: bool) -> Array:
    low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if has_sign else (0.0, 2.0**bits)
    wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=high, neginf=low))
    word, kind = (np.uint32, np.int32) if bits == 32 else (np.uint64, np.int64)
    inside = np.where((wide >= high) | (wide < low), 0.0, wide)
    least, most = (1 << (bits - 1), (1 << (bits - 1)) - 1) if has_sign else (0, (1 << bits) - 1)
    found = inside.astype(kind).view(word) if has_sign else inside.astype(word)
    return np.where(wide >= high, word(most), np.where(wide < low, word(least), found))


def _rows() -> dict[str, Meaning]:
    rows: dict[str, Meaning] = {f"select.{t}": lambda p, x, y: np.where(p, x, y) for t in WORDS}
    bitwise = {"andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor}
    rows |= {f"{row}.i1": meaning for row, meaning in bitwise.items()}
    for t, bits in (("i32", 32), ("i64", 64)):
        rows |= {f"{row}.{t}": meaning for row, meaning in bitwise.items()} | {
            f"addi.{t}": np.add, f"subi.{t}": np.subtract, f"muli.{t}": np.multiply, f"eqi.{t}": np.equal, f"ltu.{t}": np.less,
            f"lts.{t}": lambda x, y: signed(x) < signed(y), f"minu.{t}": np.minimum, f"maxu.{t}": np.maximum,
            f"mins.{t}": lambda x, y: np.minimum(signed(x), signed(y)).view(x.dtype),
            f"maxs.{t}": lambda x, y: np.maximum(signed(x), signed(y)).view(x.dtype),
            f"shl.{t}": lambda x, y: _shift(x, y, True), f"shru.{t}": lambda x, y: _shift(x, y, False), f"shrs.{t}": _shift_signed,
            f"divs.{t}": lambda x, y: _divided(x, y)[0], f"rems.{t}": lambda x, y: _divided(x, y)[1],
            f"s2f.{t}.f32": lambda x: signed(x).astype(np.float32), f"u2f.{t}.f32": lambda x: x.astype(np.float32),
            f"f2s.f32.{t}": lambda x, n=bits: _to_integer(x, n, True), f"f2u.f32.{t}": lambda x, n=bits: _to_integer(x, n, False),
        }
    return rows | {
        "mulhu.i32": lambda x, y: (x.astype(np.uint64) * y >> np.uint64(32)).astype(np.uint32),
        "exts.i32.i64": lambda x: signed(x).astype(np.int64).view(np.uint64), "extu.i32.i64": lambda x: x.astype(np.uint64),
        "trunci.i64.i32": lambda x: x.astype(np.uint32),
        "addf.f32": np.add, "subf.f32": np.subtract, "mulf.f32": np.multiply, "fma.f32": _fused, "divf.f32": np.divide,
        "div_rn.f32": np.divide, "sqrt_rn.f32": np.sqrt, "sqrt.f32": np.sqrt, "eqf.f32": np.equal, "ltf.f32": np.less,
        "lef.f32": np.less_equal, "exp2.f32": lambda x: np.exp2(x.astype(np.float64)).astype(np.float32),
        "castf.f16.f32": lambda x: x.view(np.float16).astype(np.float32),
    }


ROW_MEANINGS: dict[str, Meaning] = _rows()
"""The meaning of each row, by its key; a machine takes those that it has."""
