"""Which registers hold a value that is still to be read, at every block's edges; tuples by their parts.

A unit is one smallest register: `(reg, index)`. The analysis is the textbook backward one ("Engineering a Compiler",
§8.6): live-in = reads before writes + (live-out - writes). A write under a predicate does not end a live range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilefw.machine.flow import predecessors, successors
from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.table import InstructionTable

Unit = tuple[Reg, int]


def units(piece: Slice) -> Iterator[Unit]:
    """The units that a slice covers."""
    for i in range(piece.first, piece.first + piece.count):
        yield piece.reg, i


def kills(inst: Inst) -> Iterator[Slice]:
    """The slices whose old value is surely gone after `inst`."""
    if inst.predicate is None:
        yield from inst.defs
        yield from inst.implicit_defs


@dataclass(slots=True)
class Liveness:
    """Live units at the entry and the exit of each block, by block index."""

    live_in: list[set[Unit]]
    live_out: list[set[Unit]]


def step_back(live: set[Unit], inst: Inst) -> None:
    """Turn the set that is live after `inst` into the one that is live before it."""
    for piece in kills(inst):
        if piece.count == 1:
            live.discard((piece.reg, piece.first))
        else:
            live.difference_update(units(piece))
    for piece in inst.reads():
        if piece.count == 1:
            live.add((piece.reg, piece.first))
        else:
            live.update(units(piece))


def analyse(function: Function, table: InstructionTable) -> Liveness:
    """Live sets of all blocks, by a worklist from the end."""
    following = successors(function, table)
    before = predecessors(following)
    uses, defs = _summaries(function)
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


def _summaries(function: Function) -> tuple[list[set[Unit]], list[set[Unit]]]:
    """Per block: units read before any write, and units surely written."""
    uses: list[set[Unit]] = []
    defs: list[set[Unit]] = []
    for block in function.blocks:
        read: set[Unit] = set()
        written: set[Unit] = set()
        for inst in block.insts:
            for piece in inst.reads():
                read.update(u for u in units(piece) if u not in written)
            for piece in kills(inst):
                written.update(units(piece))
        uses.append(read)
        defs.append(written)
    return uses, defs
