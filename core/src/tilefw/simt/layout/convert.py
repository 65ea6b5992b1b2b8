"""Plans the conversion of a tile from one layout to another: a move of registers, shuffles in a wave, or shared memory.

A conversion is a linear map from the target's (register, lane, wave) bits to the source's, with a constant for a flip. Where
it leaves lanes and waves alone, registers are renamed; where it leaves waves alone, lanes may shuffle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from tilefw.api.errors import InternalError
from tilefw.api.integers import ceil_div, log2
from tilefw.simt.layout import LinearLayout, f2, swizzle
from tilefw.simt.layout.pattern import CYCLE_SLOTS, Banks, banks_of, side
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.layout.shuffle import Shuffle, shuffle
from tilefw.simt.lower.exchange_parts import Parts, split_conversion

if TYPE_CHECKING:
    from tilefw.simt.description import ChipDescription

# Issue slots: a wave waits at two barriers (before others may read, before the space may be used again). A weight between
# kinds of plans, not a measurement: long enough that a handful of shuffles is preferred, short beside a tile's accesses.
BARRIER_SLOTS = 30
# A larger tile goes in parts where it can: a workgroup that takes more shared memory leaves less for others beside it.
PART_BYTES = 1 << 15


@dataclass(frozen=True)
class RegisterMove:
    """No element leaves its thread: register i of the target is register `indices[i]` of the source.

    `cost` is in issue slots of a thread for the whole tile, `reason` says why the conversion is what it is.
    """

    indices: tuple[int, ...]
    cost: float
    reason: str


@dataclass(frozen=True)
class ThroughShared:
    """All threads write to a buffer of layout `shared` and read what they want, one of `parts` after the other."""

    shared: SharedLayout
    bits: int
    parts: Parts
    cost: float
    reason: str

    @property
    def bytes(self) -> int:
        """The size of the buffer."""
        return self.shared.size * self.bits // 8


Plan = RegisterMove | Shuffle | ThroughShared


def plan(source: LinearLayout, target: LinearLayout, bits: int, description: ChipDescription, flip: int = 0) -> Plan:
    """The cheapest way to the layout `target` of a tile that stands in `source`; `bits` an element takes in registers.

    With `flip`, element e of the target is element e XOR flip of the source (`LinearLayout.flipped`). Raises InternalError when the
    source does not hold all that the target wants. A chip without shared memory is told so when the buffer is placed.
    """
    return _plan(source, target, max(8, bits), flip, description.shuffles, banks_of(description))


@lru_cache(maxsize=2048)
def _plan(source: LinearLayout, target: LinearLayout, bits: int, flip: int, shuffles: bool, banks: Banks) -> Plan:
    indices = register_map(source, target, flip)
    if indices is not None:
        return RegisterMove(indices, _renaming(indices, bits), "every thread has its elements")
    if f2.rank(source.bases) < f2.rank((*source.bases, *target.bases, flip)):
        raise InternalError(f"{target} holds elements that {source} does not")
    within = shuffle(source, target, bits, flip) if shuffles else None
    if within is None or within.cost > _least(source, target, bits, banks):
        through = through_shared(source, target, bits, flip, banks)
        if within is None or within.cost > through.cost:
            return through
    count = within.instructions(bits)
    how = f"by {count} shuffles" if count else "by selects"
    return replace(within, reason=f"{moved(source, target, flip)}; {how}")


def _least(source: LinearLayout, target: LinearLayout, bits: int, banks: Banks) -> float:
    """A lower bound of what any way through shared memory costs: every register takes its cycles, conflicts or not."""
    words = sum(max(1, layout.registers * bits // 32) for layout in (source, target))
    return BARRIER_SLOTS + CYCLE_SLOTS * words * max(1, (4 << len(source.lane)) // banks.row)


def register_map(source: LinearLayout, target: LinearLayout, flip: int = 0) -> tuple[int, ...] | None:
    """For each register of the target the source's that holds its element, in every thread; None when there is no such map."""
    if source.thread != target.thread:
        return None
    span = f2.Subspace(source.register)
    start, columns = span.solve(flip), span.solve_all(target.register)
    if start is None or columns is None:
        return None
    return tuple(r ^ start for r in f2.table(columns))


def _renaming(indices: tuple[int, ...], bits: int) -> float:
    """Renaming whole registers is free; elements that share one are packed anew where they part."""
    per = max(1, 32 // bits)
    whole = all(i % per == 0 and group == tuple(range(i, i + len(group))) for i, group in (
        (indices[k], indices[k : k + per]) for k in range(0, len(indices), per)
    ))
    return 0.0 if whole else ceil_div(len(indices), per)


def through_shared(
    source: LinearLayout, target: LinearLayout, bits: int, flip: int, banks: Banks, part_bytes: int = PART_BYTES
) -> ThroughShared:
    """The way through shared memory, in parts of at most `part_bytes` (a power of two) if the layouts allow."""
    size = bits // 8 << source.bits
    parts = split_conversion(source, target, flip, log2(max(1, size // part_bytes)))
    shared = swizzle.choose_for(parts.source.shape, bits, (parts.source,), (parts.target,), banks)
    accesses = sum(
        side(layout, bits, banks, reads).best(shared, banks)[0] for layout, reads in ((parts.source, False), (parts.target, True))
    )
    cost = len(parts.registers) * (BARRIER_SLOTS + accesses)
    size //= len(parts.registers)
    times = f", {len(parts.registers)} times" if len(parts.registers) > 1 else ""
    return ThroughShared(shared, bits, parts, cost, f"{moved(source, target, flip)}; through {size} bytes of shared memory{times}")


_DIMS = {1: ("elements",), 2: ("rows", "columns")}


def moved(source: LinearLayout, target: LinearLayout, flip: int = 0) -> str:
    """What the conversion moves, in words: `rows and columns move across lanes`."""
    differ = [a ^ b for a, b in zip(source.wave, target.wave, strict=True)]
    span = f2.Subspace(source.register + source.lane)
    across = "waves" if any(d not in span for d in (*differ, *target.register, *target.lane, flip)) else "lanes"
    differ += [a ^ b for a, b in zip(source.lane, target.lane, strict=True)]
    names = _DIMS.get(len(source.shape)) or tuple(f"dim {d}" for d in range(len(source.shape)))
    touched = [any(source.coordinates(b)[d] for b in (*differ, flip)) for d in range(len(source.shape))]
    which = [name for name, here in zip(names, touched, strict=True) if here]
    return f"{' and '.join(which) or 'elements'} move across {across}"
