"""What the axis analysis knows of a value: what divides it, runs of consecutive and of equal elements in each dim, its range.

Ops declare how they hand it on (`StructuralOp.axis_info`); `passes/axis_info.py` computes it for a whole module.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from xdsl.ir import Attribute

from tilefw.tile import types

ANY_DIVISOR = 1 << 62  # what divides 0


@dataclass(frozen=True, slots=True)
class AxisInfo:
    """Per dim (one entry for scalars): the value at the start of each run of `contiguity` consecutive elements is a multiple
    of `divisibility` (of bytes, for pointers), a power of two, as those alone survive arithmetic that wraps; `constancy`
    elements in a row are equal. `low` and `high` bound every element (None: unknown)."""

    divisibility: tuple[int, ...]
    contiguity: tuple[int, ...]
    constancy: tuple[int, ...]
    low: int | None = None
    high: int | None = None

    @property
    def divisor(self) -> int:
        """What divides a scalar (its largest known divisor)."""
        return self.divisibility[0]


def unknown(type: Attribute) -> AxisInfo:
    """Nothing is known: everything divides by 1."""
    rank = max(1, len(types.shape_of(type)))
    ones = (1,) * rank
    return AxisInfo(ones, ones, ones)


def meet(a: AxisInfo, b: AxisInfo) -> AxisInfo:
    """What holds on both ways."""
    runs = tuple(map(gcd, a.contiguity, b.contiguity))
    return AxisInfo(
        joined(a, b, runs), runs, tuple(map(gcd, a.constancy, b.constancy)), lowest(a.low, b.low), highest(a.high, b.high)
    )


def joined(a: AxisInfo, b: AxisInfo, runs: tuple[int, ...]) -> tuple[int, ...]:
    """What divides the starts of `runs` in both."""
    starts = zip(a.divisibility, b.divisibility, a.contiguity, b.contiguity, runs, strict=True)
    return tuple(gcd(at_starts(da, ca, run), at_starts(db, cb, run)) for da, db, ca, cb, run in starts)


def at_starts(divisor: int, contiguity: int, run: int) -> int:
    """What divides every `run`-th element, of runs of `contiguity` that begin at multiples of `divisor`."""
    return divisor if contiguity in (1, run) else gcd(divisor, run)


def lowest(a: int | None, b: int | None) -> int | None:
    """The lower of two lower bounds; None (unknown) when either is."""
    return None if a is None or b is None else min(a, b)


def highest(a: int | None, b: int | None) -> int | None:
    """The higher of two upper bounds; None (unknown) when either is."""
    return None if a is None or b is None else max(a, b)


def power(number: int) -> int:
    """The largest power of two that divides a number; of 0, all do."""
    return number & -number if number else ANY_DIVISOR


def any_element(info: AxisInfo) -> int:
    """What divides every element, wherever it stands."""
    return max(power(at_starts(d, c, 1)) for d, c in zip(info.divisibility, info.contiguity, strict=True))
