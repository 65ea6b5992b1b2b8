"""The bits of float literals in every element format."""

from __future__ import annotations

import struct
from functools import cache

from tilefw.api.dtypes import DTYPES, DType

_BY_IR: dict[str, DType] = {d.ir: d for d in DTYPES.values() if d.is_float}
_STRUCT = {"f64": ("<d", "<Q"), "f32": ("<f", "<I"), "f16": ("<e", "<H")}


def float_bits(value: float, name: str) -> int:
    """The code of a value that the format holds exactly (the front end rounds literals), or of an infinity or NaN."""
    return _bits(struct.unpack("<Q", struct.pack("<d", value))[0], name)


@cache
def _bits(double: int, name: str) -> int:
    value = struct.unpack("<d", struct.pack("<Q", double))[0]
    if name in _STRUCT:
        pack, unpack = _STRUCT[name]
        return struct.unpack(unpack, struct.pack(pack, value))[0]
    if name == "bf16":
        return struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    import numpy as np

    from tilefw.tile.numbers import encode

    return int(encode(np.array([value]), _BY_IR[name])[0])
