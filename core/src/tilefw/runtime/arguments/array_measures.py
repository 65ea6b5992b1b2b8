"""Extents and strides of an array as parameters of their own, which the runtime passes behind the array's pointer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tilefw.api.artifact import Parameter
from tilefw.api.device import Scalar
from tilefw.api.dtypes import dtype
from tilefw.api.errors import LaunchError

# What `Parameter.hidden` says, with the number that the code was made for where there is one.
_MEASURE = re.compile(r"(extent|stride) (\d+) of (\w+)(?: is (-?\d+))?")


def is_measure(parameter: Parameter) -> bool:
    """Whether the parameter is an extent or a stride of an array that stands before it."""
    return parameter.hidden is not None and _MEASURE.fullmatch(parameter.hidden) is not None


def measure(kernel: str, parameter: Parameter, bound: Mapping[str, Any]) -> Scalar:
    """The number of the array's in `bound`, by names of parameters; strides count elements. Raises LaunchError (TFW0324) for an
    array of fewer axes, or one that the code was not made for."""
    found = _MEASURE.fullmatch(parameter.hidden or "")
    assert found is not None
    word, axis, array = found[1], int(found[2]), bound.get(found[3])
    what = f"argument '{found[3]}' of {kernel}"
    if array is None or isinstance(array, Scalar):
        given = "a null pointer" if array is None else "a number"
        raise LaunchError(f"{what} is an array with {word}s, not {given}", code="TFW0324")
    if axis >= len(array.shape):
        raise LaunchError(f"{what} has {len(array.shape)} axes, and the kernel takes more", code="TFW0324")
    size = array.dtype.storage_bits // 8
    number = array.shape[axis] if word == "extent" else array.strides[axis] // size
    if word == "stride" and array.strides[axis] % size:
        raise LaunchError(f"{what} has elements that lie {array.strides[axis]} bytes apart along axis {axis}", code="TFW0324")
    if found[4] is not None and number != int(found[4]) and not (word == "stride" and array.shape[axis] <= 1):
        raise LaunchError(
            f"{what} has {word} {number} along axis {axis}, and the kernel was compiled for {found[4]}", code="TFW0324",
            help="compile the kernel for such an array, or pass one that is laid out as the kernel's is",
        )
    kind = dtype(parameter.dtype)
    if not -(1 << kind.bits - 1) <= number < 1 << kind.bits - 1:
        raise LaunchError(f"the {word} {number} of {what} does not fit {kind}", code="TFW0325")
    return Scalar(number, parameter.dtype)
