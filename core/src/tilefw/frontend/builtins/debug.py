"""device_print and device_assert."""

from __future__ import annotations

import string
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend import arithmetic
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.reduction import any_of
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast, to_value
from tilefw.frontend.semantics import checked_flag
from tilefw.frontend.values import describe
from tilefw.tile.dialect.print_op import POINTER

meaning = Meanings()


@meaning("device_print")
def device_print(b: Builder, prefix: Any, args: tuple[Any, ...], hex: Any) -> None:
    if not isinstance(prefix, str):
        raise CompileError(
            f"the prefix of tl.device_print is a string, not {describe(prefix)}", "TFW0201",
            help='write the text first, then the values: `tl.device_print("x", x)`',
        )
    if any(character not in string.printable for character in prefix):
        raise CompileError(f"the prefix of tl.device_print is ASCII, and {prefix!r} is not", "TFW0201")
    values = [to_value(b, value) for value in args]
    elements = [POINTER if value.dtype.is_ptr() else value.dtype.name for value in values]
    b.print(_spaced(prefix, bool(values)), values, elements, checked_flag(hex, "hex"))


def _spaced(prefix: str, values: bool) -> str:
    """The prefix as Triton writes it: it ends in ": " before values, and begins with a space (`semantic.py`, device_print)."""
    if values and not prefix.endswith(" "):
        prefix += " "
    if values and not prefix.endswith(": "):
        prefix = prefix[:-1] + ": "
    return f" {prefix}" if len(prefix) > 2 and not prefix.startswith(" ") else prefix


@meaning("device_assert")
def device_assert(b: Builder, cond: Any, msg: Any, mask: Any) -> None:
    if not isinstance(msg, str):
        raise CompileError(f"the message of tl.device_assert is a string, not {describe(msg)}", "TFW0201")
    holds = to_value(b, cond)
    if not b.debug:
        return
    holds = cast(b, holds, tl.int1)
    if mask is not None:
        holds = arithmetic.BINARY["|"](b, holds, arithmetic.invert(b, cast(b, to_value(b, mask), tl.int1)))
    fails = any_of(b, "device_assert", arithmetic.invert(b, holds))
    b.trap_where(fails, f"device assertion failed: {msg}" if msg else "device assertion failed")
