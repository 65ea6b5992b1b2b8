"""Numbers that a program keeps in memory: a load of what it stored itself is the value, and of two stores the last one counts.

Unrolled loops over small arrays in global memory write and read the same places again and again. Within a block of code, the
places at constant distances from one pointer are told apart; of any other pointer each may be the place. Whatever orders or
observes memory (atomics, barriers, prints, volatile accesses) ends what is known: stores that others wait for stay, in order.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.passes.fold import constant_of
from tilefw.passes.rewriting import erase, replace
from tilefw.passes.side_effects import is_side_effect_free, orders_memory
from tilefw.tile import types
from tilefw.tile.dialect.memory_ops import LoadOp, StoreOp
from tilefw.tile.dialect.ops import AddPtrOp
from tilefw.tile.nested_ops import nested_ops

Place = tuple[SSAValue, int]  # a pointer, and elements behind it: places behind one pointer are apart where these numbers differ


class ForwardStoresPass(ModulePass):
    """Replaces loads of numbers that the program stored itself, and drops stores that the next one overwrites.

    Single numbers only, block by block; tiles and masked accesses are not looked at, and may be any place.
    """

    name = "forward-stores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(inner, StoreOp) and _place(inner) is not None for inner in nested_ops(op)):
            _blocks_in(op)


def _blocks_in(op: Operation) -> None:
    for region in op.regions:
        for block in region.blocks:
            _KnownMemory().run(block)


class _KnownMemory:
    """At a point of a block, by pointer and distance: what is there, and the stores that nobody can have seen."""

    def __init__(self) -> None:
        self.known: dict[SSAValue, dict[int, SSAValue]] = {}
        self.unseen: dict[SSAValue, dict[int, StoreOp]] = {}

    def run(self, block: Block) -> None:
        op = block.first_op
        while op is not None:
            following = op.next_op
            if op.regions:
                _blocks_in(op)
            self._visit(op)
            op = following

    def _visit(self, op: Operation) -> None:
        if isinstance(op, LoadOp | StoreOp) and (place := _place(op)) is not None:
            if isinstance(op, LoadOp):
                self._load(op, place)
            else:
                self._store(op, place)
        elif not is_side_effect_free(op):
            self.unseen.clear()
            if orders_memory(op):
                self.known.clear()

    def _load(self, op: LoadOp, place: Place) -> None:
        pointer, distance = place
        known = self.known.setdefault(pointer, {})
        if distance in known:
            replace(op, known[distance])
            return
        known[distance] = op.results[0]
        unseen = self.unseen.get(pointer, {})
        unseen.pop(distance, None)
        self.unseen = {pointer: unseen}

    def _store(self, op: StoreOp, place: Place) -> None:
        pointer, distance = place
        unseen = self.unseen.setdefault(pointer, {})
        if distance in unseen:
            erase(unseen[distance])
        unseen[distance] = op
        known = self.known.get(pointer, {})
        known[distance] = op.value
        self.known = {pointer: known}


def _place(op: LoadOp | StoreOp) -> Place | None:
    """The one element that is accessed, always and without a wish of how; None for all else."""
    if types.is_tile(op.pointer.type) or op.offsets is not None or op.mask is not None:
        return None
    if op.volatile or op.cache or op.asynchronous:
        return None
    pointer, distance = op.pointer, 0
    while isinstance(pointer.owner, AddPtrOp) and (step := constant_of(pointer.owner.offset)) is not None:
        pointer, distance = pointer.owner.pointer, distance + int(step)
    return pointer, distance
