"""A tensor map: the 128 bytes that tell a copy engine of an array, in an encoding of our own.

PTX keeps them opaque ("Tensors: Tensor-map"); what writes their fields (`tensormap.replace`) agrees here with the engine. A field
is a number of its own bytes, little-endian. Element types and modes have the numbers that `tensormap.replace` gives them. A map of
pixels (cuTensorMapEncodeIm2col) has them in `pixels`, 0 in one of boxes, and its channels as the innermost extent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.api import LaunchError
from tilefw.api.sim import Box, PixelList
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
    "pixels": TensorMapField(92, 16),
    "lower_corner": TensorMapField(94, 16, 3),
    "upper_corner": TensorMapField(100, 16, 3),
}
# CUDA driver API, cuTensorMapEncodeIm2col: by the number of dimensions the bits of a corner's coordinate; most channels and pixels.
_CORNER_BITS = {3: 16, 4: 8, 5: 5}
_MOST_CHANNELS, _MOST_PIXELS = 256, 1024
_MOST_STEP = 8  # CUDA driver API, cuTensorMapEncodeTiled: elementStrides
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
    _known_type(element)
    rank = len(sizes)
    if not 1 <= rank <= _MOST_DIMENSIONS or len(strides) != rank - 1 or len(box) != rank or len(steps or sizes) != rank:
        raise LaunchError(
            f"a tensor map of {rank} dimensions, {len(strides)} strides and a box of {len(box)}", code="TFW0347",
            note=f"it has 1 to {_MOST_DIMENSIONS} dimensions, a stride of each but the innermost, and a box of as many",
        )
    return _written({
        **_array(base, sizes, strides, element, swizzle, fill, steps), "box_dim": box,
    })


def encoded_pixels(
    base: int, sizes: Sequence[int], strides: Sequence[int], corners: tuple[Sequence[int], Sequence[int]], channels: int,
    pixels: int, element: str, *, swizzle: int = 0, fill: int = 0, steps: Sequence[int] | None = None,
) -> bytes:
    """The map of an image for `im2col` (CUDA driver API, cuTensorMapEncodeIm2col): `corners` are the lower and the upper one of the
    window, a coordinate for each dimension of space, the innermost first. Raises LaunchError."""
    _known_type(element)
    rank = len(sizes)
    bits = _CORNER_BITS.get(rank, 0)
    if not bits or len(strides) != rank - 1 or {len(c) for c in corners} != {rank - 2} or len(steps or sizes) != rank:
        raise LaunchError(
            f"a tensor map of pixels with {rank} dimensions, {len(strides)} strides and corners of "
            f"{' and '.join(str(len(c)) for c in corners)} coordinates", code="TFW0347",
            note="it has 3 to 5 dimensions, a stride of each but the innermost, and coordinates of all but the first and the last",
        )
    far = [c for corner in corners for c in corner if not -1 << bits - 1 <= c < 1 << bits - 1]
    if far or not 1 <= channels <= _MOST_CHANNELS or not 1 <= pixels <= _MOST_PIXELS:
        raise LaunchError(
            f"a tensor map of {pixels} pixels of {channels} channels with the corners {corners}", code="TFW0347",
            note=f"1 to {_MOST_PIXELS} pixels, 1 to {_MOST_CHANNELS} channels, and for {rank} dimensions corners of {bits} bits",
        )
    lower, upper = ([c & 0xFFFF for c in corner] for corner in corners)
    return _written({
        **_array(base, sizes, strides, element, swizzle, fill, steps), "box_dim": [channels, *[1] * (rank - 1)], "pixels": [pixels],
        "lower_corner": lower, "upper_corner": upper,
    })


def _known_type(element: str) -> None:
    if element not in ELEMENT_TYPES:
        raise LaunchError(f"a tensor map has no elements of type '{element}'", code="TFW0347", note=", ".join(ELEMENT_TYPES))


def _array(
    base: int, sizes: Sequence[int], strides: Sequence[int], element: str, swizzle: int, fill: int, steps: Sequence[int] | None
) -> dict[str, Sequence[int]]:
    """What maps of both kinds say."""
    rank = len(sizes)
    return {
        "global_address": [base], "global_dim": sizes, "global_stride": strides, "element_stride": steps or [1] * rank,
        "rank": [rank - 1], "elemtype": [ELEMENT_TYPES[element]], "swizzle_mode": [swizzle], "fill_mode": [fill],
    }


def _written(values: Mapping[str, Sequence[int]]) -> bytes:
    data = bytearray(BYTES)
    for name, numbers in values.items():
        field = FIELDS[name]
        step = field.bits // 8
        for place, number in enumerate(numbers):
            if not 0 <= number < 1 << field.bits:
                raise LaunchError(f"{name} {number} of a tensor map does not fit {field.bits} bits", code="TFW0347")
            data[field.offset + place * step : field.offset + (place + 1) * step] = int(number).to_bytes(step, "little")
    return bytes(data)


class _MapReader:
    """The fields of the map at a generic address, as values of lanes."""

    def __init__(self, lanes: Any, address: Any) -> None:
        self._lanes, self._address = lanes, address

    def numbers(self, name: str, count: int = 1) -> list[Any]:
        lanes, field = self._lanes, FIELDS[name]
        step = field.bits // 8
        return [
            lanes.load("generic", lanes.add(self._address, lanes.const(field.offset + place * step, 64)), field.bits)[0]
            for place in range(count)
        ]

    def wide(self, name: str, count: int = 1) -> list[Any]:
        return [self._lanes.zero_extend(value, 32) for value in self.numbers(name, count)]

    def signed(self, name: str, count: int) -> list[Any]:
        return [self._lanes.sign_extend(value, 32) for value in self.numbers(name, count)]

    def pixels(self, offsets: Sequence[Any], space: int) -> PixelList:
        """The list of pixels that it tells of, for a tap at these offsets (16 bits each; none: at no offset)."""
        lanes, (count,) = self._lanes, self.wide("pixels")
        moved = [lanes.zero_extend(offset, 32) for offset in offsets] or [lanes.const(0, 32)] * space
        return PixelList(count, self.signed("lower_corner", space), self.signed("upper_corner", space), moved)


def described(lanes: Any, address: Any, dimensions: int, offsets: Sequence[Any] | None = None) -> Box:
    """The box that the map at a generic address tells of; with `offsets` the list of pixels for a tap there (`_MapReader.pixels`).

    The innermost dimension has no step: the driver's manual says that the engine ignores a map's, which is 1 to 8 all the same.
    """
    lanes.descriptor(address, "used")
    fields = _MapReader(lanes, address)
    (rank,), (element,), (interleave,), (pixels,) = map(fields.numbers, ("rank", "elemtype", "interleave_layout", "pixels"))
    same = lanes.compare(rank, lanes.const(dimensions - 1, 8), "eq", False)
    lanes.require(same, "the tensor map has another number of dimensions than the instruction")
    lanes.require(
        lanes.compare(interleave, lanes.const(0, 8), "eq", False),
        "interleaved tensor maps are not served: the manuals do not say where slices of channels lie",
    )
    of_pixels = lanes.compare(pixels, lanes.const(0, 16), "eq" if offsets is None else "ne", False)
    wrong = "of pixels, and the instruction copies boxes" if offsets is None else "of boxes, and the instruction copies pixels"
    lanes.require(of_pixels, f"the tensor map is one {wrong}")
    known = lanes.compare(element, lanes.const(len(ELEMENT_BYTES), 8), "lt", False)
    lanes.require(known, "the tensor map has no element type that is known")
    steps = fields.wide("element_stride", dimensions)
    first = lanes.compare(lanes.sub(steps[0], lanes.const(1, 32)), lanes.const(_MOST_STEP, 32), "lt", False)
    lanes.require(first, f"the tensor map has a step of its innermost dimension that is not 1 to {_MOST_STEP}")
    size, (swizzle,), (fill,) = lanes.const(0, 32), fields.wide("swizzle_mode"), fields.wide("fill_mode")
    for number, count in enumerate(ELEMENT_BYTES):
        here = lanes.compare(element, lanes.const(number, 8), "eq", False)
        size = lanes.select(here, lanes.const(count, 32), size)
    return Box(
        fields.numbers("global_address")[0], fields.numbers("global_dim", dimensions),
        fields.numbers("global_stride", dimensions - 1), fields.numbers("box_dim", dimensions),
        [lanes.const(1, 32), *steps[1:]], size, swizzle, fill,
        None if offsets is None else fields.pixels(offsets, dimensions - 2),
    )


def element_type(lanes: Any, address: Any) -> Any:
    """The number of the element type of the map at a generic address, in 8 bits."""
    (found,) = lanes.load("generic", lanes.add(address, lanes.const(FIELDS["elemtype"].offset, 64)), 8)
    return found
