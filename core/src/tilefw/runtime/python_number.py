"""Scalars of other libraries as Python's own numbers, without loading those libraries."""

from __future__ import annotations

import numbers
from typing import Any

from tilefw.api.errors import LaunchError


class IntegerTooLargeError(LaunchError, OverflowError):
    """An argument that no integer type holds. Programs written for Triton catch Python's own OverflowError."""


def python_value(value: Any) -> Any:
    """A compile-time value as kernels know it: a NumPy scalar is Python's own number, anything else is itself."""
    number = None if isinstance(value, int | float | str | None) else python_number(value)
    return value if number is None else number


def python_number(value: Any) -> int | float | None:
    """A number of another library (a NumPy or ml_dtypes scalar) as Python's own."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    kind = type(value)
    if kind.__name__ in ("bool", "bool_"):
        return bool(value)
    # The scalars of ml_dtypes, which are registered with no class of `numbers`.
    element = kind.__name__ if kind.__module__.partition(".")[0] == "ml_dtypes" else ""
    if not element:
        return None
    return int(value) if element.lstrip("u").startswith("int") else float(value)
