"""A bound kernel to the graph of its launch: programs are classed by their control flow, each class is lowered once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilefw.api import DTYPES, BufferPlacement, CapacityError, DType, LaunchArguments
from tilefw.api.ir import (
    AtomicCasOp,
    AtomicRmwOp,
    BarrierOp,
    Block,
    ConditionOp,
    ForOp,
    FuncOp,
    IfOp,
    LoadBlockOp,
    LoadOp,
    ModuleOp,
    Operation,
    ReturnOp,
    SSAValue,
    StoreBlockOp,
    StoreOp,
    StringAttr,
    WhileOp,
    YieldOp,
    argument_attributes,
    place_of,
    types,
)
from tilefw_spatial.graph import Graph
from tilefw_spatial.index_tables import LARGEST, TooLarge
from tilefw_spatial.limits import MOST_CLASSES, MOST_PROGRAMS, MOST_STEPS, SOME_PROGRAMS, beyond
from tilefw_spatial.lower import control, memory
from tilefw_spatial.lower.constant_tile import ConstantTile, splat
from tilefw_spatial.lower.finish import finished
from tilefw_spatial.lower.programs import Labels, Programs, factored, flat, labels_of
from tilefw_spatial.lower.pure import execute
from tilefw_spatial.lower.state import State, TrackedAccess
from tilefw_spatial.lower.tiles import Entry, Pointer, unsupported

_INT64 = DTYPES["int64"]
_NONE: frozenset[Operation] = frozenset()


@np.errstate(over="ignore")  # integers of constant tiles wrap, single numbers too, of which NumPy would warn
def lower(module: ModuleOp, launch: LaunchArguments, fusion: bool = True) -> Graph:
    """The graph of a launch of the module's only kernel, whose scalars are bound; `fusion` lets sums take products unrounded.

    Of a grid with more than MOST_PROGRAMS programs it is that of the first SOME_PROGRAMS. Raises UnsupportedError (TFW0660) at the
    line that asks for what the chip or this compiler does not serve, CapacityError (TFW0691) for what is beyond the compiler's
    limits, and CompileError (TFW0661) for accesses out of bounds."""
    function = _function(module)
    count = prod(launch.grid)
    if count > MOST_PROGRAMS:
        count = SOME_PROGRAMS
    pending: list[NDArray[np.int64]] = [np.arange(count, dtype=np.int64)] if count else []
    graph = Graph()
    earlier: list[TrackedAccess] = []
    classes = 0
    while pending:
        numbers = pending.pop()
        classes += 1
        try:
            state = _class(function, launch, flat(launch.grid, numbers), earlier, fusion)
            earlier += state.stored
            graph.stores += finished(state, graph.checks)
        except control.Divided as divided:
            pending += reversed([divided.numbers[divided.labels == label] for label in np.unique(divided.labels)])
            if classes + len(pending) > MOST_CLASSES:
                raise _too_many_classes(function, classes + len(pending)) from None
    return graph


def _class(function: FuncOp, launch: LaunchArguments, programs: Programs, earlier: Sequence[TrackedAccess], fusion: bool) -> State:
    """What the programs of one class do, after those of others."""
    scouting = _state(function, launch, programs, (), fusion)
    programs = factored(programs, _quantities(scouting, function.body.block))
    state = _state(function, launch, programs, earlier, fusion)
    try:
        _run(state, function.body.block, _NONE)
    except TooLarge as error:
        raise beyond("all programs together have different numbers here", error.needed, LARGEST, "numbers", state.place) from None
    return state


def check_grid(module: ModuleOp, launch: LaunchArguments) -> None:
    """Raises CapacityError (TFW0691) for a grid of which `lower` looks at the first programs alone."""
    if (count := prod(launch.grid)) > MOST_PROGRAMS:
        place = place_of(_function(module))
        raise beyond("the grid", count, MOST_PROGRAMS, "programs", place, "give each program a larger block")


def _function(module: ModuleOp) -> FuncOp:
    return next(op for op in module.body.block.ops if isinstance(op, FuncOp))


def _too_many_classes(function: FuncOp, classes: int) -> CapacityError:
    what, help = "control flow differs between programs", "let programs differ in masks, not in trip counts"
    return beyond(what, classes, MOST_CLASSES, "classes of programs", place_of(function), help)


def _state(function: FuncOp, launch: LaunchArguments, programs: Programs, earlier: Sequence[TrackedAccess], fusion: bool) -> State:
    arguments = function.body.block.args
    buffers: list[BufferPlacement | None] = []
    names: list[str] = []
    state = State(programs, buffers, names, MOST_STEPS, earlier, fusion)
    for index, argument in enumerate(arguments):
        named = argument_attributes(function, index).get("tile.name")
        name = named.data if isinstance(named, StringAttr) else ""
        names.append(name)
        buffers.append(launch.buffers.get(name))
        if types.is_pointer(argument.type):
            pointee = types.dtype_of(types.pointee_of(argument.type))
            state.values[argument] = _pointer(buffers, index, pointee)
        elif name in launch.scalars:
            state.values[argument] = splat(launch.scalars[name], types.dtype_of(argument.type))
    return state


def _pointer(buffers: Sequence[BufferPlacement | None], index: int, dtype: DType) -> Pointer:
    """The pointer that a parameter is. One that points among the elements of an earlier parameter's memory is expressed by that
    one: later stages take different parameters for different memory."""
    own, size = buffers[index], dtype.storage_bits // 8
    for number, other in enumerate(buffers[:index]):
        if own is None or other is None or own.storage != other.storage or (own.offset - other.offset) % size:
            continue
        return Pointer(number, dtype, splat((own.offset - other.offset) // size, _INT64))
    return Pointer(index, dtype, splat(0, _INT64))


def _quantities(state: State, block: Block) -> list[Labels]:
    """The numbers that programs derive from their ids and use for anything but more arithmetic on scalars."""
    found: dict[SSAValue, Labels] = {}
    for op in block.ops:
        scalar = all(not types.is_tile(value.type) for value in (*op.operands, *op.results))
        if scalar and not op.regions and all(value in state.values for value in op.operands) and execute(state, op):
            continue
        for inner in op.walk():
            for operand in inner.operands:
                labels = _labels(state, state.values.get(operand))
                if labels is not None:
                    found[operand] = labels
    return list(found.values())


def _labels(state: State, entry: Entry | None) -> Labels | None:
    tile = entry.offset if isinstance(entry, Pointer) else entry
    if not isinstance(tile, ConstantTile) or not tile.keys:
        return None
    return labels_of(tile.whole().data)


# The traversal -----------------------------------------------------------------------------------------------------------


def _run(state: State, block: Block, left_out: frozenset[Operation]) -> list[Entry]:
    """The operations of a block, but for those left out; gives what its terminator passes on, where nothing was left out."""
    for op in block.ops:
        if op in left_out:
            continue
        if isinstance(op, YieldOp | ConditionOp | ReturnOp):
            return [] if left_out else [state.values[value] for value in op.operands]
        state.spend(op)
        _step(state, op)
    return []


def _step(state: State, op: Operation) -> None:
    if execute(state, op):
        return
    if isinstance(op, LoadOp):
        state.values[op.results[0]] = memory.load(state, op)
    elif isinstance(op, LoadBlockOp):
        state.values[op.results[0]] = memory.load_block(state, op)
    elif isinstance(op, StoreOp):
        memory.store(state, op)
    elif isinstance(op, StoreBlockOp):
        memory.store_block(state, op)
    elif isinstance(op, AtomicRmwOp | AtomicCasOp):
        old = memory.atomic(state, op)
        if old is not None:
            state.values[op.results[0]] = old
    elif isinstance(op, ForOp):
        _bind(state, op, control.for_loop(state, op, _run))
    elif isinstance(op, WhileOp):
        _bind(state, op, control.while_loop(state, op, _run))
    elif isinstance(op, IfOp):
        _bind(state, op, control.branch(state, op, _run))
    elif not isinstance(op, BarrierOp):
        raise unsupported(op, f"`{op.name}` is not served", op.name)


def _bind(state: State, op: Operation, results: Sequence[Entry]) -> None:
    state.values.update(zip(op.results, results, strict=True))
