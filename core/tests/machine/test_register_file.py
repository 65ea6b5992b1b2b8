"""Registers of a file: values are placed where all their parts are free, and wherever there is such a place one is found."""

from __future__ import annotations

import random

import pytest

from tilefw.machine.live_ranges import LivePart, Segment
from tilefw.machine.register_file import RegisterFile

COUNT = 12
RESERVED = frozenset({5})


class Taken:
    """The points at which each register is taken, one by one."""

    def __init__(self) -> None:
        self.points: list[set[int]] = [set() for _ in range(COUNT)]

    def fits(self, first: int, width: int, parts: list[LivePart]) -> bool:
        if first + width > COUNT or RESERVED.intersection(range(first, first + width)):
            return False
        return not any(self.points[first + i] & lived for i, lived in _lived(parts))

    def take(self, first: int, parts: list[LivePart]) -> None:
        for i, lived in _lived(parts):
            self.points[first + i] |= lived


def _lived(parts: list[LivePart]) -> list[tuple[int, set[int]]]:
    points = [(part, {point for a, b in part.segments for point in range(a, b)}) for part in parts]
    return [(i, lived) for part, lived in points for i in range(part.first, part.first + part.width)]


def _segments(rng: random.Random, begin: int, longest: int) -> list[Segment]:
    """One to three, with holes between them."""
    found: list[Segment] = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        end = begin + rng.randint(1, longest)
        found.append((begin, end))
        begin = end + rng.randint(1, longest)
    return found


def _value(rng: random.Random, begin: int) -> tuple[int, int, list[LivePart]]:
    """Width, alignment, parts: the first of these begins at `begin`, others there or later."""
    width, align = rng.choice([(1, 1), (1, 1), (2, 2), (3, 1), (4, 4)])
    longest = rng.choice([3, 30, 3000])
    cut = rng.randint(1, width)
    parts = [LivePart(0, cut, _segments(rng, begin, longest))]
    if cut < width:
        parts.append(LivePart(cut, width - cut, _segments(rng, begin + rng.choice([0, 2]), longest)))
    return width, align, parts


@pytest.mark.parametrize("seed", range(12))
def test_values_are_placed_where_they_fit_and_always_if_they_do(seed: int) -> None:
    rng = random.Random(seed)
    file, taken = RegisterFile(COUNT, RESERVED), Taken()
    fixed = [LivePart(0, 1, [(0, 40), (9000, 9100)])]
    file.take(0, fixed)
    taken.take(0, fixed)
    position, placed, refused = 0, 0, 0
    for number in range(400):
        in_order = number >= 5  # the first ones come in any order
        begin = position if in_order else rng.randrange(20_000)
        width, align, parts = _value(rng, begin)
        preferred = [rng.randrange(COUNT) for _ in range(rng.choice([0, 0, 1, 2]))]
        first = file.find_free(width, align, parts, preferred, position if in_order else None)
        where = [at for at in range(0, COUNT, align) if taken.fits(at, width, parts)]
        if first is None:
            assert not where
            refused += 1
        else:
            assert first in where
            assert all(first == at for at in preferred[:1] if at in where)
            file.take(first, parts, position if in_order else None)
            taken.take(first, parts)
            placed += 1
        position += rng.choice([0, 0, 1, 2, 40, 120])
    assert position > 8000 and placed > 100 and refused > 10
