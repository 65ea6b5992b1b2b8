"""The bits of float literals in every element format."""

from __future__ import annotations

from functools import cache

from tilefw.api import floats
from tilefw.api.dtypes import DTYPES, DType

_BY_IR: dict[str, DType] = {d.ir: d for d in DTYPES.values() if d.is_float}


def float_bits(value: float, name: str) -> int:
    """The code of a value that the format holds exactly (the front end rounds literals), or of an infinity or NaN."""
    return _bits(floats.float_bits(value, "f64"), name)


@cache
def _bits(double: int, name: str) -> int:
    value = floats.float_value(double, "f64")
    if name in ("f16", "f32", "f64"):
        return floats.float_bits(value, name)
    if name == "bf16":
        return floats.float_bits(value, "f32") >> 16
    import numpy as np

    from tilefw.tile.numbers import encode

    return int(encode(np.array([value]), _BY_IR[name])[0])
