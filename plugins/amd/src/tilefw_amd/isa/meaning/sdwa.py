"""Sub-dword addressing: bytes and words of sources and results (CDNA3 ISA, section "SDWA").

A selector is a number as in the encoding: 0 to 3 a byte, 4 and 5 a word, 6 the whole register.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilefw_amd.isa.encoding.modifiers import DWORD

Adapter = Callable[[Any, Any], Any]

PAD, SEXT, PRESERVE = range(3)  # of `modifiers.UNUSED`


def field(selector: int) -> tuple[int, int]:
    """(Lowest bit, width) of a selector."""
    if selector < 4:
        return 8 * selector, 8
    return (16 * (selector - 4), 16) if selector < DWORD else (0, 32)


def source(selector: int, sign_extend: int) -> Adapter | None:
    """The selected part of a register, extended to 32 bits."""
    low, width = field(selector)
    if width == 32:
        return None

    def selected(lanes: Any, a: Any) -> Any:
        shifted = lanes.shr(a, lanes.const(low, 32), False) if low else a
        part = lanes.truncate(shifted, width)
        return lanes.sign_extend(part, 32) if sign_extend else lanes.zero_extend(part, 32)

    return selected


def destination(selector: int, unused: int) -> Callable[[Any, Any, Any], Any] | None:
    """(lanes, result of 32 bits, old value of the register) to what is written; None where the result is all of it.

    The old value is looked at only by UNUSED_PRESERVE.
    """
    low, width = field(selector)
    if width == 32:
        return None
    mask = ((1 << width) - 1) << low

    def placed(lanes: Any, a: Any, old: Any) -> Any:
        part = lanes.truncate(a, width)
        wide = lanes.sign_extend(part, 32) if unused == SEXT else lanes.zero_extend(part, 32)
        moved = lanes.shl(wide, lanes.const(low, 32)) if low else wide
        if unused != PRESERVE:
            return moved
        return lanes.or_(moved, lanes.and_(old, lanes.const(~mask, 32)))

    return placed
