"""How waves touch a buffer in shared memory: the patterns of a writer or reader, their cycles and bank conflicts.

A cycle serves one word of each bank. A wave's wide access goes in groups of lanes, each as many as fill all banks once
(128 bits by 32 lanes on 32 banks of 32 bits: four groups of eight lanes); lanes that take one word share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from tilefw.api.integers import log2
from tilefw.simt.layout import LinearLayout, f2
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.layout.transposed import TransposedRead, transposed_reads

if TYPE_CHECKING:
    from tilefw.simt.description import ChipDescription, FragmentLoad, TransposedLoad

# A cycle of shared memory serves one wave of a core whose (usually four) schedulers issue an instruction each in that time, or in
# the `issue_cycles` that a wave of the chip takes for one.
CYCLE_SLOTS = 4
_WORD = 32
_RENAMED = 1 / 64  # of a slot: renaming costs nothing, but of equals the one in order is better


@dataclass(frozen=True, slots=True)
class Banks:
    """The facts of a chip's shared memory that count here; sizes in bytes. In one cycle `cycle_slots` instructions are issued."""

    count: int
    bytes: int
    access: int
    loads: tuple[FragmentLoad, ...]
    cycle_slots: float = CYCLE_SLOTS
    transposed: tuple[TransposedLoad, ...] = ()

    @property
    def row(self) -> int:
        """What all banks serve in one cycle."""
        return self.count * self.bytes


def banks_of(description: ChipDescription) -> Banks:
    """The banks of a chip, and its fragment and transposing loads."""
    return Banks(
        description.banks, description.bank_bytes, description.shared_access_bytes, description.fragment_loads,
        CYCLE_SLOTS / description.issue_cycles, description.transposed_loads,
    )


@dataclass(frozen=True, slots=True)
class Pattern:
    """`times` accesses of each wave. One takes the low `width` offset bits (a logarithm) in one piece, in every place.

    The sums of the elements `together` are the places served in one cycle; an access takes `cycles` of them. `packing` are the
    issue slots that bring the elements to the registers' order. However narrow, an access takes `least` cycles: one serves no more
    lanes than there are banks. `columns` is said of transposing loads.
    """

    width: int
    together: tuple[int, ...]
    times: float
    cycles: int
    packing: float = 0.0
    cycle_slots: float = CYCLE_SLOTS
    least: int = 1
    columns: TransposedRead | None = None

    def conflicts(self, shared: SharedLayout, bits: int, banks: Banks) -> int:
        """The logarithm of the cycles that the places of one cycle take: words that differ while their banks are the same."""
        return _conflicts(self.together, (bits // 8) << self.width, shared, bits // 8, banks.bytes, banks.count)

    def slots(self, conflicts: int = 0) -> float:
        """Issue slots of a thread for all accesses."""
        return self.times * (1 + self.cycle_slots * max(self.least, self.cycles << conflicts)) + self.packing


@lru_cache(maxsize=4096)
def _conflicts(together: tuple[int, ...], access: int, shared: SharedLayout, size: int, bank_bytes: int, banks: int) -> int:
    """`Pattern.conflicts` of accesses of `access` bytes and elements of `size`: layouts are tried in many combinations of few."""
    words = [offset * size // bank_bytes for offset in shared.offsets(together)]
    words += f2.identity(log2(max(1, access // bank_bytes)))
    return f2.rank(words) - f2.rank([w & (banks - 1) for w in words])


@dataclass(frozen=True)
class BankRows:
    """A reader as a fragment load sees it: `vector` are the elements along a row, in order, `rows` tell the rows apart."""

    load: FragmentLoad
    transposed: bool
    vector: tuple[int, ...]
    rows: tuple[int, ...]


@lru_cache(maxsize=1024)
def rows_of(layout: LinearLayout, bits: int, loads: tuple[FragmentLoad, ...]) -> tuple[BankRows, ...]:
    """The fragment loads that give registers of `layout`, where the buffer has their rows each in one piece."""
    found: list[BankRows] = []
    for load in loads:
        across, down = log2(load.row_bytes) - 2, log2(load.rows)
        if bits > 32 or len(layout.lane) != across + down or layout.registers * bits < 32:
            continue
        packed, lanes = layout.register[: log2(32 // bits)], layout.lane
        shapes = [BankRows(load, False, (*packed, *lanes[:across]), lanes[across : across + down])]
        if load.transposed and bits == load.cell_bits:
            shapes.append(BankRows(load, True, lanes[across : across + down], (*packed, *lanes[:across])))
        for rows in shapes:
            fits = bits << len(rows.vector) == load.row_bytes * 8 and len(rows.rows) == down
            if fits and f2.rank(rows.vector + rows.rows) == len(rows.vector) + down:
                found.append(rows)
    return tuple(found)


@dataclass(frozen=True)
class LayoutSide:
    """A writer or reader of elements of `bits` bits.

    `fixed` registers (a logarithm; 0 for none) must stand together in the buffer in their order; `rows` are fragment loads
    that it may use, `columns` transposing loads.
    """

    layout: LinearLayout
    bits: int
    fixed: int = 0
    rows: tuple[BankRows, ...] = ()
    columns: tuple[TransposedRead, ...] = ()

    def pattern(self, vector: Sequence[int], banks: Banks) -> Pattern:
        """The best pattern where the low offset bits hold the elements `vector`, if there are no bank conflicts."""
        plain = self._plain(vector, self._widest(vector, banks), banks)
        others = [*self._fragments(vector, banks), *self._transposed(vector, banks)]
        return min([*others, plain], key=Pattern.slots) if others else plain

    def best(self, shared: SharedLayout, banks: Banks) -> tuple[float, Pattern, int]:
        """Of the patterns that the buffer allows the one that takes the fewest issue slots: slots, pattern, conflicts.

        Narrower accesses may avoid conflicts that wider ones have.
        """
        found = [(p, p.conflicts(shared, self.bits, banks)) for p in self.patterns(shared.bases, banks)]
        return min(((p.slots(c), p, c) for p, c in found), key=lambda entry: entry[0])

    def patterns(self, vector: Sequence[int], banks: Banks) -> list[Pattern]:
        """Fragment and transposing loads, then plain accesses from the widest; a copy has its one width."""
        widest = self._widest(vector, banks)
        plain = [self._plain(vector, width, banks) for width in ([widest] if self.fixed else range(widest, -1, -1))]
        return [*self._fragments(vector, banks), *self._transposed(vector, banks), *plain]

    def _widest(self, vector: Sequence[int], banks: Banks) -> int:
        if self.fixed:
            return self.fixed if tuple(vector[: self.fixed]) == self.layout.register[: self.fixed] else 0
        width = 0
        while width < len(vector) and self.bits // 8 << width < banks.access and vector[width] in self._registers:
            width += 1
        return width

    @cached_property
    def _registers(self) -> f2.Subspace:
        return f2.Subspace(self.layout.register)

    def _plain(self, vector: Sequence[int], width: int, banks: Banks) -> Pattern:
        layout, size = self.layout, self.bits // 8
        lanes = min(len(layout.lane), log2(max(1, banks.row // (size << width))))
        cycles = 1 << (len(layout.lane) - lanes)
        packing = self._packing(vector[:width])
        least = max(1, (1 << len(layout.lane)) // banks.count)
        return Pattern(width, layout.lane[:lanes], layout.registers >> width, cycles, packing, banks.cycle_slots, least)

    def _packing(self, vector: Sequence[int]) -> float:
        """Small elements that do not come as the registers of 32 bits hold them are taken apart and packed anew; single ones only
        one of that; whole registers are renamed."""
        registers = self.layout.register
        if tuple(vector) == registers[: len(vector)] and len(vector) >= self._packed:
            return 0.0
        words = self.layout.registers * self.bits / _WORD
        if len(vector) < self._packed:
            return words
        return 2 * words if tuple(vector[: self._packed]) != registers[: self._packed] else words * _RENAMED

    @cached_property
    def _packed(self) -> int:
        """How many register bits choose the element within a register of 32 bits."""
        return min(len(self.layout.register), log2(max(1, _WORD // self.bits)))

    def _fragments(self, vector: Sequence[int], banks: Banks) -> list[Pattern]:
        found = []
        for rows in self.rows:
            length, load = len(rows.vector), rows.load
            if tuple(vector[:length]) == rows.vector:
                matrices = self.layout.registers * self.bits // 32
                at_once = min(matrices, load.most)
                cycles = max(1, load.rows * load.row_bytes // banks.row) * at_once
                found.append(Pattern(length, rows.rows, matrices / at_once, cycles, 0.0, banks.cycle_slots))
        return found

    def _transposed(self, vector: Sequence[int], banks: Banks) -> list[Pattern]:
        found = []
        for read in self.columns:
            if tuple(vector[: read.width]) == read.cells:
                served = min(len(read.lanes), log2(max(1, banks.row // read.load.bytes)))
                cycles = 1 << (len(read.lanes) - served)
                times = self.layout.registers >> read.width
                found.append(Pattern(read.width, read.lanes[:served], times, cycles, 0.0, banks.cycle_slots, columns=read))
        return found


@lru_cache(maxsize=256)
def side(layout: LinearLayout, bits: int, banks: Banks, reads: bool = False) -> LayoutSide:
    """A plain writer, or a reader that may use fragment loads and transposing ones; made once, as many buffers are tried for it."""
    if not reads:
        return LayoutSide(layout, bits)
    return LayoutSide(layout, bits, 0, rows_of(layout, bits, banks.loads), transposed_reads(layout, bits, banks.transposed))
