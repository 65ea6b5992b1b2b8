"""What each op of straight-line tile IR does in the reference interpreter; control flow stands in `interpret.py`."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, Protocol

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from tilefw.api.dtypes import DType
from tilefw.api.errors import UnsupportedError
from tilefw.tile import numbers, types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicCasOp, AtomicRmwOp, FenceOp
from tilefw.tile.dialect.block_ops import LoadBlockOp, StoreBlockOp
from tilefw.tile.dialect.dot_scaled_op import ScaledOperand
from tilefw.tile.dialect.inline_asm_op import InlineAsmOp
from tilefw.tile.dialect.memory_ops import BarrierOp, LoadOp, StoreOp
from tilefw.tile.dialect.multicast_op import MulticastOp
from tilefw.tile.dialect.observe_op import ObserveOp
from tilefw.tile.dialect.print_op import PrintOp
from tilefw.tile.dialect.shape_ops import SHAPE_OPS
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.dialect.trap_op import TrapOp
from tilefw.tile.reference.access import BufferAccess
from tilefw.tile.reference.atomic_access import atomic
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.evaluate_dot import dot, summed_onto
from tilefw.tile.reference.evaluate_dot_scaled import dot_scaled, scaled
from tilefw.tile.reference.interpret_reduce import reduce
from tilefw.tile.reference.interpret_scan import scan
from tilefw.tile.reference.multicast import multicast
from tilefw.tile.reference.ordering import REACH
from tilefw.tile.reference.value import Array, EvaluatedValue, constant, either, settle
from tilefw.tile.text.source_location import place_of

NANOSECONDS_A_READING = 1000


class InterpreterState(Protocol):
    """What an op may ask of the launch."""

    grid: tuple[int, int, int]
    fusion: bool
    access: BufferAccess
    offset_ops: Container[Operation]
    clock_readings: int


class FrameValues(Protocol):
    """The values that a group of programs sees, and which programs they are."""

    programs: Array

    def __getitem__(self, key: SSAValue) -> EvaluatedValue: ...


def _element_dtype(type: Attribute) -> DType | None:
    return None if types.is_pointer(type) else types.dtype_of(type)


def elementwise(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    row = op.row
    operands = [frame[operand] for operand in op.operands]
    source = _element_dtype(op.operands[row.typed_by].type)
    watch = op in launch.offset_ops
    found = evaluate(
        row, operands, source, _element_dtype(op.results[0].type), rounding=op.rounding, fusion=launch.fusion, watch_wrap=watch
    )
    if row.name == "addf":
        _allow_for_accumulation(op, operands, found, frame)
    return [found]


def _allow_for_accumulation(op: Any, operands: list[EvaluatedValue], found: EvaluatedValue, frame: FrameValues) -> None:
    """A dot onto zeros that something is added to may have been computed as a dot onto that; not one of imprecise sums
    (`add_into_dot`)."""
    for value, product, other in zip(op.operands, operands, reversed(operands), strict=True):
        made: Any = value.owner
        if not isinstance(made, ops.DotOp) or made.imprecise:
            continue
        acc = frame[made.acc]
        if acc.err is None and not acc.x.any():
            more = summed_onto(other, _factors(made, frame), product, types.dtype_of(value.type), made.input_precision)
            if more is not None:
                found.err = more if found.err is None else found.err + more
                settle(found, None)


def _factors(op: ops.DotOp, frame: FrameValues) -> tuple[EvaluatedValue, EvaluatedValue]:
    """What a dot multiplies: its operands, or their elements times their scales."""
    if isinstance(op, ops.DotScaledOp):
        return _scaled(op.left, frame), _scaled(op.right, frame)
    return frame[op.a], frame[op.b]


def _scaled(operand: ScaledOperand, frame: FrameValues) -> EvaluatedValue:
    scale = None if operand.scale is None else _whole(frame[operand.scale], types.shape_of(operand.scale.type))
    return scaled(operand, _whole(frame[operand.value], types.shape_of(operand.value.type)), scale)


def _constant(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    type = op.results[0].type
    return [constant(op.value, types.dtype_of(type)).apply(lambda x: np.broadcast_to(x, (1, *types.shape_of(type))))]


def structural(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    """Values, bounds and masks move alike."""
    operands = [_whole(frame[operand], types.shape_of(operand.type)) for operand in op.operands]
    if len(operands) == 1:
        return [operands[0].apply(lambda x, i=index: op.elements(x)[i]) for index in range(len(op.results))]
    return [_moved_together(op, operands, index) for index in range(len(op.results))]


def _whole(value: EvaluatedValue, shape: tuple[int, ...]) -> EvaluatedValue:
    """The value with all its dims at full extent."""
    return value.apply(lambda x: x if x.shape[1:] == shape else np.broadcast_to(x, (x.shape[0], *shape)))


def _gather(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    """Values, bounds and masks move alike, by indices that are known; where an index is not, neither is the element."""
    source, index = (_whole(frame[operand], types.shape_of(operand.type)) for operand in (op.source, op.index))
    found = source.apply(lambda x: op.elements(x, index.x)[0])
    found.free = either(found.free, index.free)
    if found.free is not None:
        found.free = np.broadcast_to(found.free, found.x.shape)
    return [found]


def _moved_together(op: StructuralOp, operands: list[EvaluatedValue], index: int) -> EvaluatedValue:
    """One result of several operands: what one of them lacks, as a bound, is zero there, and its product is its value."""
    programs = max(value.x.shape[0] for value in operands)

    def moved(name: str, missing: float | bool | None) -> Array | None:
        parts = [getattr(value, name) for value in operands]
        if all(part is None for part in parts):
            return None
        filled = [(v.x if missing is None else missing) if p is None else p for v, p in zip(operands, parts, strict=True)]
        arrays = [np.broadcast_to(f, (programs, *v.x.shape[1:])) for v, f in zip(operands, filled, strict=True)]
        return op.elements(*arrays)[index]

    x = moved("x", None)
    assert x is not None
    err, free, wrapped = moved("err", 0.0), moved("free", False), moved("wrapped", False)
    return EvaluatedValue(x, err, free, moved("product", None), wrapped, moved("product_err", 0.0))


def _dot(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    a, b, acc = (frame[operand] for operand in op.operands)
    result = types.dtype_of(op.acc.type)
    return [dot(a, b, acc, result, unsigned=op.unsigned, precision=op.input_precision, imprecise=op.imprecise)]


def _dot_scaled(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    a, b, acc = (_whole(frame[v], types.shape_of(v.type)) for v in (op.a, op.b, op.acc))
    scales = [None if v is None else _whole(frame[v], types.shape_of(v.type)) for v in (op.left.scale, op.right.scale)]
    return [dot_scaled(op, a, b, acc, scales[0], scales[1])]


def _iota(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    return [EvaluatedValue(np.arange(op.start, op.end, dtype=np.int32)[None, :])]


def _program_id(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    x, y, _ = launch.grid
    divisor, size = ((1, x), (x, y), (x * y, launch.grid[2]))[op.axis]
    if size == 1:
        return [EvaluatedValue(np.zeros(1, np.int32))]
    return [EvaluatedValue((frame.programs // divisor % size).astype(np.int32))]


def _num_programs(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    return [EvaluatedValue(np.array([launch.grid[op.axis]], np.int32))]


def _observe(launch: InterpreterState, op: ObserveOp, frame: FrameValues) -> list[EvaluatedValue]:
    """A clock that a microsecond passes on from one reading to the next; a machine's own may say anything."""
    launch.clock_readings += op.is_time
    now = launch.clock_readings * NANOSECONDS_A_READING if op.is_time else 0
    return [EvaluatedValue(np.full(1, now, numbers.int_type(types.dtype_of(op.result.type).bits)), free=np.ones(1, np.bool_))]


def _moved(pointer: EvaluatedValue, offset: EvaluatedValue, size: int) -> EvaluatedValue:
    step = offset.x.astype(np.int64)
    address = pointer.x + step * size
    wrapped = either(pointer.wrapped, offset.wrapped)
    return EvaluatedValue(address, free=either(pointer.free, offset.free), wrapped=wrapped)


def _pointee(type: Attribute) -> DType:
    return types.dtype_of(types.pointee_of(type))


def _size(dtype: DType) -> int:
    return dtype.storage_bits // 8


def _addptr(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    return [_moved(frame[op.pointer], frame[op.offset], _size(_pointee(op.pointer.type)))]


def address_of(op: Any, frame: FrameValues) -> EvaluatedValue:
    """The element addresses of an access through a pointer, or through a base and offsets."""
    pointer = frame[op.pointer]
    if op.offsets is None:
        return pointer
    offsets = frame[op.offsets]
    if types.is_tile(op.offsets.type):
        ones = (1,) * len(types.shape_of(op.offsets.type))
        pointer = pointer.apply(lambda x: x.reshape(-1, *ones))
    return _moved(pointer, offsets, _size(_pointee(op.pointer.type)))


def _load(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    mask = None if op.mask is None else frame[op.mask]
    other = None if op.other is None else frame[op.other]
    return [launch.access.load(op, address_of(op, frame), mask, other, _pointee(op.pointer.type), _agents(launch, op, frame))]


def _store(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    mask = None if op.mask is None else frame[op.mask]
    _make_store(launch, op, address_of(op, frame), mask, _pointee(op.pointer.type), frame)
    return []


def _agents(launch: InterpreterState, op: Any, frame: FrameValues) -> Array:
    """Who makes an access: the programs, or their engines."""
    return launch.access.asynchronous.engines(frame.programs) if op.asynchronous else frame.programs


def _make_store(
    launch: InterpreterState, op: Any, at: EvaluatedValue, mask: EvaluatedValue | None, dtype: DType, frame: FrameValues
) -> None:
    value, agents, access = frame[op.value], _agents(launch, op, frame), launch.access
    if op.asynchronous:
        access.asynchronous.store(frame.programs, lambda: access.store(op, at, value, mask, dtype, agents))
    else:
        access.store(op, at, value, mask, dtype, agents)


def block_address(op: Any, frame: FrameValues) -> tuple[EvaluatedValue, EvaluatedValue | None]:
    """Addresses and mask of a block access."""
    rank = len(op.block)
    at = frame[op.base].apply(lambda x: x.reshape(-1, *(1,) * rank))
    size = _size(_pointee(op.base.type))
    mask: EvaluatedValue | None = None
    for dim, (length, offset, stride, bound, check) in enumerate(
        zip(op.block, op.offsets, op.strides, op.shape, op.checks, strict=True)
    ):
        lift = lambda x, dim=dim: x.reshape(-1, *(1,) * rank)  # noqa: E731
        begin, step = frame[offset].apply(lift), frame[stride].apply(lift)
        index = begin.x.astype(np.int64) + np.arange(length).reshape([1] + [length if d == dim else 1 for d in range(rank)])
        wrapped = either(begin.wrapped, step.wrapped)
        at = EvaluatedValue(at.x + index * step.x.astype(np.int64) * size, free=either(at.free, either(begin.free, step.free)),
                   wrapped=either(at.wrapped, wrapped))
        if bound is not None:
            limit = frame[bound].apply(lift)
            inside = index < limit.x
            if check == "both":
                inside = inside & (index >= 0)
            free = either(begin.free, limit.free)
            if mask is not None:
                inside, free = mask.x & inside, either(mask.free, free)
            mask = EvaluatedValue(inside, free=free)
    shape = np.broadcast_shapes(at.x.shape, (1, *op.block))
    return at.apply(lambda x: np.broadcast_to(x, (shape[0], *op.block))), mask


def _load_block(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    at, mask = block_address(op, frame)
    other = None if op.other is None else frame[op.other]
    return [launch.access.load(op, at, mask, other, _pointee(op.base.type), _agents(launch, op, frame))]


def _store_block(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    at, mask = block_address(op, frame)
    _make_store(launch, op, at, mask, _pointee(op.base.type), frame)
    return []


def _atomic(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    mask = None if op.mask is None else frame[op.mask]
    address, operands = address_of(op, frame), [frame[value] for value in op.values]
    return [atomic(launch.access, op, address, operands, mask, frame.programs)]


def _multicast(launch: InterpreterState, op: MulticastOp, frame: FrameValues) -> list[EvaluatedValue]:
    mask = None if op.mask is None else frame[op.mask]
    address = address_of(op, frame)
    return [multicast(launch.access, op, address, frame[op.value], mask, frame.programs, launch.fusion)]


def _fence(launch: InterpreterState, op: FenceOp, frame: FrameValues) -> list[EvaluatedValue]:
    if op.releases and op.scope == "system":
        launch.access.asynchronous.complete(frame.programs)
    if op.scope != "workgroup":
        for program in frame.programs.tolist():
            launch.access.ordering.fence(int(program), op.acquires, op.releases, REACH[op.scope])
    return []


def _nothing(launch: InterpreterState, op: Any, frame: FrameValues) -> list[EvaluatedValue]:
    return []


def _trap(launch: InterpreterState, op: TrapOp, frame: FrameValues) -> list[EvaluatedValue]:
    programs, access = frame.programs, launch.access
    access.findings.add("trap", op, op.message, count=len(programs), program=access.name(int(programs[0])))
    return []


def _inline_asm(launch: InterpreterState, op: InlineAsmOp, frame: FrameValues) -> list[EvaluatedValue]:
    raise UnsupportedError(
        "the reference reads no machine's assembly language, and cannot tell what the text of tl.inline_asm_elementwise means",
        "TFW0619", place_of(op), help="launch on a target with the capability `inline_asm`; `tilefw targets --json` lists them",
    )


Handler = Callable[[Any, Any, Any], list[EvaluatedValue]]
HANDLERS: dict[type[Operation], Handler] = {
    ops.ConstantOp: _constant,
    **dict.fromkeys(SHAPE_OPS, structural),
    ops.GatherOp: _gather,
    ops.ReduceOp: reduce,
    ops.ScanOp: scan,
    ops.DotOp: _dot,
    ops.DotScaledOp: _dot_scaled,
    ops.IotaOp: _iota,
    ops.ProgramIdOp: _program_id,
    ops.NumProgramsOp: _num_programs,
    ops.AddPtrOp: _addptr,
    LoadOp: _load,
    StoreOp: _store,
    LoadBlockOp: _load_block,
    StoreBlockOp: _store_block,
    AtomicRmwOp: _atomic,
    AtomicCasOp: _atomic,
    MulticastOp: _multicast,
    FenceOp: _fence,
    ObserveOp: _observe,
    BarrierOp: _nothing,
    TrapOp: _trap,
    InlineAsmOp: _inline_asm,
    PrintOp: _nothing,  # a print is no result; where its lines are wanted, it is lowered to stores first
}
