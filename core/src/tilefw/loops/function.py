"""A tile function as loops, op by op: the kit's entry, and what each op without regions becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from typing import Any

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Operation

from tilefw.api.errors import CapacityError, UnsupportedError
from tilefw.loops import control
from tilefw.loops.access import access_of, element_name
from tilefw.loops.buffers import bytes_of
from tilefw.loops.combine import reduce, scan
from tilefw.loops.copies import copy_in, copy_out
from tilefw.loops.early import early_loads
from tilefw.loops.effects import Effects
from tilefw.loops.elements import code_of
from tilefw.loops.index import IndexMath
from tilefw.loops.index_map import Indices
from tilefw.loops.limits import limit_of_dim, limits_of_access, reads_end
from tilefw.loops.lowering import TileLowering
from tilefw.loops.machine import LoopAtomic, LoopMachine, V
from tilefw.loops.matrix import product
from tilefw.loops.plan import is_block_copy, plan_of
from tilefw.passes.axis_info import AxisInfoAnalysis
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.inline_asm_op import InlineAsmOp
from tilefw.tile.dialect.observe_op import ObserveOp
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.dialect.trap_op import TrapOp
from tilefw.tile.text.source_location import place_of


class CopyUse(IntEnum):
    """What a machine that copies is asked to copy: nothing, blocks of loads and stores, these and loads of loops a turn early."""

    NONE = 0
    AT_ONCE = 1
    EARLY = 2


def lower_function(
    function: FuncOp, machine: LoopMachine[V], effects: Effects, facts: AxisInfoAnalysis, capacity: int | None = None,
    copies: CopyUse = CopyUse.EARLY,
) -> int:
    """Write a function on a machine; gives the bytes of its own memory that one program needs.

    Raises UnsupportedError TFW0610 for an op or a row that is not served, and CapacityError TFW0659 where tiles need more than
    `capacity` bytes at once, each with the place.
    """
    copies = copies if machine.copy_dims else CopyUse.NONE
    plan = plan_of(function, effects, copies > CopyUse.NONE)
    if copies is CopyUse.EARLY:
        plan.early = early_loads(plan, effects)
    lowering = TileLowering(machine, plan, facts, _handler, capacity, copies > CopyUse.NONE)
    try:
        lowering.run(function)
    except CapacityError as error:
        raise replace(error, place=place_of(lowering.op)) from None
    return lowering.scratch.high


def _pure(lowering: TileLowering[V], op: Operation) -> None:
    for result in op.results:
        if types.is_tile(result.type):
            lowering.fill(result)
        else:
            lowering.elements.scalars[result] = lowering.elements.made(result, (), lowering.elements.math(1))


def _constant(lowering: TileLowering[V], op: ops.ConstantOp) -> None:
    if types.is_tile(op.result.type):
        lowering.fill(op.result)
    else:
        lowering.elements.scalars[op.result] = lowering.machine.const(code_of(op), element_name(op.result.type))


def _addptr(lowering: TileLowering[V], op: ops.AddPtrOp) -> None:
    if types.is_tile(op.result.type):
        lowering.fill(op.result)
        return
    pointer, offset = (lowering.elements.scalars[operand] for operand in op.operands)
    lowering.elements.scalars[op.result] = lowering.elements.moved(pointer, offset, op.pointer)


def _load(lowering: TileLowering[V], op: ops.LoadOp | ops.LoadBlockOp) -> None:
    (result,) = op.results
    if op in lowering.plan.copied:
        buffer = lowering.copied_early.get(op)
        if buffer is None:
            buffer = lowering.allocate(result)
            copy_in(lowering, access_of(op), buffer)
        lowering.elements.buffers[result] = buffer
        return
    if types.is_tile(result.type):
        lowering.fill(result)
        return
    lowering.elements.scalars[result] = lowering.elements.load(access_of(op), (), lowering.elements.math(1))


def _store(lowering: TileLowering[V], op: ops.StoreOp | ops.StoreBlockOp) -> None:
    if lowering.copies and isinstance(op, ops.StoreBlockOp) and is_block_copy(op) and copy_out(lowering, op):
        return
    access = access_of(op)
    elements, machine = lowering.elements, lowering.machine

    def write(index: Indices, math: IndexMath[V]) -> None:
        value = elements.at(op.value, index, math)
        memory, mask, lanes = elements.reach(access, index, math)
        lanes = max(lanes, 1 if mask is None else mask.lanes)
        if value.lanes < math.lanes and lanes > 1:
            value = machine.repeated(value, math.lanes)
        machine.store(memory, value, mask)

    bits = max(32, 8 * bytes_of(access.element))
    dim, _ = lowering.vector_dim(access.shape, bits)
    ends = limit_of_dim(access.dims[dim]) if access.dims else None
    if ends is not None and not reads_end(op.value, dim, ends, elements.buffers):
        ends = None
    if machine.cheap_masked_stores:  # one loop: two take longer to compile than masks to make
        lowering.each(access.shape, bits, write, ends=ends, whole=(op.value,))
        return
    limits = limits_of_access(access, dim, elements.buffers)
    lowering.each(access.shape, bits, write, values=(op.value,), ends=ends, limits=limits)


def _atomic(lowering: TileLowering[V], op: AtomicOp) -> None:
    """Each element by itself, in order; a masked-off one is none."""
    access = access_of(op)
    elements, machine, legal = lowering.elements, lowering.machine, lowering.legal
    result = op.results[0]
    kept = lowering.allocate(result) if types.is_tile(result.type) and op.result_is_used else None
    kind = "cas" if isinstance(op, ops.AtomicCasOp) else op.kind  # type: ignore[attr-defined]
    old = machine.variable(access.element) if not access.shape else None
    if old is not None:
        machine.assign(old, machine.const(0, access.element))

    def write(index: Indices, math: IndexMath[V]) -> None:
        memory, mask, _ = elements.reach(access, index, math)
        operands = tuple(elements.at(value, index, math) for value in op.values)

        def act() -> None:
            distance = legal("muli", memory.offset, legal.integer(bytes_of(access.element), "i64"))
            address = legal("addi", memory.address, distance)
            found = machine.atomic(LoopAtomic(kind, access.element, address, operands, op.order, op.scope))
            if kept is not None:
                elements.write(kept, index, found, math)
            elif old is not None:
                machine.assign(old, found)

        if mask is None:
            act()
        else:
            if kept is not None:  # what is not accessed may be read all the same
                elements.write(kept, index, machine.const(0, access.element), math)
            with machine.branch(mask), lowering.region():
                act()

    lowering.scalar_each(access.shape, write)
    if kept is not None:
        elements.buffers[result] = kept
    if old is not None:
        elements.scalars[result] = machine.read(old)


def _observe(lowering: TileLowering[V], op: ObserveOp) -> None:
    lowering.elements.scalars[op.result] = lowering.machine.observe(op.what)


def _program_id(lowering: TileLowering[V], op: ops.ProgramIdOp) -> None:
    lowering.elements.scalars[op.result] = lowering.machine.program_id(op.axis)


def _num_programs(lowering: TileLowering[V], op: ops.NumProgramsOp) -> None:
    lowering.elements.scalars[op.result] = lowering.machine.programs(op.axis)


def _assembly(lowering: TileLowering[V], op: InlineAsmOp) -> None:
    first = op.text.strip().splitlines()[0] if op.text.strip() else op.text
    raise UnsupportedError(
        f"the target takes no inline assembly; this begins with '{first}'", "TFW0619", place_of(op),
        note="text of one machine's assembly language means nothing to another",
        help="write the operation in the language; where only one vendor has it, choose by `tl.target_info`",
    )


_OPS: dict[type[Operation], Callable[[TileLowering[Any], Any], None]] = {
    ops.ConstantOp: _constant,
    ops.IotaOp: _pure,
    ops.AddPtrOp: _addptr,
    ops.LoadOp: _load,
    ops.LoadBlockOp: _load,
    ops.StoreOp: _store,
    ops.StoreBlockOp: _store,
    ops.ProgramIdOp: _program_id,
    ops.NumProgramsOp: _num_programs,
    ObserveOp: _observe,
    ops.ReduceOp: reduce,
    ops.ScanOp: scan,
    ops.DotOp: product,
    InlineAsmOp: _assembly,
    ops.BarrierOp: lambda lowering, op: lowering.machine.fence(),
    TrapOp: lambda lowering, op: lowering.machine.trap(op.message, place_of(op)),
    ForOp: control.for_loop,
    WhileOp: control.while_loop,
    IfOp: control.branch,
    **dict.fromkeys((YieldOp, ConditionOp, ReturnOp), lambda lowering, op: None),  # what holds the region reads their operands
}


def _handler(op: type[Operation]) -> Callable[[TileLowering[Any], Any], None] | None:
    if op in _OPS:
        return _OPS[op]
    return _pure if issubclass(op, ElementwiseOp | StructuralOp) else _atomic if issubclass(op, AtomicOp) else None
