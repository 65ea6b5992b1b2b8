"""Layout assignment: in which layouts each tile value is computed, and where it is converted, as an analysis that changes nothing.

1. Classes (`classes`): values that elementwise ops, accesses, loops and branches connect should share a layout.
2. Encodings (`encodings`): each class has one, from the anchor with the most weight.
3. Demands run backward through the program. Effects make the first: a store wants its operands in the encoding of what it stores,
  or
   coalesced where that, with the conversion, is cheaper (a matrix accumulator's narrow rows fill no sectors). An atomic does so
   too, and gives its old values in that layout. An asynchronous copy takes its coalesced layout, or what `copies` finds; a store to
   shared memory the encoding of its value, or what `staging` finds for a load.
4. When the walk comes to a value, all that is wanted of it is known. In each layout it is computed anew, or converted from its
   encoding, whichever is cheaper (`costs`); a dot, a reduction, a scan, an atomic and a volatile load are never repeated. What the
   op needs for each layout that it is computed in is then wanted of its operands. So a conversion stands where the type is
   narrowest, and cheap slices (indices, masks, bounds, small loads) are repeated instead.
5. Carried values and results of branches are in their encoding only, converted where another layout is wanted; integers and
   pointers that cost next to nothing to carry twice stand in every layout that is wanted of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, IfOp, WhileOp
from xdsl.ir import Block, Operation, SSAValue

from tilefw.simt.assign.accesses import Accesses, AccessOp
from tilefw.simt.assign.classes import CarriedValues, Classes, carried
from tilefw.simt.assign.copies import ConsecutiveCopies
from tilefw.simt.assign.costs import Costs, fixed
from tilefw.simt.assign.encodings import Encodings
from tilefw.simt.assign.staging import staged_layout
from tilefw.simt.description import LaneMachine
from tilefw.simt.facts import LaneFacts
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.atoms import DotLayouts
from tilefw.simt.lower.dot import scales_of
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.combine_op import CombineOp, ScanOp
from tilefw.tile.dialect.copy_ops import CopyBlockOp, CopyOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.gather_op import GatherOp
from tilefw.tile.dialect.inline_asm_op import InlineAsmOp
from tilefw.tile.dialect.shared_ops import StoreSharedOp

Conversion = tuple[LinearLayout, LinearLayout]

_CHEAP_NODES = 16  # ops between a carried value's rounds that it may cost to carry it in one more layout
_CONTROL = frozenset({ForOp, IfOp, WhileOp})  # by class: `isinstance` of xDSL's is slow, and this is asked of every op
_CHEAP = (ops.ConstantOp, ops.SplatOp, ops.IotaOp, ops.ExpandDimsOp, ops.BroadcastOp, ops.TransOp, ops.AddPtrOp)


class Assignment:
    """The analysis of one function.

    `made` gives the layouts that each tile is computed in (none for a dead one), `conversions` those that it is converted to, each
    with its source, `layouts` that of each access and shared store, `dots` those of each dot.
    """

    def __init__(self, function: FuncOp, machine: LaneMachine, facts: LaneFacts) -> None:
        self.made: dict[SSAValue, list[LinearLayout]] = {}
        self.conversions: dict[SSAValue, list[Conversion]] = {}
        self.layouts: dict[Operation, LinearLayout] = {}
        self._wanted: dict[SSAValue, list[LinearLayout]] = {}
        self._cheap: dict[SSAValue, bool] = {}
        self.accesses = Accesses(machine, facts)
        self.encodings = Encodings(function, Classes(function), self.accesses, machine)
        self.costs = Costs(self.encodings, self.accesses, self.wanted)
        self.copies = ConsecutiveCopies(self.accesses, self.dots)
        self._demand(function.body.block)

    @property
    def dots(self) -> dict[DotOp, DotLayouts]:
        return self.encodings.dots

    def wanted(self, value: SSAValue) -> list[LinearLayout]:
        """The layouts that were asked of a tile so far."""
        return self._wanted.get(value, [])

    def _want(self, value: SSAValue, layout: LinearLayout) -> None:
        if types.is_tile(value.type):
            have = self._wanted.setdefault(value, [])
            if layout not in have:
                have.append(layout)

    def _demand(self, block: Block) -> None:
        for op in reversed(list(block.ops)):
            self._demand_op(op)

    def _demand_op(self, op: Operation) -> None:
        if op.__class__ in _CONTROL:
            self._control(op)  # type: ignore[arg-type]
        elif isinstance(op, ops.StoreOp | ops.StoreBlockOp):
            if types.is_tile(op.value.type):
                self._access(op, self._store_layout(op))
        elif isinstance(op, AtomicOp):
            if types.is_tile(op.value.type):
                self._access(op, self._store_layout(op))
                self._settle(list(op.results), [self.layouts[op]], self.wanted(op.results[0]))
        elif isinstance(op, CopyOp | CopyBlockOp):
            self._access(op, self.copies.layout(op))
        elif isinstance(op, StoreSharedOp):
            self.layouts[op] = staged_layout(op, self.accesses, self.dots) or self.encodings.of(op.value)
            self._want(op.value, self.layouts[op])
        elif op.results:
            self._result(op)

    def _access(self, op: AccessOp, layout: LinearLayout) -> None:
        self.layouts[op] = layout
        for operand, its in self.accesses.needs(op, layout):
            self._want(operand, its)

    def _store_layout(self, op: ops.StoreOp | ops.StoreBlockOp | AtomicOp) -> LinearLayout:
        encoding, own = self.encodings.of(op.value), self.accesses.coalesced(op)
        if own == encoding:
            return encoding
        dearer = self.costs.operand(op.value, own) - self.costs.operand(op.value, encoding)
        return own if dearer + self.accesses.cost(op, own) < self.accesses.cost(op, encoding) else encoding

    def _result(self, op: Operation) -> None:
        """Settle where an op's results are computed, and ask for what it needs."""
        tiles = [r for r in op.results if types.is_tile(r.type)]
        wanted = list(dict.fromkeys(layout for r in tiles for layout in self.wanted(r)))
        if isinstance(op, CombineOp):
            self._combination(op)
        elif isinstance(op, DotOp):
            if wanted:
                self._dot(op)
        elif isinstance(op, InlineAsmOp):
            if tiles:
                self._inline_asm(op)
        elif isinstance(op, GatherOp):
            if wanted:
                self._gather(op)
        elif isinstance(op, ops.ConstantOp | ops.SplatOp):
            self._settle(tiles, wanted, wanted)
        elif isinstance(op, ops.ReshapeOp) and not tiles:  # the one element of a tile, as a scalar
            self.layouts[op] = self.encodings.of(op.source)
            self._want(op.source, self.layouts[op])
        elif wanted or (isinstance(op, ops.LoadOp | ops.LoadBlockOp) and op.volatile and tiles):
            made = [self.encodings.natural(op)] if fixed(op) else self._choose(op, tiles[0], wanted)
            self._settle(tiles, made, wanted)
            for layout in made:
                for operand, its in self.costs.needs(op, layout):
                    self._want(operand, its)

    def _combination(self, op: CombineOp) -> None:
        if all(r.first_use is None for r in op.results):
            return
        self.layouts[op] = source = self.encodings.of(op.results[0] if isinstance(op, ScanOp) else op.operands[0])
        for operand in op.operands:
            self._want(operand, source)
        for result in op.results:
            if types.is_tile(result.type):
                self._settle([result], [self.encodings.natural(op)], self.wanted(result))

    def _dot(self, op: DotOp) -> None:
        layouts = self.dots[op]
        self._settle([op.results[0]], [layouts.d], self.wanted(op.results[0]))
        factors = zip((op.a, op.b), (layouts.a, layouts.b), layouts.shared, strict=True)
        held = [(value, layout) for value, layout, shared in factors if shared is None]
        for operand, layout in (*scales_of(op, layouts), *held, (op.acc, layouts.d)):
            if operand is not None:
                self._want(operand, layout)

    def _inline_asm(self, op: InlineAsmOp) -> None:
        """All in one layout, be the results wanted or not: the text may have effects."""
        self.layouts[op] = natural = self.encodings.natural(op)
        for operand in op.operands:
            self._want(operand, natural)
        for result in op.results:
            self._settle([result], [natural], self.wanted(result))

    def _gather(self, op: GatherOp) -> None:
        """Indices and result in one layout, the source in its own."""
        self.layouts[op] = self.encodings.of(op.source)
        self._want(op.source, self.layouts[op])
        natural = self.encodings.natural(op)
        self._want(op.index, natural)
        self._settle([op.results[0]], [natural], self.wanted(op.results[0]))

    def _choose(self, op: Operation, value: SSAValue, wanted: Sequence[LinearLayout]) -> list[LinearLayout]:
        """The layouts that a repeatable op is computed in: the others are cheaper to convert from its natural one."""
        encoding = self.encodings.natural(op)
        others = [layout for layout in wanted if layout != encoding]
        if not others:
            return [encoding]
        repeated = {layout: self.costs.slice(op, layout) for layout in others}
        converted = {layout: self.costs.converted(value, encoding, layout) for layout in others}
        cheaper = [layout for layout in others if repeated[layout] <= converted[layout]]
        if encoding in wanted:
            return [encoding, *cheaper]
        mixed = self.costs.slice(op, encoding) + sum(min(repeated[layout], converted[layout]) for layout in others)
        return others if sum(repeated.values()) <= mixed else [encoding, *cheaper]

    def _settle(self, values: Sequence[SSAValue], made: Sequence[LinearLayout], wanted: Sequence[LinearLayout]) -> None:
        """Note where values are computed; what else is wanted is converted from the first of these layouts."""
        for value in values:
            self.made[value] = list(made)
            self.conversions[value] = [(made[0], layout) for layout in wanted if layout not in made]

    # Control flow.

    def _control(self, op: ForOp | IfOp | WhileOp) -> None:
        """Carried values: operands, arguments and results in the same layouts; go round until no more are wanted."""
        variables = [v for v in carried(op) if types.is_tile(v.bound[0].type)]
        for variable in variables:
            if not self._is_cheap(variable) and any(value.first_use is not None for value in variable.bound):
                self._want(variable.bound[0], self.encodings.of(variable.bound[0]))
        while True:
            before = [self._carry(variable) for variable in variables]
            for region in reversed(op.regions):
                for block in region.blocks:
                    self._demand(block)
            if before == [self._carry(variable) for variable in variables]:
                return

    def _carry(self, variable: CarriedValues) -> list[LinearLayout]:
        """Ask for what a variable is given in the layouts that it stands in; these."""
        if not any(self.wanted(value) for value in variable.bound):
            return []
        if self._is_cheap(variable):
            layouts = list(dict.fromkeys(layout for value in variable.bound for layout in self.wanted(value)))
        else:
            layouts = [self.encodings.of(variable.bound[0])]
        for value in variable.bound:
            self._settle([value], layouts, self.wanted(value))
        for value in variable.given:
            for layout in layouts:
                self._want(value, layout)
        return layouts

    def _is_cheap(self, variable: CarriedValues) -> bool:
        first = variable.bound[0]
        if first not in self._cheap:
            self._cheap[first] = not types.is_float(first.type) and all(map(_is_cheap_slice, variable.given))
        return self._cheap[first]


def _is_cheap_slice(value: SSAValue) -> bool:
    """Whether a value is a few cheap ops away from carried values, constants and indices."""
    seen: set[SSAValue] = set()
    todo = [value]
    while todo:
        value = todo.pop()
        owner = value.owner
        if value in seen or isinstance(owner, Block) or not types.is_tile(value.type):
            continue
        if not isinstance(owner, (ElementwiseOp, *_CHEAP)) or len(seen) >= _CHEAP_NODES:
            return False
        seen.add(value)
        todo += owner.operands
    return True
