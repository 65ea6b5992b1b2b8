"""Which registers hold a value that is still to be read, at every block's edges; tuples by their parts.

A unit is one smallest register: `(reg, index)`. The analysis is the textbook backward one ("Engineering a Compiler",
§8.6): live-in = reads before writes + (live-out - writes). A write under a predicate does not end a live range, unless it is the
only write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import chain

from tilefw.machine.flow import predecessors, successors
from tilefw.machine.inst import Block, Function, Inst, Reg, Slice
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
    """Live units at the entry and the exit of each block, by block index; `uses` are read there before any write, `defs` surely
    written."""

    live_in: list[set[Unit]]
    live_out: list[set[Unit]]
    uses: list[set[Unit]]
    defs: list[set[Unit]]

    def renew(
        self, function: Function, before: Sequence[Sequence[int]], blocks: Iterable[int], units: Set[Unit], once: Collection[Unit]
    ) -> None:
        """As `analyse` would find them now that the reads and writes of `units` in `blocks` are others, and no others are.

        What is live of one unit depends on no other unit: these are solved anew, alone. `before`: the predecessors of each block.
        """
        for i in blocks:
            self.uses[i], self.defs[i] = _summary(function.blocks[i], once)
        for live in (*self.live_in, *self.live_out):
            live -= units
        work = [(i, found) for i, uses in enumerate(self.uses) if (found := units & uses)]
        while work:
            i, found = work.pop()
            found = found - self.live_in[i]
            if not found:
                continue
            self.live_in[i] |= found
            for j in before[i]:
                self.live_out[j] |= found
                if passed := found - self.defs[j]:
                    work.append((j, passed))


def analyse(function: Function, table: InstructionTable, once: Collection[Unit] | None = None) -> Liveness:
    """Live sets of all blocks, by a worklist from the end. `once`: what is written once, where that is known already."""
    following = successors(function, table)
    before = predecessors(following)
    known = written_once(function) if once is None else once
    summaries = [_summary(block, known) for block in function.blocks]
    n = len(function.blocks)
    result = Liveness(
        [set() for _ in range(n)], [set() for _ in range(n)], [uses for uses, _ in summaries], [defs for _, defs in summaries]
    )
    work = list(range(n))
    while work:
        i = work.pop()
        out: set[Unit] = set()
        for j in following[i]:
            out |= result.live_in[j]
        result.live_out[i] = out
        into = result.uses[i] | (out - result.defs[i])
        if into != result.live_in[i]:
            result.live_in[i] = into
            work.extend(before[i])
    return result


def _summary(block: Block, once: Collection[Unit]) -> tuple[set[Unit], set[Unit]]:
    """The units that a block reads before any write, and those that it surely writes."""
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
    return read, written
