"""Builds elementwise rows on a chip: natively where the chip has the row, else by an expansion rule, recursively."""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Mapping
from typing import Any, Protocol

from tilefw.api.dtypes import DTYPES, DType
from tilefw.api.errors import UnsupportedError

Value = Any  # what a row is made on; the expansions never look into it
# A rule gets the builder, the operands and, for casts, the result type; it returns the result.
Rule = Callable[..., Value]

TYPES: dict[str, DType] = {d.ir: d for d in DTYPES.values() if d.kind != "uint" or d.bits == 1}
"""The element types that a row may have, by tile IR's spelling (`f16`, `i32`)."""
CASTS = frozenset({"exts", "extu", "trunci", "castf", "castf_rtz", "s2f", "u2f", "f2s", "f2u", "bitcast"})
"""The rows whose result type must be named."""


def key(row: str, type_: str, to: str | None = None) -> str:
    """How a row at a type is spelled in a chip's list: `addi.i32`, `s2f.i32.f32`; rounding towards zero is `castf_rtz`."""
    return f"{row}.{type_}" if to is None else f"{row}.{type_}.{to}"


class ExpansionBuilder(Protocol):
    """What the expansions build on. Values are opaque; types are tile IR's spellings.

    `bits` and `narrow` move between a value of at most 32 bits and its code, zero-extended, in an i32 (an i1 is 0 or 1);
    `split` and `join` between a 64-bit value and its i32 halves, low first.
    """

    rows: Container[str]

    def op(self, row: str, operands: tuple[Value, ...], result: str) -> Value: ...
    def const(self, pattern: int, type_: str) -> Value: ...
    def type_of(self, value: Value) -> str: ...
    def bits(self, value: Value) -> Value: ...
    def narrow(self, value: Value, type_: str) -> Value: ...
    def split(self, value: Value) -> tuple[Value, Value]: ...
    def join(self, low: Value, high: Value, type_: str) -> Value: ...


class Legal:
    """Call it with a row's name and operands; casts name their result in `to`."""

    def __init__(self, chip: ExpansionBuilder, rules: Mapping[str, Rule]) -> None:
        self.chip = chip
        self.rules = rules

    def __call__(self, row: str, *operands: Value, to: str | None = None) -> Value:
        type_ = self.chip.type_of(operands[1] if row == "select" else operands[0])
        spelled = key(row, type_, to)
        if spelled in self.chip.rows:
            return self.chip.op(row, operands, to or _result(row, type_))
        rule = self.rules.get(spelled)
        if rule is None:
            raise UnsupportedError(f"'{spelled}' is neither among this chip's rows nor made of them", code="TFW0610")
        return rule(self, *operands) if to is None else rule(self, *operands, to)

    def serves(self, row: str, type_: str, to: str | None = None) -> bool:
        """Whether the row can be built, natively or by one rule."""
        spelled = key(row, type_, to)
        return spelled in self.chip.rows or spelled in self.rules

    def type_of(self, value: Value) -> str:
        return self.chip.type_of(value)

    def i32(self, value: int) -> Value:
        return self.chip.const(value & 0xFFFFFFFF, "i32")

    def integer(self, value: int, type_: str) -> Value:
        return self.chip.const(value & ((1 << TYPES[type_].bits) - 1), type_)

    def real(self, value: float, type_: str) -> Value:
        """A constant of f32 or f64; other formats are made of f32."""
        code, word = ("<d", "<Q") if type_ == "f64" else ("<f", "<I")
        return self.chip.const(struct.unpack(word, struct.pack(code, value))[0], type_)

    def true(self) -> Value:
        return self.chip.const(1, "i1")

    def not_(self, condition: Value) -> Value:
        return self("xori", condition, self.true())

    def bits(self, value: Value) -> Value:
        return value if self.chip.type_of(value) == "i32" else self.chip.bits(value)

    def narrow(self, value: Value, type_: str) -> Value:
        return value if type_ == "i32" else self.chip.narrow(value, type_)

    def split(self, value: Value) -> tuple[Value, Value]:
        return self.chip.split(value)

    def join(self, low: Value, high: Value, type_: str = "i64") -> Value:
        return self.chip.join(low, high, type_)


def _result(row: str, type_: str) -> str:
    compares = (row[:2] in ("eq", "ne", "lt", "le", "gt", "ge") and row not in ("negf",)) or row == "isnan"
    return "i1" if compares else type_
