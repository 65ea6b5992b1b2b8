"""Floats as the bits that hold them, in the IEEE formats that Python has: f16, f32, f64.

Example: `float_bits(1.0, "f32")` is 0x3F800000, and `float_value(0x3F800000, "f32")` is 1.0.
"""

from __future__ import annotations

import struct

__all__ = ["float_bits", "float_value"]

_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}
_WORDS = {"f16": "<H", "f32": "<I", "f64": "<Q"}


def float_bits(value: float, format: str) -> int:
    """The bits of `value` in a format, rounded to nearest even. Raises OverflowError for what rounds beyond the largest number, and
    KeyError for another format."""
    return struct.unpack(_WORDS[format], struct.pack(_FLOATS[format], value))[0]


def float_value(bits: int, format: str) -> float:
    """The number that bits of a format are. Raises struct.error for bits that the format has no room for, and KeyError for another
    format."""
    return struct.unpack(_FLOATS[format], struct.pack(_WORDS[format], bits))[0]
