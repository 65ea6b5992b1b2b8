"""A tensor map: the 128 bytes that tell a copy engine of an array, in an encoding of our own.

PTX keeps them opaque ("Tensors: Tensor-map"); what writes their fields (`tensormap.replace`) agrees here with the engine. A field
is a number of its own bytes, little-endian. Element types and modes have the numbers that `tensormap.replace` gives them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.api import LaunchError
from tilefw.api.sim import Box
from tilefw_nvidia.isa.tensor_map_size import BYTES

_MOST_DIMENSIONS = 5


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


def encoded(
    base: int, sizes: Sequence[int], strides: Sequence[int], box: Sequence[int], element: str, *, swizzle: int = 0,
    fill: int = 0, steps: Sequence[int] | None = None,
) -> bytes:
    """The map of an array, as the host gives one to a kernel (CUDA driver API, cuTensorMapEncodeTiled).

    Dimensions are the innermost first, `strides` in bytes of all but that; `element` is PTX's name of the type. Raises LaunchError.
    """
    if element not in ELEMENT_TYPES:
        raise LaunchError(f"a tensor map has no elements of type '{element}'", code="TFW0347", note=", ".join(ELEMENT_TYPES))
    rank = len(sizes)
    if not 1 <= rank <= _MOST_DIMENSIONS or len(strides) != rank - 1 or len(box) != rank or len(steps or sizes) != rank:
        raise LaunchError(
            f"a tensor map of {rank} dimensions, {len(strides)} strides and a box of {len(box)}", code="TFW0347",
            note=f"it has 1 to {_MOST_DIMENSIONS} dimensions, a stride of each but the innermost, and a box of as many",
        )
    values = {
        "global_address": [base], "global_dim": sizes, "global_stride": strides, "box_dim": box,
        "element_stride": steps or [1] * rank, "rank": [rank - 1], "elemtype": [ELEMENT_TYPES[element]], "swizzle_mode": [swizzle],
        "fill_mode": [fill],
    }
    data = bytearray(BYTES)
    for name, numbers in values.items():
        field = FIELDS[name]
        step = field.bits // 8
        for place, number in enumerate(numbers):
            if not 0 <= number < 1 << field.bits:
                raise LaunchError(f"{name} {number} of a tensor map does not fit {field.bits} bits", code="TFW0347")
            data[field.offset + place * step : field.offset + (place + 1) * step] = int(number).to_bytes(step, "little")
    return bytes(data)


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
