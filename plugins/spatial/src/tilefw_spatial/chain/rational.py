"""Quotients of polynomials that meet a function at Chebyshev's nodes: fewer steps than a polynomial of the same error."""

from __future__ import annotations

import math
from collections.abc import Callable


def rational(
    function: Callable[[float], float], limit: float, above: int, below: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Coefficients, lowest first, of P and Q with P(x²) / Q(x²) equal to function(x) at above + below nodes of 0 < x < limit.

    P has `above` of them; Q has 1 and `below` more. In floats of Python: good to fp32's precision."""
    count = above + below
    nodes = [limit / 2 * (1 + math.cos(math.pi * (2 * k + 1) / (2 * count))) for k in range(count)]
    rows: list[list[float]] = []
    for x in nodes:
        value, z = function(x), (x / limit) ** 2  # scaled: the system stays well conditioned
        rows.append([*(z**i for i in range(above)), *(-value * z**j for j in range(1, below + 1)), value])
    found = _solved(rows)
    scaled = [c / limit ** (2 * i) for i, c in enumerate(found[:above])]
    divisor = [1.0, *(c / limit ** (2 * j) for j, c in enumerate(found[above:], start=1))]
    return tuple(scaled), tuple(divisor)


def _solved(rows: list[list[float]]) -> list[float]:
    """Gauss's elimination with pivots; the last column is the right side."""
    count = len(rows)
    for i in range(count):
        pivot = max(range(i, count), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, count):
            factor = rows[r][i] / rows[i][i]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i], strict=True)]
    found = [0.0] * count
    for i in reversed(range(count)):
        found[i] = (rows[i][count] - math.fsum(rows[i][c] * found[c] for c in range(i + 1, count))) / rows[i][i]
    return found
