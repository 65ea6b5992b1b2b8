"""Splits a conversion into parts that go through shared memory one after the other, in less of it.

Where a register bit adds the same element in source and target, and that element has an index bit that no other basis has, the
tile falls into two halves by that index bit: each thread holds and wants each half in registers that are known. Both halves
have the same layouts, of a tile without the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.simt.layout import LinearLayout, f2

Registers = tuple[int, ...]


@dataclass(frozen=True)
class Parts:
    """Layouts of one part, its `flip`, and for each part the source's registers that hold it and the target's that want it."""

    source: LinearLayout
    target: LinearLayout
    flip: int
    registers: tuple[tuple[Registers, Registers], ...]


def whole_conversion(source: LinearLayout, target: LinearLayout, flip: int) -> Parts:
    """The conversion in one part."""
    return Parts(source, target, flip, ((tuple(range(source.registers)), tuple(range(target.registers))),))


def split_conversion(source: LinearLayout, target: LinearLayout, flip: int, most: int) -> Parts:
    """The conversion in up to 2^most parts."""
    common = _common(source, target, most)
    if not common:
        return whole_conversion(source, target, flip)
    elements = [element for element, _ in common]
    index = [bit for _, bit in common]
    part = _rest(source.bits, common)
    size = (1 << (source.bits - len(common)),)

    def reduced(layout: LinearLayout) -> LinearLayout:
        kept = [b for b in layout.register if b not in elements]
        return LinearLayout(size, *(f2.compose(part, bases) for bases in (kept, layout.lane, layout.wave)))

    turned = sum((flip >> bit & 1) << i for i, bit in enumerate(index))
    pairs = [
        (_held(source, elements, p), _held(target, elements, p ^ turned)) for p in range(1 << len(common))
    ]
    return Parts(reduced(source), reduced(target), f2.apply(part, flip), tuple(pairs))


def _common(source: LinearLayout, target: LinearLayout, most: int) -> list[tuple[int, int]]:
    """Register bases of both layouts, each with an index bit of its own; the highest first, which are whole accesses."""
    found: list[tuple[int, int]] = []
    threads, registers = source.thread + target.thread, source.register + target.register
    for element in reversed(source.register):
        if element not in target.register or len(found) == most:
            continue
        own = element
        for basis in (*threads, *(r for r in registers if r != element)):
            own &= ~basis
        if own:
            found.append((element, own.bit_length() - 1))
    return found


def _rest(bits: int, common: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """From elements to those of a part: its element is taken off where its bit is set, and the bit is left out."""
    taken = {bit: element for element, bit in common}
    left = [i for i in range(bits) if i not in taken]
    place = {bit: 1 << i for i, bit in enumerate(left)}
    matrix = []
    for i in range(bits):
        rest = taken[i] ^ 1 << i if i in taken else 1 << i
        matrix.append(sum(p for bit, p in place.items() if rest >> bit & 1))
    return tuple(matrix)


def _held(layout: LinearLayout, elements: Sequence[int], part: int) -> Registers:
    """The registers of a part, in the order of the part's layout."""
    where = [layout.register.index(element) for element in elements]
    first = sum(1 << at for i, at in enumerate(where) if part >> i & 1)
    return tuple(first ^ r for r in f2.table([1 << i for i in range(len(layout.register)) if i not in where]))
