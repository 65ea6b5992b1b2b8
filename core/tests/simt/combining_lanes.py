"""What tests of reductions and scans in lane IR share: layouts of every kind, and one op lowered, run, and read at every place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from xdsl.dialects.builtin import UnknownLoc
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from tilefw.simt import lane
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.layout import LinearLayout
from tilefw.simt.lower.access import Addressing
from tilefw.testing.lane_interpreter import run
from tilefw.tile import types
from tilefw.tile.dialect.combine_op import CombineReturnOp
from tilefw.tile.dialect.elementwise_op import build
from tilefw.tile.dialect.ops import ConstantOp as TileConstantOp

SHAPES = [(8,), (4, 8), (2, 4, 4), (1, 4), (16, 2)]
# Rows of the elementwise table with an element type, NumPy's, and NumPy's function.
CASES = [("addi", types.i32, np.int32), ("maxs", types.i32, np.int32), ("xori", types.i1, np.bool_), ("addi", types.i64, np.int64),
         ("maxf", types.f16, np.float16), ("addi", types.i8, np.int8)]
MEANINGS: dict[str, Any] = {"addi": np.add, "maxs": np.maximum, "xori": np.bitwise_xor, "maxf": np.maximum}


@st.composite
def layouts(draw: Any, lanes: int = 3, waves: int = 2) -> LinearLayout:
    """A layout of a small tile that covers it, with copies and bases that mix dims."""
    shape = draw(st.sampled_from(SHAPES))
    size = int(np.prod(shape)).bit_length() - 1
    vectors = draw(st.permutations(range(size)))
    mixed: list[int] = []
    for i, bit in enumerate(vectors):  # unit triangular in some order: invertible
        mixed.append(1 << bit | sum(1 << b for b in vectors[:i] if draw(st.booleans())))
    places = [draw(st.integers(0, 2)) for _ in mixed]
    register = tuple(b for b, p in zip(mixed, places, strict=True) if p == 0)
    thread = [[b for b, p in zip(mixed, places, strict=True) if p == k][:most] for k, most in ((1, lanes), (2, waves))]
    left = [b for k, most in ((1, lanes), (2, waves)) for b in [b for b, p in zip(mixed, places, strict=True) if p == k][most:]]
    copies = [draw(st.sampled_from([0, *mixed])) for _ in range(lanes + waves)]
    lane_bases = tuple(thread[0] + copies[: lanes - len(thread[0])])
    wave_bases = tuple(thread[1] + copies[lanes : lanes + waves - len(thread[1])])
    return LinearLayout(shape, register + tuple(left), lane_bases, wave_bases)


def by_row(row: str, element: Any, end: type[CombineReturnOp]) -> Region:
    """The combine function that applies a row of the elementwise table."""
    block = Block(arg_types=[element, element])
    op = build(row, *block.args)
    block.add_ops([op, end([op.results[0]])])
    return Region(block)


def build_tile(shape: tuple[int, ...], element: Any) -> Any:
    """A tile value that nothing computes: the op only says its type."""
    return TileConstantOp(0, types.tile(shape, element)).result


def _load(builder: LaneBuilder, address: Addressing, source: Any, layout: LinearLayout, element: Any, size: int) -> Any:
    n = layout.registers
    at = builder.op("addi", builder.splat(source, n), address.scaled(address.index(layout), size))
    load = lane.LoadOp.create(
        operands=[at], result_types=[lane.vector(n, element)], properties=lane.access_properties("address", 1, range(n), [0] * n, 0)
    )
    return builder.insert(load).results[0]


def at_every_place(
    op: Any, lower: Callable[..., Any], layout: LinearLayout, arrays: Sequence[np.ndarray], shuffles: bool,
    exchanges: tuple[int, ...] = (), scan_shuffles: tuple[str, ...] = (),
) -> list[np.ndarray]:
    """What every place holds after `op`, as a function of (register, thread); `arrays` are the tiles' elements, flat."""
    chip = ChipDescription(
        "test", 1 << len(layout.lane), 64, 16, shared_bytes=4096, shuffles=shuffles, exchanges=exchanges,
        scan_shuffles=scan_shuffles,
    )
    machine = LaneMachine(chip, 1 << len(layout.wave))
    elements = [types.element_of(operand.type) for operand in op.operands]
    block = Block(arg_types=[types.pointer(element) for element in elements * 2])
    builder = LaneBuilder(block, UnknownLoc())
    bases = [builder.op("ptr_to_int", a, result=types.i64) for a in block.args]
    address = Addressing(builder, {}, None, types.i64, 16)  # type: ignore[arg-type]
    context: Any = SimpleNamespace(builder=builder, address=address, machine=machine)
    sizes = [array.itemsize for array in arrays]
    values = [_load(builder, address, *each) for each in zip(bases, [layout] * len(sizes), elements, sizes, strict=False)]
    results = lower(context, op, values, layout)
    outputs = []
    for target, result, size, array in zip(bases[len(sizes) :], results, sizes, arrays, strict=True):
        outputs.append(_stored(builder, address, target, result, size, machine.threads, array.dtype))
    builder.insert(ReturnOp())
    function = FuncOp("test", ([a.type for a in block.args], []), Region(block))
    run(_with_barriers(function), [*(array.copy() for array in arrays), *outputs], (1,), machine)
    return [out.reshape(machine.threads, -1) for out in outputs]


def _stored(builder: LaneBuilder, address: Addressing, target: Any, result: Any, size: int, threads: int, dtype: Any) -> np.ndarray:
    """The array that each thread's registers go to, one thread after the other."""
    if not types.shape_of(result.type):
        result = builder.splat(result, 1)
    n = types.shape_of(result.type)[0]
    at = builder.op("addi", builder.splat(target, 1), address.scaled(address.thread_id(), n * size))
    properties = lane.access_properties("address,value", 1, [0] * n, [size * i for i in range(n)], 1)
    builder.insert(lane.StoreOp.create(operands=[at, result], properties=properties))
    return np.zeros(threads * n, dtype)


def _with_barriers(function: FuncOp) -> FuncOp:
    """Straight-line code with a barrier on both sides of every trip's stores: more than are needed."""
    block = function.body.block
    for op in list(block.ops):
        if isinstance(op, lane.StoreOp) and op.shared:
            block.insert_op_before(lane.BarrierOp.create(), op)
            block.insert_op_after(lane.BarrierOp.create(), op)
    return function
