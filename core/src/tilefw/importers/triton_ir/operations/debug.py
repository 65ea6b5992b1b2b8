"""Assertions and prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilefw.frontend.builtins.debug import device_assert
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.triton_ir.scanner import unescaped
from tilefw.tile.dialect.print_op import POINTER

if TYPE_CHECKING:
    from tilefw.importers.triton_ir.translation import Translation
    from tilefw.importers.triton_ir.tree import TextOperation

meaning = Meanings()


@meaning("tt.assert")
def check(t: Translation, s: TextOperation) -> None:
    """Triton writes it in debug builds only, so it always counts."""
    device_assert(t.b, t.operands(s)[0], unescaped(s.words[0][1:-1]), None)


@meaning("tt.print")
def write(t: Translation, s: TextOperation) -> None:
    """The prefix has its spaces already; `isSigned` says which integers have a sign."""
    values = t.operands(s)
    signed = t.integers(s, "isSigned") if values else ()
    elements = [_element(value, sign) for value, sign in zip(values, signed, strict=True)]
    t.b.print(unescaped(s.words[0][1:-1]), values, elements, t.flag(s, "hex"))


def _element(value: RuntimeValue, signed: int) -> str:
    if value.dtype.is_ptr():
        return POINTER
    name = value.dtype.name
    return name if signed or not value.dtype.is_int() or value.dtype.is_bool() else f"u{name}"
