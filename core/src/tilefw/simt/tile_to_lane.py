"""Tile IR to lane IR: one walk that rebuilds each function with every tile as vectors in its assigned layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec

from tilefw.api.errors import UnsupportedError
from tilefw.simt import lane
from tilefw.simt.access import Addressing
from tilefw.simt.assign import Assignment, pull
from tilefw.simt.builder import LaneBuilder
from tilefw.simt.description import ChipDescription, Machine
from tilefw.simt.facts import Facts
from tilefw.simt.layout import LinearLayout
from tilefw.simt.places import place_of
from tilefw.tile import ops, types
from tilefw.tile.base import integer_attr
from tilefw.tile.elementwise import ElementwiseOp


@dataclass(frozen=True)
class TileToLane(ModulePass):
    """The lowering for `machine`; as text, `tile-to-lane{lanes=32 warps=4 …}` stands for a plain chip of those facts."""

    machine: Machine
    name = "tile-to-lane"

    @classmethod
    def from_pass_spec(cls, spec: ArgSpec) -> TileToLane:
        """The pass of a textual pipeline; raises ValueError for options that a plain chip does not have."""
        given = dict(spec.normalize_parameter_names().parameters)
        facts = {name: _number(given.pop(name, (default,)), name) for name, default in _PLAIN.items()}
        if given:
            raise ValueError(f"tile-to-lane has no option {', '.join(sorted(given))}; it has {', '.join(_PLAIN)}")
        warps = facts.pop("warps")
        shuffles = bool(facts.pop("shuffles"))
        return cls(Machine(ChipDescription("plain", shuffles=shuffles, **facts), warps))  # type: ignore[arg-type]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp)]:
            lowered = _Function(function, self.machine).lower()
            op.body.block.insert_op_before(lowered, function)
            function.detach()
            function.erase()


# The options of the textual form, with their defaults: `ChipDescription`'s, and the warps of the launch.
_PLAIN = {"lanes": 32, "warps": 4, "access_bytes": 16, "pointer_bits": 64, "shared_bytes": 49152, "shuffles": 1}


def _number(values: Sequence[object], name: str) -> int:
    if len(values) != 1 or not isinstance(values[0], int):
        raise ValueError(f"the option {name} of tile-to-lane is one integer")
    return values[0]


class _Function:
    """The lowering of one function. `scalars` maps tile-level scalars, `tiles` (value, layout) pairs, to lane values."""

    def __init__(self, function: FuncOp, machine: Machine) -> None:
        pointer = types.i64 if machine.chip.pointer_bits == 64 else types.i32
        self.function = function
        self.machine = machine
        self.pointer = pointer
        self.facts = Facts(function)
        self.assignment = Assignment(function, machine, self.facts)
        self.scalars: dict[SSAValue, SSAValue] = {}
        self.tiles: dict[tuple[SSAValue, LinearLayout], SSAValue] = {}
        self.builder = LaneBuilder(Block(), function.location)
        self.address = Addressing(self.builder, self.scalars, self.facts, pointer, machine.access_bytes)

    def lower(self) -> FuncOp:
        old = self.function.body.block
        block = Block(arg_types=[a.type for a in old.args])
        for a, b in zip(old.args, block.args, strict=True):
            b.name_hint = a.name_hint
        self.builder.block = block
        for a, b in zip(old.args, block.args, strict=True):
            self.scalars[a] = self.builder.op("ptr_to_int", b, result=self.pointer) if types.is_pointer(a.type) else b
        self.body(old)
        attributes = {
            **self.function.attributes,
            "lane.lanes": integer_attr(self.machine.lanes), "lane.warps": integer_attr(self.machine.warps),
        }
        result = FuncOp.create(
            properties=dict(self.function.properties), attributes=attributes, regions=[Region(block)]
        )
        result.location = self.function.location
        return result

    def body(self, block: Block) -> None:
        for op in block.ops:
            self.builder.location = op.location
            self.op(op)

    def element(self, type: Attribute) -> Attribute:
        """The lane-level element type: pointers are integers."""
        return self.pointer if types.is_pointer(type) else types.element_of(type)

    def layouts(self, value: SSAValue) -> list[LinearLayout | None]:
        """The layouts that a value is wanted in; a scalar's one is None."""
        return list(self.assignment.demands.get(value, [])) if types.is_tile(value.type) else [None]

    def get(self, value: SSAValue, layout: LinearLayout | None) -> SSAValue:
        """The lane value of a tile in a layout, or of a scalar."""
        return self.tiles[value, layout] if layout is not None and types.is_tile(value.type) else self.scalars[value]

    def put(self, value: SSAValue, layout: LinearLayout | None, lowered: SSAValue) -> None:
        if layout is None:
            self.scalars[value] = lowered
        else:
            self.tiles[value, layout] = lowered

    def op(self, op: Operation) -> None:
        if isinstance(op, ElementwiseOp):
            for layout in self.layouts(op.result):
                self.put(op.result, layout, self.elementwise(op, layout))
            return
        handler = _HANDLERS.get(type(op))
        if handler is None:
            raise UnsupportedError(f"{op.name} has no lowering to lanes", code="TFW0612", place=place_of(op))
        handler(self, op)

    def elementwise(self, op: ElementwiseOp, layout: LinearLayout | None) -> SSAValue:
        values = [self.get(v, layout) for v in op.operands]
        if op.row.name in ("ptr_to_int", "int_to_ptr"):
            return self.builder.extend(values[0], self.element(op.result.type))
        result = self.element(op.result.type) if op.row.is_cast else None
        return self.builder.op(op.row.name, *values, result=result, rounding=None if op.rounding == "rtne" else op.rounding)

    def constant(self, op: ops.ConstantOp) -> None:
        for layout in self.layouts(op.result):
            type = op.result.type if layout is None else lane.vector(layout.registers, self.element(op.result.type))
            self.put(op.result, layout, self.builder.constant(op.value, type))

    def splat(self, op: ops.SplatOp) -> None:
        for layout in self.layouts(op.result):
            assert layout is not None
            self.put(op.result, layout, self.builder.splat(self.scalars[op.source], layout.registers))

    def shape(self, op: Operation) -> None:
        """Expand, broadcast, transpose, reshape: the operand's registers, picked."""
        result = op.results[0]
        for layout in self.layouts(result):
            pulled = None if layout is None else pull(op, layout)
            source = op.operands[0]
            if pulled is not None:
                lowered = self.builder.pick(self.tiles[source, pulled[0]], pulled[1])
            elif layout is None:
                lowered = self.scalars[source]
            else:
                lowered = self.builder.splat(self.scalars[source], layout.registers)
            self.put(result, layout, lowered)

    def iota(self, op: ops.IotaOp) -> None:
        for layout in self.layouts(op.result):
            assert layout is not None
            index = self.address.index(layout)
            self.put(op.result, layout, self.builder.op("addi", index, self.builder.constant(op.start, index.type)))

    def grid(self, op: ops.ProgramIdOp | ops.NumProgramsOp) -> None:
        cls = lane.ProgramIdOp if isinstance(op, ops.ProgramIdOp) else lane.NumProgramsOp
        self.scalars[op.result] = self.builder.numbered((cls.name, op.axis), lambda: cls(op.axis))

    def add_pointer(self, op: ops.AddPtrOp) -> None:
        size = types.dtype_of(types.pointee_of(op.pointer.type)).storage_bits // 8
        for layout in self.layouts(op.result):
            offset = self.address.scaled(self.get(op.operands[1], layout), size)
            self.put(op.result, layout, self.builder.op("addi", self.get(op.pointer, layout), offset))

    def pointers(self, op: ops.LoadOp | ops.StoreOp, layout: LinearLayout | None) -> SSAValue:
        if op.offsets is None:
            return self.get(op.pointer, layout)
        size = types.dtype_of(types.pointee_of(op.pointer.type)).storage_bits // 8
        offset = self.address.scaled(self.get(op.offsets, layout), size)
        base = self.scalars[op.pointer]
        return self.builder.op("addi", base if layout is None else self.builder.splat(base, layout.registers), offset)

    def load(self, op: ops.LoadOp) -> None:
        for layout in self._repeatable(op):
            address = self.pointers(op, layout)
            mask = None if op.mask is None else self.get(op.mask, layout)
            other = None if op.other is None else self.get(op.other, layout)
            how: dict[str, Any] = {"width": 1, "slots": range(1), "immediates": [0]}
            if layout is not None:
                address, mask, how = self.address.computed(op, layout, address, mask)
            self.put(op.results[0], layout, self.emit_load(op, layout, address, mask, other, how, op.pointer))

    def load_block(self, op: ops.LoadBlockOp) -> None:
        for layout in self._repeatable(op):
            assert layout is not None
            address, mask, how = self.address.block(op, layout)
            other = None if op.other is None else self.get(op.other, layout)
            self.put(op.results[0], layout, self.emit_load(op, layout, address, mask, other, how, op.base))

    def _repeatable(self, op: ops.LoadOp | ops.LoadBlockOp) -> list[LinearLayout | None]:
        layouts = self.layouts(op.results[0])
        if op.volatile and len(layouts) > 1:
            raise UnsupportedError("a volatile load is used in two layouts", code="TFW0613", place=place_of(op))
        return layouts

    def emit_load(
        self, op: Any, layout: LinearLayout | None, address: SSAValue, mask: SSAValue | None, other: SSAValue | None,
        how: dict[str, Any], base: SSAValue,
    ) -> SSAValue:
        element = self.element(op.results[0].type)
        type = element if layout is None else lane.vector(layout.registers, element)
        parts = {"address": address, "mask": mask, "other": other}
        return self._access(lane.LoadOp, op, parts, how, base, [type]).results[0]

    def store(self, op: ops.StoreOp) -> None:
        scalar = not types.is_tile(op.value.type)
        layout = None if scalar else self.assignment.home(op)
        address, value = self.pointers(op, layout), self.get(op.value, layout)
        mask = None if op.mask is None else self.get(op.mask, layout)
        if layout is None:
            first = LinearLayout((), (), (0,) * (self.machine.lanes.bit_length() - 1), (0,) * (self.machine.warps.bit_length() - 1))
            address, value = self.builder.splat(address, 1), self.builder.splat(value, 1)
            mask = None if mask is None else self.builder.splat(mask, 1)
            layout, how = first, {"width": 1, "slots": range(1), "immediates": [0]}
        else:
            address, mask, how = self.address.computed(op, layout, address, mask)
        mask = self.address.both(mask, self.address.only_copy(layout))
        self._access(lane.StoreOp, op, {"address": address, "value": value, "mask": mask}, how, op.pointer, [])

    def store_block(self, op: ops.StoreBlockOp) -> None:
        layout = self.assignment.home(op)
        address, mask, how = self.address.block(op, layout)
        mask = self.address.both(mask, self.address.only_copy(layout))
        self._access(lane.StoreOp, op, {"address": address, "value": self.get(op.value, layout), "mask": mask}, how, op.base, [])

    def _access(
        self, cls: type, op: Any, parts: dict[str, SSAValue | None], how: dict[str, Any], base: SSAValue, results: list[Attribute]
    ) -> Operation:
        present = {k: v for k, v in parts.items() if v is not None}
        properties = lane.access_properties(",".join(present), how["width"], how["slots"], how["immediates"], _buffer(base))
        for word in ("cache", "eviction", "volatile"):
            if word in op.properties:
                properties[word] = op.properties[word]
        return self.builder.insert(cls.create(operands=list(present.values()), result_types=results, properties=properties))

    def barrier(self, op: ops.BarrierOp) -> None:
        self.builder.insert(lane.BarrierOp.create())

    def flatten(self, values: list[SSAValue]) -> list[tuple[SSAValue, LinearLayout | None]]:
        """Each value in each of its layouts."""
        return [(v, layout) for v in values for layout in self.layouts(v)]

    def region(
        self, block: Block, heads: list[tuple[SSAValue, LinearLayout | None]], first: list[Attribute], loop: bool
    ) -> Region:
        """A region whose block takes `first` and then `heads` as arguments."""
        new = Block(arg_types=[*first, *(self.lane_type(v, l) for v, l in heads)])
        outer = self.builder.enter(new, loop)
        for argument, (value, layout) in zip(new.args[len(first) :], heads, strict=True):
            self.put(value, layout, argument)
        if first:
            self.scalars[block.args[0]] = new.args[0]
        self.body(block)
        self.builder.leave(outer)
        return Region(new)

    def lane_type(self, value: SSAValue, layout: LinearLayout | None) -> Attribute:
        element = self.element(value.type)
        return element if layout is None else lane.vector(layout.registers, element)

    def for_loop(self, op: ForOp) -> None:
        heads = self.flatten(list(op.body.block.args[1:]))
        # A carried value nobody wants has no layout; results, starts and yields follow the arguments.
        inits = [self.get(s, l) for s, a in zip(op.iter_args, op.body.block.args[1:], strict=True) for l in self.layouts(a)]
        bounds = [self.scalars[v] for v in (op.lb, op.ub, op.step)]
        body = self.region(op.body.block, heads, [op.body.block.args[0].type], True)
        self.results(op, list(op.body.block.args[1:]), [*bounds, *inits], [body])

    def if_op(self, op: IfOp) -> None:
        condition = self.scalars[op.cond]
        regions = [self.region(r.block, [], [], False) if r.blocks else Region() for r in (op.true_region, op.false_region)]
        self.results(op, list(op.results), [condition], regions)

    def while_loop(self, op: WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        inits = [self.get(s, l) for s, a in zip(op.arguments, before.args, strict=True) for l in self.layouts(a)]
        heads, tails = self.flatten(list(before.args)), self.flatten(list(after.args))
        regions = [self.region(before, heads, [], True), self.region(after, tails, [], True)]
        self.results(op, list(after.args), inits, regions)

    def results(self, op: Operation, like: list[SSAValue], operands: list[SSAValue], regions: list[Region]) -> None:
        """The rebuilt op, whose results are `like`'s layouts."""
        outs = [(r, l) for r, a in zip(op.results, like, strict=True) for l in self.layouts(a)]
        self.builder.location = op.location
        new = type(op).create(
            operands=operands, result_types=[self.lane_type(v, l) for v, l in outs], properties=dict(op.properties), regions=regions
        )
        self.builder.insert(new)
        for (value, layout), result in zip(outs, new.results, strict=True):
            self.put(value, layout, result)

    def yield_op(self, op: YieldOp) -> None:
        parent = op.parent_op()
        assert parent is not None
        like: list[SSAValue] = list(parent.results)
        if isinstance(parent, ForOp):
            like = list(parent.body.block.args[1:])
        elif isinstance(parent, WhileOp):
            like = list(parent.before_region.block.args)
        values = [self.get(v, l) for v, a in zip(op.operands, like, strict=True) for l in self.layouts(a)]
        self.builder.insert(YieldOp(*values))

    def condition(self, op: ConditionOp) -> None:
        parent = op.parent_op()
        assert isinstance(parent, WhileOp)
        after = parent.after_region.block.args
        values = [self.get(v, l) for v, a in zip(op.args, after, strict=True) for l in self.layouts(a)]
        self.builder.insert(ConditionOp(self.scalars[op.condition], *values))

    def return_op(self, op: ReturnOp) -> None:
        self.builder.insert(ReturnOp())


def _buffer(base: SSAValue) -> int:
    """The index of the kernel argument that an address comes from; -1 when it is not one argument."""
    while True:
        if isinstance(base, BlockArgument):
            return base.index if isinstance(base.block.parent_op(), FuncOp) else -1
        if isinstance(base.owner, ops.AddPtrOp | ops.SplatOp | ops.BroadcastOp | ops.ExpandDimsOp | ops.ReshapeOp | ops.TransOp):
            base = base.owner.operands[0]
            continue
        return -1


_HANDLERS: dict[type, Callable[[_Function, Any], None]] = {
    ops.ConstantOp: _Function.constant, ops.SplatOp: _Function.splat, ops.IotaOp: _Function.iota,
    ops.ExpandDimsOp: _Function.shape, ops.BroadcastOp: _Function.shape, ops.TransOp: _Function.shape,
    ops.ReshapeOp: _Function.shape,
    ops.ProgramIdOp: _Function.grid, ops.NumProgramsOp: _Function.grid, ops.AddPtrOp: _Function.add_pointer,
    ops.LoadOp: _Function.load, ops.StoreOp: _Function.store, ops.LoadBlockOp: _Function.load_block,
    ops.StoreBlockOp: _Function.store_block, ops.BarrierOp: _Function.barrier,
    ForOp: _Function.for_loop, IfOp: _Function.if_op, WhileOp: _Function.while_loop,
    YieldOp: _Function.yield_op, ConditionOp: _Function.condition, ReturnOp: _Function.return_op,
}

