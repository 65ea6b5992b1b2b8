"""A chip in NumPy for tests of the expansions: it has the rows that it is told, each with its exact or table meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.simt.expand.builder import TYPES
from tilefw.tile.elementwise.meaning import fused, fused_wide

WORDS = {"i1": np.bool_, "i32": np.uint32, "i64": np.uint64, "f32": np.float32, "f64": np.float64}


@dataclass(frozen=True)
class Lanes:
    """One value per lane: small types as their code in uint32."""

    data: np.ndarray[Any, Any]
    type: str


def _signed(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x.view(np.int32 if x.dtype == np.uint32 else np.int64)


def _shift(x: Any, y: Any, row: str) -> Any:
    width = x.dtype.itemsize * 8
    amount = np.minimum(y, width - 1).astype(x.dtype)
    if row == "shrs":
        return (_signed(x) >> _signed(amount)).view(x.dtype)
    shifted = x << amount if row == "shl" else x >> amount
    return np.where(y >= width, x.dtype.type(0), shifted)


def _f2s(x: Any, to: str) -> Any:
    bits = 32 if to == "i32" else 64
    whole = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0, posinf=1e30, neginf=-1e30)
    low, high = whole <= -(2.0 ** (bits - 1)), whole >= 2.0 ** (bits - 1)
    inner = np.where(low | high, 0, whole).astype(np.int64)
    result = np.where(low, -(1 << (bits - 1)), np.where(high, (1 << (bits - 1)) - 1, inner))
    return result.astype(np.int32 if bits == 32 else np.int64).view(WORDS[to])


def _fma(x: Any, y: Any, z: Any, to: str) -> Any:
    wide = [a.astype(np.float64) for a in (x, y, z)]
    return (fused if to == "f32" else fused_wide)(*wide).astype(WORDS[to])


BINARY = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor,
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "div_rn": np.divide,
    "eqi": np.equal, "ltu": np.less, "eqf": np.equal, "ltf": np.less, "lef": np.less_equal,
}


class NumpyChip:
    """See `tilefw.simt.expand.builder.ExpansionBuilder`; `used` collects the rows that were asked of the chip."""

    def __init__(self, rows: frozenset[str], lanes: int) -> None:
        self.rows, self.lanes, self.used = rows, lanes, set()

    def op(self, row: str, operands: tuple[Lanes, ...], result: str) -> Lanes:
        self.used.add(row)
        values = [o.data for o in operands]
        with np.errstate(all="ignore"):
            return Lanes(self._compute(row, values, result), result)

    def _compute(self, row: str, values: list[Any], result: str) -> Any:
        if row in BINARY:
            return BINARY[row](*values)
        if row in ("shl", "shru", "shrs"):
            return _shift(values[0], values[1], row)
        if row == "lts":
            return _signed(values[0]) < _signed(values[1])
        if row == "mulhu":
            if values[0].dtype == np.uint32:
                return ((values[0].astype(np.uint64) * values[1]) >> np.uint64(32)).astype(np.uint32)
            return np.array([(int(p) * int(q)) >> 64 for p, q in zip(*values, strict=True)], np.uint64)
        if row == "select":
            return np.where(values[0], values[1], values[2])
        if row == "fma":
            return _fma(values[0], values[1], values[2], result)
        if row == "s2f":
            return _signed(values[0]).astype(WORDS[result])
        if row == "u2f":
            return values[0].astype(WORDS[result])
        if row == "f2s":
            return _f2s(values[0], result)
        if row == "sqrt_rn":
            return np.sqrt(values[0])
        if row == "castf":
            return values[0].astype(WORDS[result])
        raise AssertionError(f"the evaluator has no {row}")

    def const(self, pattern: int, type_: str) -> Lanes:
        if type_ == "i1":
            return Lanes(np.full(self.lanes, bool(pattern)), type_)
        word = np.uint64 if type_ in ("i64", "f64") else np.uint32
        return Lanes(np.full(self.lanes, pattern, word).view(WORDS.get(type_, np.uint32)), type_)

    def type_of(self, value: Lanes) -> str:
        return value.type

    def bits(self, value: Lanes) -> Lanes:
        data = value.data
        return Lanes(data.astype(np.uint32) if value.type == "i1" else data.view(np.uint32), "i32")

    def narrow(self, value: Lanes, type_: str) -> Lanes:
        if type_ == "i1":
            return Lanes((value.data & 1).astype(bool), type_)
        if type_ in ("f32", "i32"):
            return Lanes(value.data.view(WORDS[type_]), type_)
        return Lanes(value.data & np.uint32((1 << TYPES[type_].bits) - 1), type_)

    def split(self, value: Lanes) -> tuple[Lanes, Lanes]:
        whole = value.data.view(np.uint64)
        return Lanes(whole.astype(np.uint32), "i32"), Lanes((whole >> np.uint64(32)).astype(np.uint32), "i32")

    def join(self, low: Lanes, high: Lanes, type_: str) -> Lanes:
        whole = low.data.astype(np.uint64) | (high.data.astype(np.uint64) << np.uint64(32))
        return Lanes(whole.view(WORDS[type_]), type_)
