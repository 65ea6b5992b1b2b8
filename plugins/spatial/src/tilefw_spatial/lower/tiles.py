"""What an SSA value of the kernel is for the lowering: a compile-time constant, an array of the graph, or a pointer into a
parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilefw.api import DTYPES, DType, Place, UnsupportedError
from tilefw.api.ir import Operation, numbers, place_of
from tilefw_spatial.graph import Axis, Value
from tilefw_spatial.lower.constant_tile import Array, ConstantTile, both


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """A tile (a scalar: no dims) that depends on loaded data.

    `dims` are its dims' axes, None where all elements along one are equal. The value may have more axes: of programs and loops."""

    value: Value
    dims: tuple[Axis | None, ...]
    shape: tuple[int, ...]
    linear: Linear | None = None  # for integers: what they are a multiple of
    # For truth values that are a conjunction: its constant and its loaded part.
    apart: tuple[ConstantTile, Data] | None = None

    @property
    def dtype(self) -> DType:
        return DTYPES[self.value.dtype]


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """`scale` times a loaded integer, plus `offset` (64 bits). Signed offset arithmetic does not wrap (architecture, "Offsets")."""

    base: Data
    scale: int
    offset: ConstantTile


@dataclass(frozen=True, slots=True, eq=False)
class Pointer:
    """A pointer, or a tile of them: elements of `dtype` at `offset` from where parameter `parameter` points.

    Where data chooses, it is `scale` times the integer `chosen` further."""

    parameter: int
    dtype: DType
    offset: ConstantTile
    chosen: Data | None = None
    scale: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.offset.shape

    def moved(self, offset: ConstantTile) -> Pointer:
        return replace(self, offset=offset)


Entry = ConstantTile | Data | Pointer


def conjunction(row: str, entries: Sequence[Entry]) -> tuple[ConstantTile, Data] | None:
    """The constant part of a row's result and the one that depends on data, as of `inside & (index != padding)`; None where it is
    no such conjunction."""
    if row != "andi" or any(entry.dtype.bits != 1 for entry in entries):
        return None
    tile: ConstantTile | None = None
    data: list[Data] = []
    for entry in entries:
        part: Entry | None = entry
        if isinstance(entry, Data):
            part, rest = entry.apart or (None, entry)
            data.append(rest)
        if isinstance(part, ConstantTile):
            tile = part if tile is None else both(tile, part)
    return (tile, data[0]) if tile is not None and len(data) == 1 else None


def stored(elements: Array, dtype: DType) -> Array:
    """Elements as a constant of the graph holds them."""
    if not dtype.is_float:
        return elements.astype(numbers.int_type(dtype.bits))
    codes = numbers.encode(numbers.in_format(elements, dtype), dtype)
    native = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16}.get(dtype.name)
    return codes if native is None else codes.view(native)


def bits_of(number: int | float, dtype: DType) -> int:
    """The bits of one element, as a non-negative number."""
    code = stored(np.asarray([number]), dtype)
    return int(code.view(f"u{code.dtype.itemsize}")[0])


def unsupported(op: Operation, what: str, capability: str, help: str | None = None) -> UnsupportedError:
    """The refusal of what the chip or this compiler does not serve."""
    return refusal(place_of(op), what, capability, help)


def refusal(place: Place | None, what: str, capability: str, help: str | None = None) -> UnsupportedError:
    """The refusal, at a place."""
    return UnsupportedError(what, "TFW0660", place, note=f"the capability is {capability}", help=help)
