"""Small integers: quotients and multiples rounded up, logarithms of powers of two.

Example: `ceil_div(7, 2)` is 4, `round_up(7, 4)` is 8, `log2(8)` is 3.
"""

from __future__ import annotations

__all__ = ["ceil_div", "log2", "round_up"]


def ceil_div(number: int, divisor: int) -> int:
    """`number / divisor`, rounded up to an integer. Raises ZeroDivisionError."""
    return -(-number // divisor)


def round_up(number: int, unit: int) -> int:
    """The least multiple of `unit` that is not below `number`. Raises ZeroDivisionError."""
    return -(-number // unit) * unit


def log2(number: int) -> int:
    """The exponent of a power of two. Raises ValueError for any other number."""
    if number < 1 or number & (number - 1):
        raise ValueError(f"{number} is not a power of two")
    return number.bit_length() - 1
