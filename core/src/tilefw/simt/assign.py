"""Layout assignment: which layouts each tile value must have, as an analysis that changes nothing.

Union-find ties tile values that elementwise ops, loop arguments, yields and branch results connect; a class takes the
coalesced layout of its weightiest memory access. Stores demand their class's layout, and demands run backwards through
every op. A value that is demanded in several layouts (a bias seen as a row and as a column) is computed once for
each: pointwise code then needs no conversion. Loads may be repeated, since all copies stand at the place of the one.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Block, Operation, SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.simt.description import Machine
from tilefw.simt.facts import Facts
from tilefw.simt.layout import LinearLayout, blocked
from tilefw.simt.places import place_of
from tilefw.tile import ops, types
from tilefw.tile.elementwise import ElementwiseOp

_ACCESSES = (ops.LoadOp, ops.StoreOp, ops.LoadBlockOp, ops.StoreBlockOp)
_STORES = (ops.StoreOp, ops.StoreBlockOp)


class Assignment:
    """The analysis of one function; `demands` is its result: the layouts of each tile value, none for a dead one."""

    def __init__(self, function: FuncOp, machine: Machine, facts: Facts) -> None:
        self.machine = machine
        self.facts = facts
        self.demands: dict[SSAValue, list[LinearLayout]] = {}
        self._parent: dict[SSAValue, SSAValue] = {}
        self._anchors: dict[SSAValue, list[Operation]] = {}
        self._homes: dict[tuple[SSAValue, tuple[int, ...]], LinearLayout] = {}
        body = function.body.block
        self._tie(body)
        for op in function.walk():
            if isinstance(op, _ACCESSES):
                self._anchors.setdefault(self._find(accessed(op)), []).append(op)
        self._demand(body)

    def _find(self, value: SSAValue) -> SSAValue:
        while value in self._parent:
            value = self._parent[value]
        return value

    def _union(self, values: list[SSAValue]) -> None:
        tiles = [self._find(v) for v in values if types.is_tile(v.type) and not isinstance(v.owner, ops.ConstantOp | ops.SplatOp)]
        for other in tiles[1:]:
            if other is not tiles[0]:
                root = self._find(other)
                if root is not self._find(tiles[0]):
                    self._parent[root] = self._find(tiles[0])

    def _tie(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, ElementwiseOp | ops.AddPtrOp | ops.LoadOp | ops.StoreOp):
                self._union([*op.operands, *op.results])
            for group in carried(op):
                self._union(list(group))
            for region in op.regions:
                for inner in region.blocks:
                    self._tie(inner)

    def home(self, op: Operation) -> LinearLayout:
        """The layout of the class of a memory access."""
        value = accessed(op)
        shape = types.shape_of(value.type)
        key = (self._find(value), shape)
        if key not in self._homes:
            self._homes[key] = self._coalesced(shape, self._anchors[key[0]], op)
        return self._homes[key]

    def _coalesced(self, shape: tuple[int, ...], anchors: list[Operation], op: Operation) -> LinearLayout:
        check_shape(shape, op)
        best: dict[tuple[int, ...], tuple[int, int]] = {}
        for anchor in anchors:
            if types.shape_of(accessed(anchor).type) != shape:
                continue
            order, width = self._preference(anchor, shape)
            weight, widest = best.get(order, (0, 1))
            # Scattered accesses gain nothing from an order, so blocks weigh more.
            share = 4 if isinstance(anchor, ops.LoadBlockOp | ops.StoreBlockOp) else 1
            best[order] = (weight + _bytes(anchor) * share, max(widest, width))
        order, (_, width) = max(best.items(), key=lambda item: item[1][0])
        size = 1
        for s in shape:
            size *= s
        return blocked(shape, order, min(width, max(1, size // self.machine.threads)), self.machine.lanes, self.machine.warps)

    def _preference(self, op: Operation, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """The dims from the fastest in memory, and how many elements one access can take."""
        default = tuple(reversed(range(len(shape))))
        if isinstance(op, ops.LoadOp | ops.StoreOp):
            width, fastest = max((self.facts.width(op, d, self.machine.access_bytes), d) for d in default)
            return (fastest, *(d for d in default if d != fastest)), width
        assert isinstance(op, ops.LoadBlockOp | ops.StoreBlockOp)
        fast = [d for d in default if self.facts.constant(op.strides[d]) == 1 and shape[d] > 1]
        if not fast:
            return default, 1
        order = (fast[0], *(d for d in default if d != fast[0]))
        return order, access_width(op, fast[0], self.facts, self.machine.access_bytes)

    def _add(self, value: SSAValue, layouts: list[LinearLayout]) -> bool:
        if not types.is_tile(value.type):
            return False
        have = self.demands.setdefault(value, [])
        new = [l for l in layouts if l not in have]
        have += new
        return bool(new)

    def _demand(self, block: Block) -> None:
        for op in reversed(list(block.ops)):
            self._demand_op(op)

    def _demand_op(self, op: Operation) -> None:
        if isinstance(op, ForOp | IfOp | WhileOp):
            self._demand_regions(op)
        elif isinstance(op, _STORES):
            if types.is_tile(accessed(op).type):
                for operand in op.operands:
                    self._add(operand, [self.home(op)])
        elif isinstance(op, ops.LoadOp | ElementwiseOp | ops.AddPtrOp):
            layouts = self.demands.get(op.results[0], [])
            for operand in op.operands:
                self._add(operand, layouts)
        elif isinstance(op, ops.LoadBlockOp):
            if op.other is not None:
                self._add(op.other, self.demands.get(op.results[0], []))
        elif op.results:
            for layout in self.demands.get(op.results[0], []):
                pulled = pull(op, layout)
                if pulled is not None:
                    self._add(op.operands[0], [pulled[0]])

    def _demand_regions(self, op: Operation) -> None:
        """Carried values have one set of layouts for start, argument, yield and result: go round until it is stable."""
        groups = [g for g in carried(op) if types.is_tile(g[0].type)]
        while True:
            for group in groups:
                union = [l for v in group for l in self.demands.get(v, [])]
                for v in group:
                    self._add(v, union)
            before = [len(self.demands.get(v, [])) for g in groups for v in g]
            for region in reversed(op.regions):
                for block in region.blocks:
                    self._demand(block)
            for group in groups:
                union = [l for v in group for l in self.demands.get(v, [])]
                for v in group:
                    self._add(v, union)
            if before == [len(self.demands.get(v, [])) for g in groups for v in g]:
                return


def accessed(op: Operation) -> SSAValue:
    """The loaded or stored value of a memory op."""
    return op.value if isinstance(op, _STORES) else op.results[0]


def carried(op: Operation) -> Iterator[tuple[SSAValue, ...]]:
    """For structured control flow: the values that are one variable (start, block argument, yielded, result)."""
    if isinstance(op, ForOp):
        yields = _last(op.body.block)
        for i, result in enumerate(op.results):
            yield (op.iter_args[i], op.body.block.args[i + 1], yields.operands[i], result)
    elif isinstance(op, IfOp):
        regions = [r for r in (op.true_region, op.false_region) if r.blocks]
        for i, result in enumerate(op.results):
            yield (result, *(_last(r.block).operands[i] for r in regions))
    elif isinstance(op, WhileOp):
        condition, back = _last(op.before_region.block), _last(op.after_region.block)
        assert isinstance(condition, ConditionOp) and isinstance(back, YieldOp)
        for i, start in enumerate(op.arguments):
            yield (start, op.before_region.block.args[i], back.operands[i])
        for i, result in enumerate(op.results):
            yield (condition.args[i], op.after_region.block.args[i], result)


def _last(block: Block) -> Operation:
    last = block.last_op
    assert last is not None
    return last


def pull(op: Operation, layout: LinearLayout) -> tuple[LinearLayout, tuple[int, ...]] | None:
    """The operand's layout and register map of a shape op whose result has `layout`; None for ops without tile operands."""
    if isinstance(op, ops.ExpandDimsOp):
        return layout.before_expand_dims(op.axis)
    if isinstance(op, ops.BroadcastOp):
        return layout.before_broadcast(types.shape_of(op.source.type))
    if isinstance(op, ops.TransOp):
        return layout.before_trans(op.order)
    if isinstance(op, ops.ReshapeOp) and types.is_tile(op.source.type):
        return layout.before_reshape(types.shape_of(op.source.type))
    return None


def access_width(op: ops.LoadBlockOp | ops.StoreBlockOp, dim: int, facts: Facts, access_bytes: int) -> int:
    """How many elements along `dim` (stride 1) one aligned access can take for surely in or surely out of bounds."""
    size = types.dtype_of(op.block_type).storage_bits // 8
    align = facts.divisor(op.base)
    for d, (offset, stride) in enumerate(zip(op.offsets, op.strides, strict=True)):
        unit = facts.divisor(stride) * size
        align = min(align, facts.divisor(offset) * unit)
        if d != dim and op.block[d] > 1:
            align = min(align, unit)
    width = min(access_bytes, align) // size
    bound = op.shape[dim]
    if bound is not None:
        width = min(width, facts.divisor(bound), facts.divisor(op.offsets[dim]))
    return max(1, min(width, op.block[dim]))


def check_shape(shape: tuple[int, ...], op: Operation) -> None:
    """Raises UnsupportedError (TFW0611) for a tile that lanes cannot share evenly."""
    if any(s & (s - 1) for s in shape):
        raise UnsupportedError(
            f"a tile of shape {'x'.join(map(str, shape))} cannot be spread over lanes", code="TFW0611", place=place_of(op),
            help="use powers of two for every dim",
        )


def _bytes(op: Operation) -> int:
    size = types.dtype_of(accessed(op).type).storage_bits // 8
    for s in types.shape_of(accessed(op).type):
        size *= s
    return size
