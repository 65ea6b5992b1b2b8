"""Registers of a file: values are placed where all their parts are free, and wherever there is such a place one is found."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tilefw.machine.inst import Function, Reg
from tilefw.machine.live_ranges import LivePart, Segment
from tilefw.machine.movable_file import MovableFile
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


def _value(rng: random.Random, begin: int, lives: Sequence[int] = (3, 30, 3000)) -> tuple[int, int, list[LivePart]]:
    """Width, alignment, parts: the first of these begins at `begin`, others there or later; `lives` bound their segments."""
    width, align = rng.choice([(1, 1), (1, 1), (2, 2), (3, 1), (4, 4)])
    longest = rng.choice(lives)
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


@pytest.mark.parametrize("seed", range(2))
def test_values_that_move_stand_apart_and_places_are_found_as_before(seed: int) -> None:
    rng = random.Random(seed)
    file, function = MovableFile(COUNT, RESERVED), Function("f", "toy")
    fixed = [LivePart(0, 1, [(0, 40), (900, 910)])]
    file.fix(fixed)
    placed: dict[Reg, tuple[int, list[LivePart]]] = {}
    position, moves = 0, 0
    while position < 1200:
        width, align, parts = _value(rng, position, lives=(3, 10, 30))
        reg = function.register("v", width, align)
        first = file.find_free(width, align, parts, (), position)
        taken = _all_of(fixed, placed)
        assert (first is None) == (not any(taken.fits(at, width, parts) for at in range(0, COUNT, align)))
        if first is not None:
            file.take(first, parts, position)
            file.stand(reg, first, parts)
            placed[reg] = first, parts
        elif (moved := file.make_room(reg, parts, position)) is not None:
            assert len(moved) > 1 and all(not at % one.align for one, at in moved.items())
            placed |= {one: (at, parts if one is reg else placed[one][1]) for one, at in moved.items()}
            moves += 1
        position += rng.choice([0, 0, 1, 2, 12])
    assert moves > 5


def _all_of(fixed: list[LivePart], placed: dict[Reg, tuple[int, list[LivePart]]]) -> Taken:
    """What is taken by all of them; none may stand where another does."""
    taken = Taken()
    taken.take(0, fixed)
    for reg, (first, parts) in placed.items():
        assert taken.fits(first, reg.width, parts)
        taken.take(first, parts)
    return taken
