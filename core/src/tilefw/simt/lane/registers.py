"""How lane values stand in registers: chunks of four elements, each packed, taken apart, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import Attribute, Operation, SSAValue

from tilefw.api.dtypes import DTYPES
from tilefw.simt.select.code import Element
from tilefw.tile import types

CHUNK = 4  # elements: one register of bytes, two of halves, four of words

_STORAGE = {d.ir: d.storage_bits for d in DTYPES.values()} | {"i1": 1}
_FORMS = {1: "i1", 8: "e8", 16: "e16", 32: "w32", 64: "w64"}


def bits_of(name: str) -> int:
    """The bits that an element takes in registers: 1 for i1, a byte for narrower formats."""
    return _STORAGE[name]


def form_of(name: str) -> str:
    """The register form of one element of a type."""
    return _FORMS[bits_of(name)]


def per_register(name: str) -> int:
    """Elements of a type in a packed 32-bit register; 1 for predicates, words and wider."""
    bits = bits_of(name)
    return 32 // bits if bits in (8, 16) else 1


def type_name(type: Attribute) -> str:
    """The element type's name in row keys: its spelling in tile IR."""
    return types.dtype_of(type).ir


def size_of(type: Attribute) -> int:
    """Elements of a lane value: 1 for a scalar."""
    return (types.shape_of(type) or (1,))[0]


def carried_packed(name: str, n: int) -> bool:
    """Whether values that several places write stand in packed registers."""
    return per_register(name) > 1 and n % per_register(name) == 0


@dataclass(slots=True)
class RegisterPiece:
    """A chunk: as single elements or as packed registers, whichever it was made as."""

    elements: list[Element] | None = None
    packed: list[Element] | None = None


@dataclass(slots=True)
class LaneVector:
    """A lane value of `n` elements; `op` makes the pieces that are still None. `origins` are the elements that a value which only
    moves elements consists of: (value, index) each."""

    type: str
    n: int
    pieces: list[RegisterPiece | None]
    op: Operation | None = None
    origins: Sequence[tuple[SSAValue, int]] = ()
    per_register: int = field(init=False)

    def __post_init__(self) -> None:
        self.per_register = per_register(self.type)

    def count(self, chunk: int) -> int:
        """Elements in a chunk."""
        return min(CHUNK, self.n - chunk * CHUNK)


def vector_in(name: str, n: int, registers: Sequence[Element], packed: bool) -> LaneVector:
    """A vector that stands in these registers, each one element or, `packed`, as many as fit."""
    per = per_register(name) if packed else 1
    step = CHUNK // per
    parts = [list(registers[first : first + step]) for first in range(0, len(registers), step)]
    return LaneVector(name, n, [RegisterPiece(packed=part) if per > 1 else RegisterPiece(elements=part) for part in parts])
