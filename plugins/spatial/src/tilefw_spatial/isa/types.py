"""The element types of the chip: their codes in instruction words, their bytes, and how NumPy holds them.

An element of b bytes travels as b byte planes on b consecutive streams, the lowest byte first.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike, NDArray

from tilefw.api import DTYPES


@dataclass(frozen=True, slots=True)
class ElementType:
    """One element type: tilefw's name, its code in words, the bytes of an element, and the NumPy type of values of it."""

    name: str
    code: int
    nbytes: int
    numpy: np.dtype
    is_float: bool
    is_signed: bool

    @property
    def bits(self) -> int:
        """Bits of a value: 1 for int1, which fills a byte with 0 or 1."""
        return DTYPES[self.name].bits


def _numpy(name: str) -> np.dtype:
    spelled = DTYPES[name].numpy or ""
    return np.dtype(getattr(ml_dtypes, spelled, spelled))


# The order is the code in words, from 1; 0 is a row without element type.
_NAMES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int1", "fp8e4nv", "fp8e5", "fp16", "bf16", "fp32")

TYPES: dict[str, ElementType] = {
    name: ElementType(name, code, DTYPES[name].storage_bits // 8, _numpy(name), DTYPES[name].is_float, DTYPES[name].is_signed)
    for code, name in enumerate(_NAMES, 1)
}
"""Every element type by its name."""

BY_CODE: dict[int, ElementType] = {t.code: t for t in TYPES.values()}

SUMS = {"fp16": "fp32", "bf16": "fp32", "fp8e4nv": "fp32", "fp8e5": "fp32", "int8": "int32"}
"""What the matrix unit multiplies, and the element type of the sums of its products (machine page, MXM)."""

INTEGERS = _NAMES[:6]
FLOATS = _NAMES[7:]


def planes(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """The byte planes of values [..., lanes]: [b, ..., lanes], lowest byte first."""
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, values.dtype.itemsize)
    return np.moveaxis(raw, -1, 0)


def values(dtype: str, found: NDArray[np.uint8]) -> NDArray[np.generic]:
    """The values of byte planes [b, ..., lanes] as elements of `dtype`: [..., lanes]. Any byte but 0 is true as an int1."""
    if dtype == "int1":
        return found[0] != 0
    raw = np.ascontiguousarray(np.moveaxis(found, 0, -1))
    return raw.view(TYPES[dtype].numpy)[..., 0]


def reinterpret(source: NDArray[np.generic], dtype: str) -> NDArray[np.generic]:
    """The bits of `source` as elements of `dtype`, as an ALU sees what another ALU made: zeros above, or the low bytes only."""
    to: DTypeLike = TYPES[dtype].numpy
    if source.dtype == to:
        return source
    unsigned = np.ascontiguousarray(source).view(f"u{source.dtype.itemsize}")
    if dtype == "int1":
        return (unsigned & 0xFF) != 0
    return unsigned.astype(f"u{TYPES[dtype].nbytes}", copy=False).view(to)
