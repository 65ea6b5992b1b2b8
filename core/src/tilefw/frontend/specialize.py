"""Types and facts of kernel parameters, as Triton writes them: `*fp32:16`, `*ku8`, `i32:16`, `i32:1`, `fp32`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import tilefw.language as tl
from tilefw.api.dtypes import dtype as named_dtype
from tilefw.api.errors import CompileError


@dataclass(frozen=True, slots=True)
class Specialization:
    """What is known of a run-time parameter: its type, a power of two that divides it, or that it is the constant 1."""

    type: tl.dtype
    divisible: int = 1
    constant: int | None = None


@cache
def parse(text: str, parameter: str = "") -> Specialization:
    """The meaning of one signature entry; raises CompileError TFW0120 for any other text."""
    body, _, hint = text.partition(":")
    pointer = body.startswith("*")
    const = pointer and body.startswith("*k")
    try:
        element = tl.dtype(named_dtype(body.removeprefix("*k" if const else "*")).name)
    except KeyError:
        raise _mistake(text, parameter, f"`{body}` is not a type") from None
    type = tl.pointer_type(element, const=const) if pointer else element
    if hint not in ("", "1", "16"):
        raise _mistake(text, parameter, f"`:{hint}` is not a hint")
    if hint == "1":
        if pointer or not element.is_int():
            raise _mistake(text, parameter, "`:1` is for integers that are always 1")
        return Specialization(type, constant=1)
    if hint == "16" and not (pointer or element.is_int()):
        raise _mistake(text, parameter, "`:16` is for pointers and integers")
    return Specialization(type, int(hint or 1))


def _mistake(text: str, parameter: str, reason: str) -> CompileError:
    of = f" of parameter `{parameter}`" if parameter else ""
    return CompileError(
        f"the type {text!r}{of} cannot be understood: {reason}",
        "TFW0120",
        note="types are written `*fp32` (pointer), `i32`, `u8`, `fp16`, …; `:16` means divisible by 16, `:1` equal to 1",
    )
