"""Rematerialisation in loops: where a loop's registers run out, values that cost one instruction are made there, not held.

Selection makes what is invariant before a loop: of a block that lanes read element by element, say, the offset of each row,
though all come of one stride and one column. An instruction moves from before a loop to right before the first that reads its
result, if it only computes, by its lane alone, its readers are in the block of the loop that holds the most, and what it reads is
the same there. It costs an instruction an iteration, so no more move than registers are wanting. ("Engineering a Compiler", §13.4;
`spill` does this for chips whose registers are assigned here, one value at a time.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tilefw.machine.flow import loops, predecessors, successors
from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.live_peak import LivePeak, block_peaks
from tilefw.machine.liveness import analyse
from tilefw.machine.table import InstructionTable, only_computes

Excess = Callable[[Function, LivePeak], int]
"""How many registers a block wants more than there are, at most 0 where they last."""


@dataclass(frozen=True)
class RematerialiseInLoops(FunctionPass):
    """Moves what is cheap into loops that want more registers than there are, as `excess` counts in those of `sizes`."""

    name = "rematerialise"
    table: InstructionTable
    sizes: Mapping[str, int]
    excess: Excess

    def run(self, function: Function) -> None:
        rematerialise(function, self.table, self.sizes, self.excess)


def rematerialise(function: Function, table: InstructionTable, sizes: Mapping[str, int], excess: Excess) -> int:
    """Move what helps, for each loop by itself; how many instructions moved."""
    moved, live, peaks = 0, None, list[LivePeak]()
    for start, end in loops(successors(function, table)):
        if live is None:  # at first, and where something moved for the loop before
            live = analyse(function, table)
            peaks = block_peaks(function, table, sizes, live)
        fullest = max(range(start, end + 1), key=lambda i: peaks[i])
        wanting = excess(function, peaks[fullest])
        if wanting > 0:
            held = {reg for reg, _ in live.live_in[fullest]}
            here = _CrowdedLoop(function, table, sizes, start, fullest, held).relieve(wanting)
            moved, live = moved + here, None if here else live
    return moved


class _CrowdedLoop:
    """A loop that begins at the block `start`, and the block of it that holds the most: at its begin the registers `held`."""

    def __init__(
        self, function: Function, table: InstructionTable, sizes: Mapping[str, int], start: int, fullest: int, held: set[Reg]
    ) -> None:
        self.function, self.table, self.sizes, self.held = function, table, sizes, held
        self.before = function.blocks[:start]
        self.block = function.blocks[fullest]
        self.made = _made_once(function)
        self.entered_once = not predecessors(successors(function, table))[0]

    def relieve(self, wanting: int) -> int:
        """Move instructions until so many registers less are held; how many moved."""
        places = {reg: at for at, inst in reversed(list(enumerate(self.block.insts))) for reg in _read(inst)}
        by_inputs: dict[frozenset[Reg], list[Inst]] = defaultdict(list)
        for inst in self._candidates(places):
            by_inputs[frozenset(reg for reg in _read(inst) if reg not in self.held)].append(inst)
        chosen: list[Inst] = []
        for inputs in sorted(by_inputs, key=lambda inputs: self._size(inputs) - self._size(map(_result, by_inputs[inputs]))):
            saved = -self._size(inputs)  # which the loop then holds instead
            if saved + self._size(map(_result, by_inputs[inputs])) <= 0:
                break
            for inst in by_inputs[inputs]:
                if saved >= wanting:
                    break
                chosen.append(inst)
                saved += self._size([_result(inst)])
            wanting -= saved
        self._move(chosen, places)
        return len(chosen)

    def _candidates(self, places: Mapping[Reg, int]) -> Iterator[Inst]:
        """The instructions before the loop that may move, in order."""
        others = (block for block in self.function.blocks if block is not self.block)
        elsewhere = {reg for block in others for inst in block.insts for reg in _read(inst)}
        for block in self.before:
            known: set[Reg] = set()  # what the block has made since its last branch
            for inst in block.insts:
                if inst.targets:
                    known.clear()
                if self._is_value(inst, elsewhere, places) and all(self._stays(use.reg, known) for use in _slices(inst)):
                    yield inst
                known.update(piece.reg for piece in inst.writes())

    def _is_value(self, inst: Inst, elsewhere: Collection[Reg], places: Collection[Reg]) -> bool:
        """Whether an instruction makes one value, which the fullest block alone reads, and does nothing else."""
        if len(inst.defs) != 1 or not only_computes(inst, self.table) or self.table.traits(inst.opcode).convergent:
            return False
        reg = _result(inst)
        return reg in self.made and reg in places and reg not in elsewhere and self._size([reg]) > 0

    def _stays(self, reg: Reg, known: Collection[Reg]) -> bool:
        """Whether a value that an instruction reads is the same in the loop: made right before it, or once in all."""
        return reg in self.made and (reg in known or (self.entered_once and self.made[reg] == 0))

    def _size(self, registers: Iterable[Reg]) -> int:
        return sum(self.sizes.get(reg.cls, 0) * reg.width for reg in registers)

    def _move(self, chosen: list[Inst], places: Mapping[Reg, int]) -> None:
        if not chosen:
            return
        gone, arriving = set(chosen), defaultdict[int, list[Inst]](list)
        for inst in chosen:
            arriving[places[_result(inst)]].append(inst)
        for block in self.before:
            block.insts = [inst for inst in block.insts if inst not in gone]
        self.block.insts = [inst for at, own in enumerate(self.block.insts) for inst in (*arriving[at], own)]


def _made_once(function: Function) -> dict[Reg, int]:
    """The registers that one instruction alone writes, without a condition, and the block that it is in."""
    found: dict[Reg, int] = {}
    again: set[Reg] = set()
    for number, block in enumerate(function.blocks):
        for inst in block.insts:
            for piece in inst.writes():
                if piece.reg in found or piece.reg.physical or inst.predicate is not None:
                    again.add(piece.reg)
                found[piece.reg] = number
    return {reg: number for reg, number in found.items() if reg not in again}


def _slices(inst: Inst) -> list[Slice]:
    return [use for use in inst.uses if isinstance(use, Slice)]


def _read(inst: Inst) -> set[Reg]:
    return {piece.reg for piece in inst.reads()}


def _result(inst: Inst) -> Reg:
    return inst.defs[0].reg
