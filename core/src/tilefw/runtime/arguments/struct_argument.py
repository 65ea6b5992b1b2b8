"""A struct that a kernel takes by value: its bytes, from `bytes`, a NumPy structured scalar or array, or a ctypes structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilefw.api.artifact import Parameter
from tilefw.api.device import Struct
from tilefw.api.errors import LaunchError

_HELP = "pass bytes, a NumPy structured scalar or a ctypes.Structure of this size"


def is_struct(value: Any) -> bool:
    """Whether a value can only be a struct by value: neither a number nor an array of elements."""
    import ctypes

    if isinstance(value, np.ndarray) and value.dtype.names is not None:
        return True
    return isinstance(value, Struct | np.void | ctypes.Structure | ctypes.Union)


def struct(what: str, parameter: Parameter, value: Any) -> Struct:
    """The bytes of `value` for a by-value parameter; raises LaunchError TFW0328 where they are none or not as many.

    They are taken as they are: the layout, padding too, is the caller's, and an address in them is a number like any other.
    """
    data = _struct_bytes(value)
    if data is None:
        message = f"{what} is a struct of {parameter.size} bytes, not {value!r}"
        raise LaunchError(message, code="TFW0328", help=_HELP)
    if len(data) != parameter.size:
        raise LaunchError(f"{what} has {parameter.size} bytes, not {len(data)}", code="TFW0328", help=_HELP)
    return Struct(data)


def _struct_bytes(value: Any) -> bytes | None:
    if isinstance(value, Struct):
        return value.data
    if isinstance(value, np.ndarray | np.void):
        return value.tobytes()
    if is_struct(value) or isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    return None
