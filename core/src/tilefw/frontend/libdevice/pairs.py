"""Unevaluated sums of two floats: about twice the precision, from operations that are rounded once.

Dekker, "A floating-point technique for extending the available precision", 1971; Joldes, Muller & Popescu, "Tight and
rigorous error bounds for basic building blocks of double-word arithmetic", 2017, whose algorithms' numbers are named.
"""

from __future__ import annotations

from tilefw.frontend.libdevice.term import Term


def two_sum(x: Term, y: Term) -> tuple[Term, Term]:
    """x + y and its rounding error (Knuth; algorithm 2)."""
    total = x + y
    shifted = total - x
    return total, (x - (total - shifted)) + (y - shifted)
