"""Fields of several runs of bits: their mask, a number put into them, and the number read back, the lowest run first."""

from __future__ import annotations

from collections.abc import Iterable

from tilefw_amd.isa.model import Pieces


def mask(pieces: Iterable[tuple[int, int]]) -> int:
    """Ones in all those bits."""
    found = 0
    for low, width in pieces:
        found |= ((1 << width) - 1) << low
    return found


def put(pieces: Pieces, value: int) -> int:
    """The word that holds the low bits of `value` in the runs, and zeros elsewhere."""
    word = 0
    for low, width in pieces:
        word |= (value & (1 << width) - 1) << low
        value >>= width
    return word


def take(pieces: Pieces, word: int) -> int:
    """What the runs of a word hold."""
    value = shift = 0
    for low, width in pieces:
        value |= (word >> low & (1 << width) - 1) << shift
        shift += width
    return value


def width_of(pieces: Pieces) -> int:
    """How many bits the runs have together."""
    return sum(width for _, width in pieces)
