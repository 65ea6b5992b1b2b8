"""The most registers that a function holds at once, of all classes together, where one file has them all.

Example: `live_peak(function, table, {"r": 1, "rd": 2})`, of registers of 32 bits, of which the class for 64 bits takes two.
The count is that of the order as written; who assigns the registers may reorder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from tilefw.machine.inst import Block, Function, Inst, Slice
from tilefw.machine.liveness import Liveness, Unit, analyse, effects, written_once
from tilefw.machine.table import InstructionTable


class LivePeak(NamedTuple):
    """`most` are live at once; `least` at any place in the same block: no other order of the block needs fewer."""

    most: int
    least: int


def live_peak(function: Function, table: InstructionTable, sizes: Mapping[str, int]) -> LivePeak:
    """Counts what virtual registers take. `sizes`: by class what one register takes, 0 where it is not said."""
    return max(block_peaks(function, table, sizes), default=LivePeak(0, 0))


def block_peaks(
    function: Function, table: InstructionTable, sizes: Mapping[str, int], live: Liveness | None = None
) -> list[LivePeak]:
    """The same of each block by itself; nothing of one without instructions. `live`: what is live, where that is known already."""
    once = written_once(function) if any(inst.predicate is not None for inst in function.insts()) else frozenset()
    ends: list[set[Unit]] = [set() for _ in function.blocks]  # of a single one
    if len(function.blocks) > 1:
        ends = (live or analyse(function, table, once)).live_out
    early = {opcode for opcode in {inst.opcode for inst in function.insts()} if table.traits(opcode).early}
    return [
        _LiveScan(sizes, once, early).peak(block, end) if block.insts else LivePeak(0, 0)
        for block, end in zip(function.blocks, ends, strict=True)
    ]


class _LiveScan:
    """What is live in one block, from its end backward."""

    def __init__(self, sizes: Mapping[str, int], once: Collection[Unit], early: Collection[str]) -> None:
        self._sizes, self._once, self._early = sizes, once, early
        self._alive: set[Unit] = set()
        self._total = 0

    def peak(self, block: Block, end: Iterable[Unit]) -> LivePeak:
        self._add(end)
        counts: list[int] = []
        for inst in reversed(block.insts):
            plain = inst.predicate is None and not inst.implicit_defs and not inst.implicit_uses
            if plain and inst.opcode not in self._early:
                for piece in inst.defs:
                    self._add(piece.units)
                counts.append(self._total)
                for piece in inst.defs:
                    self._remove(piece.units)
                for use in inst.uses:
                    if use.__class__ is Slice:
                        self._add(use.units)  # type: ignore[union-attr]
                counts.append(self._total)
            else:
                counts += self._around(inst)
        return LivePeak(max(counts), min(counts))

    def _around(self, inst: Inst) -> tuple[int, int]:
        """How many are live behind an instruction of any kind, and before it."""
        read, gone = effects(inst, self._once)
        self._add(unit for piece in inst.writes() for unit in piece.units)
        behind = self._total
        self._remove(gone)
        self._add(read)
        if inst.opcode not in self._early:
            return behind, self._total
        return behind, self._total + sum(self._size(unit) for unit in gone - self._alive)

    def _add(self, units: Iterable[Unit]) -> None:
        for unit in units:
            if unit not in self._alive:
                self._alive.add(unit)
                self._total += self._size(unit)

    def _remove(self, units: Iterable[Unit]) -> None:
        for unit in units:
            if unit in self._alive:
                self._alive.remove(unit)
                self._total -= self._size(unit)

    def _size(self, unit: Unit) -> int:
        return 0 if unit[0].physical else self._sizes.get(unit[0].cls, 0)
