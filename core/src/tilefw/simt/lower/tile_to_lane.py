"""Tile IR to lane IR: one walk that rebuilds each function with every tile as vectors in its assigned layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec

from tilefw.api.errors import UnsupportedError
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.lower import atomics, bulk_store, compute, gather, inline_asm, memory, observe, remarks, shape, shared, values
from tilefw.simt.lower.context import LoweringContext
from tilefw.simt.lower.leave import spare_threads, works_together
from tilefw.simt.lower.loops import LoopLowering
from tilefw.tile import types
from tilefw.tile.dialect.base import integer_attr, string_attr
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.kernel_info import reaches_peers
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.discarded import discard
from tilefw.tile.text.source_location import place_of

WORKGROUPS = "lane.workgroups"  # of a function that more than one make together, with all their waves

_HANDLERS: Mapping[type[Operation], Callable[[LoweringContext, Any], None]] = {
    **values.HANDLERS, **shape.HANDLERS, **memory.HANDLERS, **atomics.HANDLERS, **compute.HANDLERS, **shared.HANDLERS,
    **gather.HANDLERS, **inline_asm.HANDLERS, **observe.HANDLERS, **bulk_store.HANDLERS,
}


@dataclass(frozen=True)
class TileToLane(ModulePass):
    """Lowers tiles to what each lane holds and does.

    As text, `tile-to-lane{lanes=32 waves=4 …}` stands for a plain chip of those facts.
    """

    machine: LaneMachine
    name = "tile-to-lane"

    @classmethod
    def from_pass_spec(cls, spec: ArgSpec) -> TileToLane:
        """The pass of a textual pipeline; raises ValueError for options that a plain chip does not have."""
        given = dict(spec.normalize_parameter_names().parameters)
        facts = {name: _single_int(given.pop(name, (default,)), name) for name, default in _PLAIN.items()}
        if given:
            raise ValueError(f"tile-to-lane has no option {', '.join(sorted(given))}; it has {', '.join(_PLAIN)}")
        waves = facts.pop("waves")
        shuffles, copies = bool(facts.pop("shuffles")), (4, 8, 16) if facts.pop("copies") else ()
        return cls(LaneMachine(ChipDescription("plain", shuffles=shuffles, copy_bytes=copies, **facts), waves))  # type: ignore[arg-type]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp)]:
            lowered = lowered_function(function, self.machine)
            op.body.block.insert_op_before(lowered, function)
            discard(function)


# The options of the textual form, with their defaults: `ChipDescription`'s, and the waves of the launch.
_PLAIN = {"lanes": 32, "waves": 4, "access_bytes": 16, "pointer_bits": 64, "shared_bytes": 49152, "shuffles": 1, "copies": 0}


def _single_int(values: Sequence[object], name: str) -> int:
    if len(values) != 1 or not isinstance(values[0], int):
        raise ValueError(f"the option {name} of tile-to-lane is one integer")
    return values[0]


def lowered_function(function: FuncOp, machine: LaneMachine) -> FuncOp:
    """The function rebuilt in lane IR; the old one is left as it is."""
    if reaches_peers(function):
        machine = replace(machine, small=False)
    context = LoweringContext(function, machine)
    spare = spare_threads(function, context.assignment, machine)
    if spare:
        lowered = _lowered(context, spare)
        if not works_together(lowered):
            return lowered
        context = context.anew()
    return _lowered(context, 0)


def _lowered(context: LoweringContext, spare: int) -> FuncOp:
    """The function in lane IR, in which the threads whose index has bits of `spare` end at once."""
    function, machine = context.function, context.machine
    old = function.body.block
    block = Block(arg_types=[a.type for a in old.args])
    context.builder.block = context.entry = block
    for a, b in zip(old.args, block.args, strict=True):
        b.name_hint = a.name_hint
        context.scalars[a] = context.builder.op("ptr_to_int", b, result=context.pointer) if types.is_pointer(a.type) else b
    context.leave(spare)
    _Lowering(context).body(old)
    context.steps.clear()  # each names the context, which nothing else keeps
    attributes = {
        **function.attributes, "lane.lanes": integer_attr(machine.lanes), "lane.waves": integer_attr(machine.waves),
        **({WORKGROUPS: integer_attr(machine.workgroups)} if machine.workgroups > 1 else {}),
        **remarks.of_dots(function, context.assignment.dots.items(), machine.chip),
    }
    result = FuncOp.create(properties=_properties(function, context.descriptors), attributes=attributes, regions=[Region(block)])
    result.location = function.location
    return result


def _properties(function: FuncOp, descriptors: Mapping[str, SSAValue]) -> dict[str, Attribute]:
    """Those of the function with hidden arguments behind its own."""
    if not descriptors:
        return dict(function.properties)
    inputs, outputs = function.function_type.inputs.data, function.function_type.outputs.data
    known = function.arg_attrs.data if function.arg_attrs is not None else [DictionaryAttr({}) for _ in inputs]
    hidden = [
        DictionaryAttr({"tile.name": string_attr(value.name_hint or ""), "tile.hidden": string_attr(words)})
        for words, value in descriptors.items()
    ]
    types_of_all = FunctionType.from_lists([*inputs, *(value.type for value in descriptors.values())], list(outputs))
    return {**function.properties, "function_type": types_of_all, "arg_attrs": ArrayAttr([*known, *hidden])}


class _Lowering:
    """The walk."""

    def __init__(self, context: LoweringContext) -> None:
        self.context = context
        self.loops = LoopLowering(context, self.body, self._op)

    def body(self, block: Block) -> None:
        for op in block.ops:
            self.context.builder.location = op.location
            self._op(op)
            for result in op.results:
                self.context.convert(result)

    def _op(self, op: Operation) -> None:
        if isinstance(op, ElementwiseOp):
            values.elementwise(self.context, op)
        elif (handler := _HANDLERS.get(type(op))) is not None:
            handler(self.context, op)
        elif isinstance(op, StructuralOp):
            shape.structural(self.context, op)
        elif not self.loops.lower(op):
            raise UnsupportedError(f"{op.name} has no lowering to lanes", code="TFW0612", place=place_of(op))
