"""Types of Tile IR as bytecode lists them: scalars, pointers, tiles, views of arrays in memory, functions, tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import tilefw.language as tl
from tilefw.frontend.values import tile_type
from tilefw.importers.cutile.bytecode_cursor import BytecodeCursor
from tilefw.importers.cutile.opcodes import Version

DYNAMIC = -(1 << 63)  # an extent or a stride that is known at run time alone

PADDINGS = ("zero", "neg_zero", "nan", "pos_inf", "neg_inf")


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A number. `carrier` is the language's type that holds it; tf32 is held as the float32 that it is equal to."""

    name: str
    carrier: tl.dtype | None
    bits: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class PointerType:
    """An address of elements of one type."""

    pointee: ScalarType

    def __str__(self) -> str:
        return f"ptr<{self.pointee}>"


@dataclass(frozen=True, slots=True)
class TileType:
    """A tile; one of no axes is a scalar."""

    element: ScalarType | PointerType
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"tile<{'x'.join(map(str, (*self.shape, self.element)))}>"


@dataclass(frozen=True, slots=True)
class TensorViewType:
    """An array in memory; `DYNAMIC` stands for what the values say."""

    element: ScalarType
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def __str__(self) -> str:
        return f"tensor_view<{'x'.join('?' if n == DYNAMIC else str(n) for n in self.shape)}x{self.element}>"


@dataclass(frozen=True, slots=True)
class TiledViewType:
    """An array in memory, accessed by tiles. Axis i of a tile runs along axis `axes[i]` of the array, and neighbours in the view
    are `steps[i]` elements apart there. `sparse` is the axis of the array whose indices are listed one by one."""

    tile: tuple[int, ...]
    steps: tuple[int, ...]
    axes: tuple[int, ...]
    array: TensorViewType
    padding: str | None
    sparse: int | None = None

    def __str__(self) -> str:
        return f"view<{'x'.join(map(str, self.tile))} of {self.array}>"


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """What a function takes and gives, as numbers of types."""

    parameters: tuple[BytecodeType, ...]
    results: tuple[BytecodeType, ...]


@dataclass(frozen=True, slots=True)
class TokenType:
    """The order of memory accesses, as a value."""

    def __str__(self) -> str:
        return "token"


BytecodeType = ScalarType | PointerType | TileType | TensorViewType | TiledViewType | FunctionSignature | TokenType

_SCALARS: Mapping[int, tuple[ScalarType, Version]] = MappingProxyType({
    0x00: (ScalarType("i1", tl.int1, 1), (13, 1)), 0x01: (ScalarType("i8", tl.int8, 8), (13, 1)),
    0x02: (ScalarType("i16", tl.int16, 16), (13, 1)), 0x03: (ScalarType("i32", tl.int32, 32), (13, 1)),
    0x04: (ScalarType("i64", tl.int64, 64), (13, 1)), 0x05: (ScalarType("f16", tl.float16, 16), (13, 1)),
    0x06: (ScalarType("bf16", tl.bfloat16, 16), (13, 1)), 0x07: (ScalarType("f32", tl.float32, 32), (13, 1)),
    0x08: (ScalarType("tf32", tl.float32, 19), (13, 1)), 0x09: (ScalarType("f64", tl.float64, 64), (13, 1)),
    0x0A: (ScalarType("f8E4M3FN", tl.float8e4nv, 8), (13, 1)), 0x0B: (ScalarType("f8E5M2", tl.float8e5, 8), (13, 1)),
    0x12: (ScalarType("f8E8M0FNU", tl.int8, 8), (13, 2)), 0x13: (ScalarType("f4E2M1FN", None, 4), (13, 3)),
    0x16: (ScalarType("i4", None, 4), (13, 3)), 0x82: (ScalarType("f8E5M3FNU", None, 8), (13, 4)),
})
_POINTER, _TILE, _TENSOR_VIEW, _PARTITION_VIEW, _FUNCTION, _TOKEN = 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11
_GATHER_SCATTER_VIEW, _STRIDED_VIEW = 0x14, 0x15
_MOST_ELEMENTS = 1 << 24  # of a tile
_MOST_AXES = 32


def read_types(cursor: BytecodeCursor, version: Version) -> list[BytecodeType]:
    """All types of a file; each may name those before it."""
    found: list[BytecodeType] = []

    def item(record: BytecodeCursor) -> BytecodeType:
        made = _TypeReader(record, version, found).read()
        record.finish("a type")
        found.append(made)
        return made

    cursor.table("types", 4, item)
    return found


class _TypeReader:
    """Reads one type's record."""

    def __init__(self, record: BytecodeCursor, version: Version, before: Sequence[BytecodeType]) -> None:
        self._record, self._version, self._before, self._start = record, version, before, record.at

    def read(self) -> BytecodeType:
        tag = self._record.varint("a type")
        if tag in _SCALARS:
            scalar, since = _SCALARS[tag]
            self._check_version(scalar.name, since)
            return scalar
        if tag == _TOKEN:
            return TokenType()
        if tag == _POINTER:
            self._skip_pointer_flags()
            return PointerType(self._scalar())
        if tag == _TILE:
            return self._tile()
        if tag == _TENSOR_VIEW:
            return self._tensor_view()
        if tag in (_PARTITION_VIEW, _STRIDED_VIEW):
            return self._dense_view(tag == _STRIDED_VIEW)
        if tag == _GATHER_SCATTER_VIEW:
            return self._sparse_view()
        if tag == _FUNCTION:
            return FunctionSignature(self._types("parameters"), self._types("results"))
        raise self._record.unsupported(f"the type 0x{tag:02x} of Tile IR is not known", self._start)

    def _check_version(self, name: str, since: Version) -> None:
        if self._version < since:
            raise self._record.malformed(f"the type {name} is there since version {since[0]}.{since[1]}", self._start)

    def _named(self) -> BytecodeType:
        return self._before[self._record.index("a type", len(self._before))]

    def _types(self, what: str) -> tuple[BytecodeType, ...]:
        return tuple(self._named() for _ in range(self._record.count(what)))

    def _scalar(self) -> ScalarType:
        found = self._named()
        if not isinstance(found, ScalarType):
            raise self._record.malformed("an element is of a type that is no number", self._start)
        return found

    def _skip_pointer_flags(self) -> None:
        """Since 13.4: whether a pointer's attribute follows, which cuTile leaves out."""
        if self._version >= (13, 4) and self._record.varint("the flags of a pointer"):
            raise self._record.unsupported("a pointer with an attribute is not imported", self._start)

    def _tile(self) -> TileType:
        element, shape = self._named(), self._record.integers("extents", "q")
        if not isinstance(element, ScalarType | PointerType):
            raise self._record.malformed("the element of a tile is a number or a pointer", self._start)
        if not _fits(shape):
            raise self._record.malformed(
                f"the extents of a tile are powers of two, {_MOST_ELEMENTS} elements at most, not {_spelled(shape)}", self._start
            )
        return TileType(element, shape)

    def _tensor_view(self) -> TensorViewType:
        self._skip_pointer_flags()
        element = self._scalar()
        shape, strides = self._record.integers("extents", "q"), self._record.integers("strides", "q")
        if len(shape) != len(strides) or any(extent < 0 and extent != DYNAMIC for extent in shape):
            raise self._record.malformed("an array has an extent and a stride an axis", self._start)
        return TensorViewType(element, shape, strides)

    def _view_flags(self) -> int | None:
        return self._record.varint("the flags of a view") if self._version >= (13, 3) else None

    def _padding(self, flags: int | None) -> str | None:
        """What elements out of bounds read as; until 13.2 a byte behind the rest says whether it is there."""
        if not (self._record.varint("a flag") if flags is None else flags):
            return None
        word = self._record.byte("padding")
        if word >= len(PADDINGS):
            raise self._record.malformed(f"there is no padding {word}", self._start)
        return PADDINGS[word]

    def _array(self) -> TensorViewType:
        found = self._named()
        if not isinstance(found, TensorViewType):
            raise self._record.malformed("a view is one of an array", self._start)
        return found

    def _dense_view(self, strided: bool) -> TiledViewType:
        flags = self._view_flags()
        tile = self._extents()
        steps = self._record.integers("steps", "i") if strided else tile
        array, axes = self._array(), self._record.integers("axes", "i")
        if len(steps) != len(tile) or any(step <= 0 for step in steps):
            raise self._record.malformed("a strided view has a step above 0 an axis", self._start)
        if sorted(axes) != list(range(len(tile))) or len(array.shape) != len(tile):
            raise self._record.malformed(f"the axes {list(axes)} are no order of those of {array}", self._start)
        return TiledViewType(tile, steps, axes, array, self._padding(flags))

    def _sparse_view(self) -> TiledViewType:
        flags = self._view_flags()
        tile, array = self._extents(), self._array()
        sparse = self._record.index("an axis", len(tile))
        if len(array.shape) != len(tile):
            raise self._record.malformed(f"a tile of {len(tile)} axes is none of {array}", self._start)
        return TiledViewType(tile, (1,) * len(tile), tuple(range(len(tile))), array, self._padding(flags), sparse)

    def _extents(self) -> tuple[int, ...]:
        tile = self._record.integers("extents", "i")
        if not _fits(tile):
            raise self._record.malformed(f"the extents of a tile are powers of two, not {_spelled(tile)}", self._start)
        return tile


def _fits(tile: Sequence[int]) -> bool:
    if len(tile) > _MOST_AXES or any(extent <= 0 or extent & (extent - 1) for extent in tile):
        return False
    return math.prod(tile) <= _MOST_ELEMENTS


def _spelled(tile: Sequence[int]) -> str:
    return str(list(tile)) if len(tile) <= _MOST_AXES else f"{len(tile)} of them"


def carrier_of(type: ScalarType | PointerType) -> tl.dtype | None:
    """The language's type of elements; None for those that it does not have."""
    if isinstance(type, ScalarType):
        return type.carrier
    return None if type.pointee.carrier is None else tl.pointer_type(type.pointee.carrier)


def language_type(type: TileType) -> tl.dtype | None:
    """The language's type of a tile or a scalar; None where it has no such elements."""
    element = carrier_of(type.element)
    return None if element is None else tile_type(element, type.shape)
