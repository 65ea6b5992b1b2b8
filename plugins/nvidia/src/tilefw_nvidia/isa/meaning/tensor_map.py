"""A tensor map: the 128 bytes that tell a copy engine of an array, in an encoding of our own.

PTX keeps them opaque ("Tensors: Tensor-map"); what writes their fields (`tensormap.replace`) agrees here with the engine. A field
is a number of its own bytes, little-endian. Element types and modes have the numbers that `tensormap.replace` gives them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilefw.api.sim import Box

BYTES = 128


@dataclass(frozen=True, slots=True)
class TensorMapField:
    """`count` numbers of `bits` each from byte `offset` on."""

    offset: int
    bits: int
    count: int = 1


FIELDS: Mapping[str, TensorMapField] = {
    "global_address": TensorMapField(0, 64),
    "global_stride": TensorMapField(8, 64, 4),  # of dimensions 1 to 4; the innermost has none
    "global_dim": TensorMapField(40, 32, 5),
    "box_dim": TensorMapField(60, 32, 5),
    "element_stride": TensorMapField(80, 8, 5),
    "rank": TensorMapField(85, 8),  # one less than the dimensions, as it is written
    "elemtype": TensorMapField(86, 8),
    "interleave_layout": TensorMapField(87, 8),
    "swizzle_mode": TensorMapField(88, 8),
    "fill_mode": TensorMapField(89, 8),
    "swizzle_atomicity": TensorMapField(90, 8),
}
# PTX ISA, "tensormap.replace", table of .elemtype: the bytes of an element by its number, and what reductions call it.
ELEMENT_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4)
_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz")
ELEMENT_TYPES: Mapping[str, int] = {name: number for number, name in enumerate(_TYPES)}


def described(lanes: Any, address: Any, dimensions: int) -> Box:
    """The box that the map at a generic address tells of."""

    def numbers(name: str, count: int) -> list[Any]:
        field = FIELDS[name]
        step = field.bits // 8
        return [
            lanes.load("generic", lanes.add(address, lanes.const(field.offset + place * step, 64)), field.bits)[0]
            for place in range(count)
        ]

    def wide(values: list[Any]) -> list[Any]:
        return [lanes.zero_extend(value, 32) for value in values]

    lanes.descriptor(address, "used")
    (rank,), (element,), (interleave,) = (numbers(name, 1) for name in ("rank", "elemtype", "interleave_layout"))
    same = lanes.compare(rank, lanes.const(dimensions - 1, 8), "eq", False)
    lanes.require(same, "the tensor map has another number of dimensions than the instruction")
    lanes.require(lanes.compare(interleave, lanes.const(0, 8), "eq", False), "interleaved tensor maps are not served")
    known = lanes.compare(element, lanes.const(len(ELEMENT_BYTES), 8), "lt", False)
    lanes.require(known, "the tensor map has no element type that is known")
    size = lanes.const(0, 32)
    for number, count in enumerate(ELEMENT_BYTES):
        here = lanes.compare(element, lanes.const(number, 8), "eq", False)
        size = lanes.select(here, lanes.const(count, 32), size)
    return Box(
        numbers("global_address", 1)[0], numbers("global_dim", dimensions), numbers("global_stride", dimensions - 1),
        numbers("box_dim", dimensions), wide(numbers("element_stride", dimensions)), size, *wide(numbers("swizzle_mode", 1)),
        *wide(numbers("fill_mode", 1)),
    )


def element_type(lanes: Any, address: Any) -> Any:
    """The number of the element type of the map at a generic address, in 8 bits."""
    (found,) = lanes.load("generic", lanes.add(address, lanes.const(FIELDS["elemtype"].offset, 64)), 8)
    return found
