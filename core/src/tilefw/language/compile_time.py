"""Functions of the language that run while a kernel is compiled, on values known then.

Those with an underscore are not Triton's interface, yet PyTorch's compiler calls them in the kernels that it writes.
"""

from __future__ import annotations

from typing import Any

from tilefw.language import constants, dtypes
from tilefw.language.markers import on_host

_INTEGERS = {
    (dtype.int_bitwidth, dtype.is_int_signed()): dtype
    for dtype in (
        dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64,
    )
} | {(1, signed): dtypes.int1 for signed in (False, True)}


@on_host
def get_int_dtype(bitwidth: int, signed: bool) -> dtypes.dtype:
    """The integer type of a width in bits, signed or not: 1, 8, 16, 32 or 64 bits."""
    found = _INTEGERS.get((constants.unwrap(bitwidth), bool(signed)))
    if found is None:
        raise ValueError(f"there is no {'signed' if signed else 'unsigned'} integer type of {bitwidth} bits")
    return found


@on_host
def _log2(i: int) -> int:
    """The largest n with 2**n <= i, for a positive i; 0 for others."""
    return max(int(constants.unwrap(i)).bit_length() - 1, 0) if constants.unwrap(i) > 0 else 0


@on_host
def _unwrap_if_constexpr(o: Any) -> Any:
    """The value of a constexpr; other values are given back."""
    return constants.unwrap(o)
