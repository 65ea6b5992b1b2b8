"""How lane values stand in registers: chunks of four elements, each packed, taken apart, or both."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute, Operation

from tilefw.api.dtypes import DTYPES
from tilefw.simt.code import Element
from tilefw.tile import types

CHUNK = 4  # elements: one register of bytes, two of halves, four of words

_STORAGE = {d.ir: d.storage_bits for d in DTYPES.values()} | {"i1": 1}


def bits_of(name: str) -> int:
    """The bits that an element takes in registers: 1 for i1, a byte for narrower formats."""
    return _STORAGE[name]


def form_of(name: str) -> str:
    """The register form of one element of a type."""
    return {1: "i1", 8: "e8", 16: "e16", 32: "w32", 64: "w64"}[bits_of(name)]


def type_name(type: Attribute) -> str:
    """The element type's name in row keys: its spelling in tile IR."""
    return types.dtype_of(type).ir


@dataclass(slots=True)
class Piece:
    """A chunk: as single elements or as packed registers, whichever it was made as."""

    elements: list[Element] | None = None
    packed: list[Element] | None = None


@dataclass(slots=True)
class Vector:
    """A lane value of `n` elements; `op` makes the pieces that are still None."""

    type: str
    n: int
    pieces: list[Piece | None]
    op: Operation | None = None

    @property
    def per_register(self) -> int:
        """Elements in a packed 32-bit register; 1 for predicates, words and wider."""
        bits = bits_of(self.type)
        return 1 if bits in (1, 32, 64) else 32 // bits

    def count(self, chunk: int) -> int:
        """Elements in a chunk."""
        return min(CHUNK, self.n - chunk * CHUNK)
