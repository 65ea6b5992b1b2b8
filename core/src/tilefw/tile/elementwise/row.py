"""What one row of the elementwise table is: an operation's name, types, meaning, error, random inputs and documentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from tilefw.tile.elementwise.error import EXACT, ErrorRule

# What an operand's elements may be. Every operand of kind `T…` has one type, which names the op's type; `bool` is i1
# of the same shape.
Kind = Literal["T:int", "T:float", "T:any", "T:ptr", "bool"]
# The result: the operands' type T, i1 of T's shape, or for casts a type that the builder names, of T's shape.
Result = Literal["same", "bool", "to:int", "to:float", "to:any", "to:ptr"]


@dataclass(frozen=True, slots=True)
class Draw:
    """How random tests choose operands: float ranges per operand (None: any), and values worth trying beside them."""

    ranges: tuple[tuple[float, float] | None, ...] = ()
    special: tuple[float, ...] = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"))


ANY = Draw()


@dataclass(frozen=True)
class ElementwiseRow:
    """One elementwise operation, `tile.<name>`; it takes scalars, or tiles of one shape.

    `meaning(*operands)` computes on NumPy arrays: integers in the width's own type (as unsigned where `unsigned`; with a
    last argument `bits` where `wants_bits`), floats in f64, before rounding to the format. `error` says how far a chip's
    result may be from it. `identity` is a right operand that gives x back (a left one too when `commutative`),
    `absorbing` a right operand that is always the result.
    A capability is `group.dtype`, as in `math.exp.fp32`.
    """

    name: str
    operands: tuple[Kind, ...]
    result: Result
    group: str
    doc: str
    meaning: Callable[..., Any] | None = None
    error: ErrorRule = EXACT
    commutative: bool = False
    identity: float | None = None
    absorbing: float | None = None
    unsigned: bool = False
    wants_bits: bool = False
    same_operands: Literal["x", 0, True, False] | None = None
    rounding: bool = False
    draw: Draw = field(default=ANY)

    @cached_property
    def is_cast(self) -> bool:
        """Whether the result type must be named."""
        return self.result.startswith("to:")

    @cached_property
    def typed_by(self) -> int:
        """The operand whose type is T."""
        return next(i for i, kind in enumerate(self.operands) if kind != "bool")

    def capability(self, dtype: str) -> str:
        """The capability that a target claims to serve this row on `dtype` (Triton's name of it)."""
        return f"{self.group}.{dtype}"


class ElementwiseRows:
    """Makes rows that share some columns: `Rows(operands=…, result=…)(name, group, doc, meaning, …)`."""

    def __init__(self, **shared: Any) -> None:
        self._shared = shared

    def __call__(self, name: str, group: str, doc: str, meaning: Callable[..., Any] | None = None, **own: Any) -> ElementwiseRow:
        return ElementwiseRow(name=name, group=group, doc=doc, meaning=meaning, **{**self._shared, **own})
