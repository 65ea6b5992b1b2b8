"""What one row of the elementwise table is: an operation's name, types, meaning, error, random inputs and documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What an operand's elements may be. Every operand of kind `T…` has one type, which names the op's type; `bool` is i1
# of the same shape.
Kind = Literal["T:int", "T:float", "T:any", "T:ptr", "bool"]
# The result: the operands' type T, i1 of T's shape, or for casts a type that the builder names, of T's shape.
Result = Literal["same", "bool", "to:int", "to:float", "to:any", "to:ptr"]


@dataclass(frozen=True, slots=True)
class Row:
    """One elementwise operation, `tile.<name>`; it takes scalars, or tiles of one shape."""

    name: str
    operands: tuple[Kind, ...]
    result: Result
    group: str
    doc: str
    rounding: bool = False

    @property
    def is_cast(self) -> bool:
        """Whether the result type must be named."""
        return self.result.startswith("to:")

    @property
    def typed_by(self) -> int:
        """The operand whose type is T."""
        return next(i for i, kind in enumerate(self.operands) if kind != "bool")
