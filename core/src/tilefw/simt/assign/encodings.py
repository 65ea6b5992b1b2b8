"""Encodings: the one layout of each class of tiles, and the natural layout of the results of some ops.

The anchor with the most weight decides the encoding of a class, in this order:
1. a dot, whose accumulator has its atom's layout (`atoms.choose`);
2. a reduction of a class that has an encoding already: its slice, so that loop-carried values need no conversion;
3. the class's accesses to global memory, coalesced, weighted by bytes (blocks count four times: scattered accesses gain
   nothing from an order of the dims);
4. a load from a shared buffer that copies fill: the copies' own, in which lanes read back the pieces that they brought;
5. an operand of a shape op (expand_dims, trans, reshape, join, split) whose class has an encoding, moved forward;
6. the result of such an op, moved backward;
7. none: blocked, the last dim fastest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilefw.simt.assign.accesses import ACCESSES, Accesses, accessed_type, accessed_value, check_shape
from tilefw.simt.assign.chains import DotChains
from tilefw.simt.assign.classes import Classes
from tilefw.simt.assign.shared_operands import marked_layouts
from tilefw.simt.assign.staging import buffer_of_view, users_of
from tilefw.simt.assign.transfer import moves_layout, operand_layouts, push
from tilefw.simt.description import LaneMachine
from tilefw.simt.layout import LinearLayout, atoms, blocked
from tilefw.simt.layout.atoms import DotLayouts
from tilefw.simt.lower import dot
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.combine_op import ReduceOp
from tilefw.tile.dialect.copy_ops import CopyBlockOp, CopyOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.shared_ops import LoadSharedOp
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.text.source_location import place_of

_BLOCK_WEIGHT = 4
_REACH = 6  # classes in a row through which one encoding is searched


class Encodings:
    """`of(value)` is the encoding of a tile's class; `natural(op)` where an op's result is best computed; `dots` all dots'
    layouts."""

    def __init__(self, function: FuncOp, classes: Classes, accesses: Accesses, machine: LaneMachine) -> None:
        self.classes = classes
        self.accesses = accesses
        self.machine = machine
        self.dots: dict[DotOp, DotLayouts] = {}
        self._encodings: dict[SSAValue, LinearLayout] = {}
        self._open: set[SSAValue] = set()
        self._skipped = False
        found = [op for op in nested_ops(function) if isinstance(op, DotOp)]
        chains = DotChains(found, classes)
        for op in found:
            chain = chains.of(op)
            for operand in op.operands:
                check_shape(types.shape_of(operand.type), op)
            self.dots[op] = marked_layouts(op, machine, chain) or atoms.choose(
                dot.shape_of(op), dot.types_of(op), machine, chain, place=place_of(op)
            )

    def of(self, value: SSAValue) -> LinearLayout:
        """The encoding of the class of a tile. Raises UnsupportedError (TFW0611) where lanes cannot share the tile."""
        root = self.classes.root(value)
        found = self._encodings.get(root)
        if found is None:
            outer, self._skipped = self._skipped, False
            found = self._find(root)
            # What was found without a class that is still being decided may not be the last word.
            if not self._skipped or not self._open:
                self._encodings[root] = found
            self._skipped = self._skipped or outer
        return found

    def natural(self, op: Operation) -> LinearLayout:
        """Where the op's (first) tile result is computed if nobody asks for another layout."""
        if isinstance(op, DotOp):
            return self.dots[op].d
        if isinstance(op, ReduceOp):
            return self.of(op.operands[0]).slice(op.axis)[0]
        encoding = self.of(op.results[0])
        if isinstance(op, ops.LoadOp | ops.LoadBlockOp):
            return self.accesses.better(op, encoding)
        return encoding

    def _find(self, root: SSAValue) -> LinearLayout:
        check_shape(types.shape_of(root.type), root.owner)
        self._open.add(root)
        try:
            return next(found for found in self._candidates(root) if found is not None)
        finally:
            self._open.discard(root)

    def _candidates(self, root: SSAValue) -> Iterator[LinearLayout | None]:
        members = self.classes.ops(root)
        mine = [op for op in members if any(self._in(root, r) for r in op.results)]
        yield next((self.dots[op].d for op in mine if isinstance(op, DotOp)), None)
        for op in mine:
            if isinstance(op, ReduceOp) and self._closed(op.operands[0]):
                yield push(op, self.of(op.operands[0]))
        yield self._coalesced(root, members)
        yield next((copied for op in mine if isinstance(op, LoadSharedOp) for copied in self._copied(op)), None)
        for op in mine:
            if moves_layout(op) and types.is_tile(op.operands[0].type) and self._closed(op.operands[0]):
                yield push(op, self.of(op.operands[0]))
        for op in members:
            if moves_layout(op) and types.is_tile(op.results[0].type) and self._closed(op.results[0]):
                yield from (layout for value, layout in operand_layouts(op, self.of(op.results[0])) if self._in(root, value))
        yield self._default(root)

    def _copied(self, op: LoadSharedOp) -> Iterator[LinearLayout]:
        for user in users_of(buffer_of_view(op.view)):
            if isinstance(user, CopyOp | CopyBlockOp):
                yield self.accesses.coalesced(user)

    def _in(self, root: SSAValue, value: SSAValue) -> bool:
        return types.is_tile(value.type) and self.classes.root(value) is root

    def _closed(self, value: SSAValue) -> bool:
        """Whether a neighbour may be asked: not one that is being decided, nor one too far away."""
        closed = self.classes.root(value) not in self._open and len(self._open) < _REACH
        self._skipped = self._skipped or not closed
        return closed

    def _default(self, root: SSAValue) -> LinearLayout:
        shape = types.shape_of(root.type)
        return blocked(shape, tuple(reversed(range(len(shape)))), 1, self.machine.lanes, self.machine.waves)

    def _coalesced(self, root: SSAValue, members: Sequence[Operation]) -> LinearLayout | None:
        best: dict[tuple[int, ...], tuple[int, int]] = {}
        for op in members:
            if not isinstance(op, ACCESSES):
                continue
            value = accessed_value(op)
            if value is None or not self._in(root, value):
                continue
            order, width = self.accesses.preference(op)
            weight, widest = best.get(order, (0, 1))
            share = _BLOCK_WEIGHT if isinstance(op, ops.LoadBlockOp | ops.StoreBlockOp) else 1
            best[order] = (weight + self.accesses.bytes(accessed_type(op)) * share, max(widest, width))
        if not best:
            return None
        order, (_, width) = max(best.items(), key=lambda item: item[1][0])
        return self.accesses.blocked(types.shape_of(root.type), order, width)
