"""What tensor maps of arrays say of elements and swizzles, in the words of instructions and of the driver."""

from __future__ import annotations

from tilefw.api.device import DescribedArray

# CUDA Driver API, CUtensorMapDataType, in order; not the numbers of `tensormap.replace`.
_DRIVER_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16")
# PTX ISA, "tensormap.replace": by an element's name its type; by the bytes of a row the mode of swizzle, of which
# CUtensorMapSwizzle has the same number.
_ELEMENTS = {
    "int8": "u8", "uint8": "u8", "int16": "u16", "uint16": "u16", "fp16": "f16", "bf16": "bf16",
    "int32": "s32", "uint32": "u32", "fp32": "f32", "int64": "s64", "uint64": "u64", "fp64": "f64",
}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}


def element_name(array: DescribedArray) -> str:
    """The element's type; of one that the engine does not name, that of one as wide."""
    return _ELEMENTS.get(array.element, "u8")


def driver_type(array: DescribedArray) -> int:
    """The number of the element's type as the driver counts them."""
    return _DRIVER_TYPES.index(element_name(array))


def swizzle_mode(array: DescribedArray) -> int:
    """The number of the mode."""
    return _SWIZZLES[array.row_bytes]
