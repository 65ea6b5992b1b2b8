"""Every op that gives a number has a rule for its bound: inexact operands never give a result that claims to be exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilefw.api.dtypes import DTYPES
from tilefw.tile import numbers, types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import build
from tilefw.tile.dialect.shared_ops import SHARED_OPS, AllocSharedOp, LoadSharedOp, SlotOp, StoreSharedOp
from tilefw.tile.dialect.shared_type import SharedType
from tilefw.tile.elementwise import ROWS, ElementwiseRow
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.interpret import RefBuffer, RefMemory, run
from tilefw.tile.reference.value import EvaluatedValue

F32, I32 = DTYPES["fp32"], DTYPES["int32"]
COUNT = 200
FLOAT_ROWS = [row for row in ROWS.values() if row.operands[row.typed_by] in ("T:float", "T:any")]
INT_ROWS = [row for row in ROWS.values() if row.operands[row.typed_by] == "T:int"]


# Rows of the table -----------------------------------------------------------------------------------------------------


def result_of(row: ElementwiseRow, operands: list[EvaluatedValue], kind: str) -> EvaluatedValue:
    to = {"to:int": I32, "to:float": DTYPES["fp16"], "to:any": I32 if kind == "float" else F32}.get(row.result)
    source = F32 if kind == "float" else I32
    if row.name == "trunci":
        to = DTYPES["int8"]
    return evaluate(row, operands, source, to or source)


def drawn(row: ElementwiseRow, index: int, rng: np.random.Generator) -> np.ndarray:
    ranges = row.draw.ranges
    low, high = (ranges[min(index, len(ranges) - 1)] if ranges else None) or (-4.0, 4.0)
    return numbers.round_to(rng.uniform(low, high, COUNT), F32)


@pytest.mark.parametrize("row", FLOAT_ROWS, ids=lambda row: row.name)
def test_a_float_row_covers_what_its_operands_may_be(row: ElementwiseRow) -> None:
    """What any operands within the bounds give lies within the result's bound, or the result is free."""
    rng = np.random.default_rng(7)
    x = [rng.random(COUNT) < 0.5 if kind == "bool" else drawn(row, index, rng) for index, kind in enumerate(row.operands)]
    x[-1][::4] = x[0][::4] if row.result == "bool" else x[-1][::4]  # some are equal
    err = [None if values.dtype == np.bool_ else np.abs(values) * 2.0**-10 + 2.0**-12 for values in x]
    for bound in err:
        if bound is not None:
            bound[0] = np.inf  # of one element, nothing is known
    found = result_of(row, [EvaluatedValue(values, bound) for values, bound in zip(x, err, strict=True)], "float")
    free = np.zeros(COUNT, bool) if found.free is None else np.broadcast_to(found.free, COUNT)
    assert free[0] or (found.err is not None and found.err[0] > 0)
    for _ in range(5):
        near = [v if e is None else v + rng.uniform(-1, 1, COUNT) * np.minimum(e, 1.0) for v, e in zip(x, err, strict=True)]
        other = result_of(row, [EvaluatedValue(values) for values in near], "float")
        assert (free | _within(other, found)).all()


def _within(other: EvaluatedValue, found: EvaluatedValue) -> np.ndarray:
    """Whether the one is within the other's bound, its own last rounding granted."""
    if found.x.dtype != np.float64:
        return other.x == found.x
    bound = (0.0 if found.err is None else found.err) + (0.0 if other.err is None else other.err)
    return (np.abs(other.x - found.x) <= bound) | (np.isnan(other.x) & np.isnan(found.x))


@pytest.mark.parametrize("row", INT_ROWS, ids=lambda row: row.name)
def test_an_integer_row_is_free_where_an_operand_that_it_depends_on_is(row: ElementwiseRow) -> None:
    rng = np.random.default_rng(7)
    limits = np.where(np.arange(COUNT) % 2, 30, 1 << 31)  # shift counts, and numbers whose products have a high half
    x = [rng.integers(1, limits).astype(np.int32) for _ in row.operands]
    x[-1][::4] = x[0][::4]  # some are equal
    free = rng.random(COUNT) < 0.5
    found = result_of(row, [EvaluatedValue(x[0], free=free), *map(EvaluatedValue, x[1:])], "int")
    other = result_of(row, [EvaluatedValue(np.where(free, ~x[0], x[0])), *map(EvaluatedValue, x[1:])], "int")
    differs = found.x != other.x
    assert differs.any() and found.free is not None
    assert (found.free | ~differs).all()


def test_no_row_is_left_out() -> None:
    """Pointers, of which no bound is kept, have the one other row."""
    assert set(ROWS) - {row.name for row in (*FLOAT_ROWS, *INT_ROWS)} == {"ptr_to_int"}


# Ops of tiles ----------------------------------------------------------------------------------------------------------

Add = Callable[[Operation], SSAValue]
LINE = types.tile((4,), types.f32)


def summed(add: Add, value: SSAValue) -> SSAValue:
    return add(ops.ReduceOp([value], 0, adding(ops.ReduceReturnOp)))


def adding(end: type[ops.ReduceReturnOp] | type[ops.ScanReturnOp]) -> Region:
    block = Block(arg_types=[types.f32, types.f32])
    total = build("addf", *block.args)
    block.add_ops([total, end([total])])
    return Region(block)


def square(add: Add, value: SSAValue) -> SSAValue:
    return add(ops.ReshapeOp(value, (2, 2)))


def large_square(add: Add, value: SSAValue) -> SSAValue:
    line = add(ops.BroadcastOp(summed_line(add, value), types.tile((16,), types.f32)))
    return add(ops.BroadcastOp(add(ops.ExpandDimsOp(line, 0)), types.tile((16, 16), types.f32)))


def summed_line(add: Add, value: SSAValue) -> SSAValue:
    return add(ops.SplatOp(summed(add, value), types.tile((1,), types.f32)))


def half_square(add: Add, value: SSAValue) -> SSAValue:
    found = large_square(add, value)
    return add(build("castf", found, result=types.with_element(found.type, types.f16)))


def stored(add: Add, value: SSAValue, pointer: SSAValue) -> SSAValue:
    """Indices, once the tile is in memory."""
    index = add(ops.IotaOp(0, 4))
    add(ops.StoreOp(pointer, value, index))
    return index


def shared(add: Add, value: SSAValue) -> SSAValue:
    buffer = add(AllocSharedOp(SharedType(0, (4,), types.f32)))
    add(StoreSharedOp(buffer, value))
    return add(LoadSharedOp(buffer))


def block_loaded(add: Add, value: SSAValue, pointer: SSAValue) -> SSAValue:
    stored(add, value, pointer)
    zero, one = (add(ops.ConstantOp(number, types.i32)) for number in (0, 1))
    return add(ops.LoadBlockOp(pointer, [None], [one], [zero], (4,)))


# What makes a float of an inexact tile of four, and some memory, by each op.
OPS: dict[type[Operation], Callable[[Add, SSAValue, SSAValue], SSAValue]] = {
    ops.SplatOp: lambda add, a, p: add(ops.SplatOp(summed(add, a), LINE)),
    ops.BroadcastOp: lambda add, a, p: add(ops.BroadcastOp(summed_line(add, a), LINE)),
    ops.ReshapeOp: lambda add, a, p: square(add, a),
    ops.ExpandDimsOp: lambda add, a, p: add(ops.ExpandDimsOp(a, 0)),
    ops.TransOp: lambda add, a, p: add(ops.TransOp(square(add, a), (1, 0))),
    ops.JoinOp: lambda add, a, p: add(ops.JoinOp(a, a)),
    ops.SplitOp: lambda add, a, p: add(ops.SplitOp(square(add, a))),
    ops.FlipOp: lambda add, a, p: add(ops.FlipOp(a, 0)),
    ops.GatherOp: lambda add, a, p: add(ops.GatherOp(a, add(ops.IotaOp(0, 4)), 0)),
    ops.ReduceOp: lambda add, a, p: summed(add, a),
    ops.ScanOp: lambda add, a, p: add(ops.ScanOp([a], 0, adding(ops.ScanReturnOp))),
    ops.DotOp: lambda add, a, p: add(ops.DotOp(large_square(add, a), large_square(add, a), large_square(add, a))),
    ops.DotScaledOp: lambda add, a, p: add(ops.DotScaledOp(half_square(add, a), half_square(add, a), large_square(add, a))),
    ops.LoadOp: lambda add, a, p: add(ops.LoadOp(p, stored(add, a, p))),
    ops.LoadBlockOp: block_loaded,
    ops.AtomicRmwOp: lambda add, a, p: add(ops.AtomicRmwOp("add", p, a, stored(add, a, p))),
    ops.AtomicCasOp: lambda add, a, p: add(ops.AtomicCasOp(p, a, a, stored(add, a, p))),
    LoadSharedOp: lambda add, a, p: shared(add, a),
}
# Ops whose results are exact whatever is not: numbers that are given, places in memory.
EXACT = {ops.ConstantOp, ops.IotaOp, ops.ProgramIdOp, ops.NumProgramsOp, ops.AddPtrOp, AllocSharedOp, SlotOp}

OPEN = {ops.ObserveOp}  # what a machine knows: the reference claims nothing of it (core/tests/language/test_observe.py)
OF_NODES = {ops.MulticastOp}  # which needs the memory of several ranks: core/tests/distributed/test_multicast_addresses.py runs it
WITHOUT_MEANING = {ops.InlineAsmOp}  # ops that the reference refuses, as their text is a machine's


def result_in_memory(make: Callable[[Add, SSAValue, SSAValue], SSAValue]) -> RefBuffer:
    """Of a kernel that makes an inexact tile (by `exp`), does one thing with it and stores what comes out."""
    pointer = types.pointer(types.f32)
    block = Block(arg_types=[pointer] * 3)

    def add(op: Operation) -> SSAValue:
        block.add_op(op)
        return op.results[0] if op.results else block.args[0]

    inexact = add(build("exp", add(ops.LoadOp(block.args[0], add(ops.IotaOp(0, 4))))))
    found = make(add, inexact, block.args[1])
    count = int(np.prod(types.shape_of(found.type), dtype=int))
    if types.is_tile(found.type):
        add(ops.StoreOp(block.args[2], add(ops.ReshapeOp(found, (count,))), add(ops.IotaOp(0, count))))
    else:
        add(ops.StoreOp(block.args[2], found))
    add(func.ReturnOp())
    memory = RefMemory()
    arguments = [memory.of_array(np.array(values, np.float32)) for values in ([0.1, 0.2, 0.3, 0.4], [0.0] * 4, [0.0] * count)]
    report = run(ModuleOp([func.FuncOp("kernel", ([pointer] * 3, []), Region(block))]), None, (1,), arguments, memory=memory)
    assert not report.findings
    return arguments[2]


@pytest.mark.parametrize("make", OPS.values(), ids=[op.name for op in OPS])
def test_an_op_of_tiles_keeps_the_bounds_of_its_operands(make: Callable[[Add, SSAValue, SSAValue], SSAValue]) -> None:
    err = result_in_memory(make).err
    assert err is not None and (err > 0).all()


def test_every_op_with_a_result_is_asked() -> None:
    giving = {op for op in (*ops.OPS, *SHARED_OPS) if op.result_count != 0}
    assert giving == {*OPS, *EXACT, *OPEN, *OF_NODES, *WITHOUT_MEANING}
