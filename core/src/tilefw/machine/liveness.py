"""Which registers hold a value that is still to be read, at every block's edges; tuples by their parts.

A unit is one smallest register: `(reg, index)`. The analysis is the textbook backward one ("Engineering a Compiler",
§8.6): live-in = reads before writes + (live-out - writes). A write under a predicate does not end a live range, unless it is the
only write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain

from tilefw.machine.flow import predecessors, successors
from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.table import InstructionTable

Unit = tuple[Reg, int]


def written_once(function: Function) -> frozenset[Unit]:
    """The virtual units that one instruction alone writes: a false predicate keeps nothing there (see
    `subregisters`)."""
    pieces = (
        piece.units
        for block in function.blocks for inst in block.insts
        for piece in (inst.defs + inst.implicit_defs if inst.implicit_defs else inst.defs) if not piece.reg.physical
    )
    return frozenset([unit for unit, count in Counter(chain.from_iterable(pieces)).items() if count == 1])


def effects(inst: Inst, once: Collection[Unit]) -> tuple[set[Unit], set[Unit]]:
    """The units that an instruction reads, and those whose old value is surely gone after it."""
    read = {unit for piece in (*inst.uses, *inst.implicit_uses) if isinstance(piece, Slice) for unit in piece.units}
    written = {unit for piece in inst.writes() for unit in piece.units}
    if inst.predicate is None:
        return read, written
    kept = {unit for unit in written if unit not in once}
    return read | kept | set(inst.predicate.units), written - kept


@dataclass(slots=True)
class Liveness:
    """Live units at the entry and the exit of each block, by block index."""

    live_in: list[set[Unit]]
    live_out: list[set[Unit]]


def analyse(function: Function, table: InstructionTable, once: Collection[Unit] | None = None) -> Liveness:
    """Live sets of all blocks, by a worklist from the end. `once`: what is written once, where that is known already."""
    following = successors(function, table)
    before = predecessors(following)
    uses, defs = _summaries(function, written_once(function) if once is None else once)
    n = len(function.blocks)
    result = Liveness([set() for _ in range(n)], [set() for _ in range(n)])
    work = list(range(n))
    while work:
        i = work.pop()
        out: set[Unit] = set()
        for j in following[i]:
            out |= result.live_in[j]
        result.live_out[i] = out
        into = uses[i] | (out - defs[i])
        if into != result.live_in[i]:
            result.live_in[i] = into
            work.extend(before[i])
    return result


def _summaries(function: Function, once: Collection[Unit]) -> tuple[list[set[Unit]], list[set[Unit]]]:
    """Per block: units read before any write, and units surely written."""
    uses: list[set[Unit]] = []
    defs: list[set[Unit]] = []
    for block in function.blocks:
        read: set[Unit] = set()
        written: set[Unit] = set()
        for inst in reversed(block.insts):
            predicate = inst.predicate
            for piece in inst.defs + inst.implicit_defs if inst.implicit_defs else inst.defs:
                units = piece.units
                if predicate is not None:  # else what was there may be there still
                    units = [unit for unit in units if unit in once]
                    read.update(set(piece.units).difference(units))
                read.difference_update(units)
                written.update(units)
            for use in inst.uses + inst.implicit_uses if inst.implicit_uses else inst.uses:
                if use.__class__ is Slice:
                    read.update(use.units)  # type: ignore[union-attr]
            if predicate is not None:
                read.update(predicate.units)
        uses.append(read)
        defs.append(written)
    return uses, defs
