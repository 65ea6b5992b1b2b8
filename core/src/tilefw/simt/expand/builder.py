"""Builds elementwise rows on a chip: natively where the chip has the row, else by an expansion rule, recursively."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, Protocol

from tilefw.api.dtypes import DTYPES, DType
from tilefw.api.errors import UnsupportedError
from tilefw.api.floats import float_bits

Value = Any  # what a row is made on; the expansions never look into it
# A rule gets the builder, the operands and, for casts, the result type; it returns the result.
Rule = Callable[..., Value]

TYPES: dict[str, DType] = {d.ir: d for d in DTYPES.values() if d.kind != "uint" or d.bits == 1}
"""The element types that a row may have, by tile IR's spelling (`f16`, `i32`)."""
CASTS = frozenset({"exts", "extu", "trunci", "castf", "castf_rtz", "s2f", "u2f", "f2s", "f2u", "bitcast"})
"""The rows whose result type must be named."""


def key(row: str, type_: str, to: str | None = None) -> str:
    """The key of a row at a type in `ExpansionBuilder.rows` and in rules: `addi.i32`. Casts have their result's type as well:
    `s2f.i32.f32`; a `castf` that rounds towards zero is `castf_rtz`."""
    return f"{row}.{type_}" if to is None else f"{row}.{type_}.{to}"


class ExpansionBuilder(Protocol):
    """What the expansions build on. Values are opaque; types are tile IR's spellings.

    `bits` and `narrow` move between a value of at most 32 bits and its code, zero-extended, in an i32 (an i1 is 0 or 1);
    `split` and `join` between a 64-bit value and its i32 halves, low first.
    """

    rows: Container[str]

    def op(self, row: str, operands: tuple[Value, ...], result: str) -> Value:
        """A row that is in `rows` at the operands' type, with a result of type `result`."""
        ...

    def const(self, pattern: int, type_: str) -> Value:
        """The constant of `type_` whose bits, read without a sign, are `pattern`."""
        ...

    def type_of(self, value: Value) -> str:
        """The value's element type: `i32`, `f16`."""
        ...

    def bits(self, value: Value) -> Value:
        """The code of a value of at most 32 bits, zero-extended to an i32."""
        ...

    def narrow(self, value: Value, type_: str) -> Value:
        """The value of `type_` whose code is in the low bits of an i32: the inverse of `bits`."""
        ...

    def split(self, value: Value) -> tuple[Value, Value]:
        """The (low, high) halves of a 64-bit value, as i32."""
        ...

    def join(self, low: Value, high: Value, type_: str) -> Value:
        """The 64-bit value of `type_` with these i32 halves: the inverse of `split`."""
        ...


class Legal:
    """Builds rows on a chip: call it with a row's name and operands, and of a cast with its result's type as `to`.

    The row is the chip's own where `chip.rows` has it, else what its rule in `rules` makes of others. Raises UnsupportedError
    (TFW0610) for a row that neither has.
    """

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
        """The value's element type: `i32`, `f16`."""
        return self.chip.type_of(value)

    def i32(self, value: int) -> Value:
        """A constant of i32; a value beyond 32 bits is taken modulo 2**32."""
        return self.chip.const(value & 0xFFFFFFFF, "i32")

    def integer(self, value: int, type_: str) -> Value:
        """A constant of an integer type, modulo 2**width."""
        return self.chip.const(value & ((1 << TYPES[type_].bits) - 1), type_)

    def real(self, value: float, type_: str) -> Value:
        """A constant of f64 or f32, rounded to nearest even. Other formats are made of f32 (`castf`)."""
        return self.chip.const(float_bits(value, type_), type_)

    def true(self) -> Value:
        """The i1 that is true."""
        return self.chip.const(1, "i1")

    def not_(self, condition: Value) -> Value:
        """The negation of an i1."""
        return self("xori", condition, self.true())

    def bits(self, value: Value) -> Value:
        """The code of a value of at most 32 bits, zero-extended to an i32; an i32 as it is."""
        return value if self.chip.type_of(value) == "i32" else self.chip.bits(value)

    def narrow(self, value: Value, type_: str) -> Value:
        """The value of `type_` whose code is in the low bits of an i32: the inverse of `bits`."""
        return value if type_ == "i32" else self.chip.narrow(value, type_)

    def split(self, value: Value) -> tuple[Value, Value]:
        """The (low, high) halves of a 64-bit value, as i32."""
        return self.chip.split(value)

    def join(self, low: Value, high: Value, type_: str = "i64") -> Value:
        """The 64-bit value of `type_` with these i32 halves: the inverse of `split`."""
        return self.chip.join(low, high, type_)


def _result(row: str, type_: str) -> str:
    compares = (row[:2] in ("eq", "ne", "lt", "le", "gt", "ge") and row not in ("negf",)) or row == "isnan"
    return "i1" if compares else type_
