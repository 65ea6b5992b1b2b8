"""The constraints of inline assembly, in LLVM's words (LangRef, "Inline Asm Constraint String"), and which registers values take.

`=r,r,l,~{memory}`: one result in a register that the target calls `r`, two operands, and what else the text changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LETTERS = re.compile(r"[A-Za-z]\w*")
_REGISTER_BITS = 32


@dataclass(frozen=True, slots=True)
class AsmConstraints:
    """The target's words for registers: of each result; of each operand, or the number of the result whose register it shares."""

    results: tuple[str, ...]
    operands: tuple[str | int, ...]


def parse_constraints(text: str) -> AsmConstraints:
    """Read a constraint string; raises ValueError, with what is wrong in words."""
    results: list[str] = []
    operands: list[str | int] = []
    for item in (part.strip() for part in text.split(",")):
        if item.startswith("~"):
            continue  # the text keeps its place among all accesses, and changes no register that it does not name
        if item.startswith("="):
            if operands:
                raise ValueError(f"the result '{item}' stands behind an operand")
            results.append(_word(item.removeprefix("=").removeprefix("&")))
        elif item.isdigit():
            if int(item) >= len(results):
                raise ValueError(f"'{item}' names no result")
            operands.append(int(item))
        else:
            operands.append(_word(item))
    if not results:
        raise ValueError("no result (`=r`) is among them")
    return AsmConstraints(tuple(results), tuple(operands))


def _word(item: str) -> str:
    if not _LETTERS.fullmatch(item):
        raise ValueError(f"'{item}' is no register")
    return item


def packed_elements(bits: int, pack: int) -> int:
    """How many of `pack` elements of so many bits stand in one register: as many as fill 32 bits (Triton's
    `ElementwiseOpToLLVM.cpp`, packOperands)."""
    return min(max(1, _REGISTER_BITS // bits), pack)


def register_count(bits: int, pack: int) -> int:
    """The registers that `pack` elements take."""
    return pack // packed_elements(bits, pack)
