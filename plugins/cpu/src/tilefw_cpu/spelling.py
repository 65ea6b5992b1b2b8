"""How LLVM IR spells values, types and constants.

Integers and f32, f64, f16 are LLVM's own types; all other small formats are kept as their codes, in the integer of their width in
memory.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tilefw_cpu import rows as table

_LLVM = {"f32": "float", "f64": "double", "f16": "half", "bf16": "i16", **{t: t for t in ("i1", *table.INTEGERS)}}
_CODES = "i8"  # every other format
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "float": 32, "double": 64}
_OVERLOAD = {"half": "f16", "float": "f32", "double": "f64"}


@dataclass(frozen=True, slots=True, eq=False)
class LlvmValue:
    """A value of LLVM IR: `text` as an operand spells it, `type` by tile IR, `lanes`. An address of the program's own memory, and a
    variable, is a `pointer` of LLVM's."""

    text: str
    type: str
    lanes: int = 1
    pointer: bool = False
    number: int | None = None  # of a constant: its bits


def llvm_type(type_: str) -> str:
    """LLVM's type of an element."""
    return _LLVM.get(type_, _CODES)


def vector(kind: str, lanes: int) -> str:
    """LLVM's type of `lanes` elements."""
    return kind if lanes == 1 else f"<{lanes} x {kind}>"


def overload(type_: str, lanes: int) -> str:
    """How an intrinsic's name spells a type."""
    word = overload_of(llvm_type(type_))
    return word if lanes == 1 else f"v{lanes}{word}"


def overload_of(kind: str) -> str:
    return _OVERLOAD.get(kind, kind)


def stored_type(type_: str) -> str:
    """LLVM's type of an element in memory."""
    return "i8" if type_ == "i1" else llvm_type(type_)


def bytes_of_type(kind: str) -> int:
    return max(1, BITS[kind] // 8)


def literal(pattern: int, kind: str) -> str:
    if kind == "i1":
        return "true" if pattern & 1 else "false"
    if kind == "float":  # LLVM spells a float by the bits of the double that it is
        (value,) = struct.unpack("<f", struct.pack("<I", pattern))
        if value != value:  # a NaN's payload moves up by as many bits as the double has more
            return f"0x{((pattern >> 31) << 63) | (0x7FF << 52) | ((pattern & 0x7FFFFF) << 29):016X}"
        return f"0x{int.from_bytes(struct.pack('>d', value), 'big'):016X}"
    if kind == "double":
        return f"0x{pattern:016X}"
    if kind == "half":
        return f"0xH{pattern:04X}"
    bits = BITS[kind]
    return str(pattern - (1 << bits) if pattern >> (bits - 1) else pattern)


def type_in(argument: str) -> str:
    """The type of an argument that is spelled with its value."""
    if argument.startswith("<"):
        return argument[: argument.index(">") + 1]
    return argument.split()[0]
