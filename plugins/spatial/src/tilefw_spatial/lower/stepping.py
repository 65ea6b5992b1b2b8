"""Constants that a loop carries, as functions of its counter: pointers and counters that step on, or whatever a few ops make."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilefw.api import DTYPES
from tilefw.api.ir import AddPtrOp, Block, BlockAccess, ElementwiseOp, Operation, PointerAccess, SSAValue
from tilefw_spatial.graph import Axis
from tilefw_spatial.lower.accumulate import Serial
from tilefw_spatial.lower.arithmetic import as_offset
from tilefw_spatial.lower.constant_tile import ConstantTerm, ConstantTile, iota, of_term, product, splat, total
from tilefw_spatial.lower.state import State
from tilefw_spatial.lower.tiles import Entry, Pointer

Run = Callable[[State, Block, frozenset[Operation]], list[Entry]]
_INT64 = DTYPES["int64"]


def stepped(
    state: State, block: Block, indices: Sequence[int], carried: Sequence[Entry], axis: Axis, counter: ConstantTile, run: Run
) -> dict[int, Entry]:
    """Sets the body's arguments number `indices` to what they are in every iteration; returns what they are after the loop."""
    last = block.last_op
    assert last is not None
    ends: dict[int, Entry] = {}
    others: list[int] = []
    for index in indices:
        step = _step(state, block, block.args[1 + index], last.operands[index])
        moved = None if step is None else _advanced(carried[index], step, axis)
        if moved is None:
            others.append(index)
        else:
            state.values[block.args[1 + index]], ends[index] = moved
    if others:
        ends |= _iterated(state, block, others, carried, axis, counter, run)
    return ends


def _step(state: State, block: Block, argument: SSAValue, yielded: SSAValue) -> ConstantTile | None:
    """What is added to a carried value in each iteration, where that is one constant from outside of the loop."""
    op = yielded.owner
    if not isinstance(op, AddPtrOp) and not (isinstance(op, ElementwiseOp) and op.row.name == "addi"):
        return None
    left, right = op.operands
    if right is argument and isinstance(op, ElementwiseOp):
        left, right = right, left
    owner = right.owner
    if left is not argument or (owner is block or (isinstance(owner, Operation) and owner.parent is block)):
        return None
    step = state.values[right]
    return step if isinstance(step, ConstantTile) else None


def _advanced(start: Entry, step: ConstantTile, axis: Axis) -> tuple[Entry, Entry] | None:
    """`start` and `step` a number of times: in every iteration, and behind the last one."""
    first = start.offset if isinstance(start, Pointer) else start
    assert isinstance(first, ConstantTile)
    by = as_offset(step) if isinstance(start, Pointer) else step
    if by.dtype.bits == 1:
        return None
    along = product(by, iota(by.dtype, by.shape, axis, axis.extent))
    whole = product(by, splat(axis.extent, by.dtype, by.shape))
    if along is None or whole is None:
        return None
    if isinstance(start, Pointer):
        return start.moved(total(first, along)), start.moved(total(first, whole))
    return total(first, along), total(first, whole)


def _iterated(
    state: State, block: Block, indices: Sequence[int], carried: Sequence[Entry], axis: Axis, counter: ConstantTile, run: Run
) -> dict[int, Entry]:
    """The same by running the few operations that make the values, once for each iteration."""
    last = block.last_op
    assert last is not None
    needed = _needed(block, [last.operands[index] for index in indices])
    if any(isinstance(inner, PointerAccess | BlockAccess) for op in needed for inner in op.walk()):
        raise Serial(axis)  # a branch that stores beside what it gives
    rest = frozenset(op for op in block.ops if op not in needed)
    current = {index: carried[index] for index in indices}
    found: dict[int, list[Entry]] = {index: [] for index in indices}
    before: dict[SSAValue, Entry] = {arg: state.values[arg] for arg in block.args if arg in state.values}
    for iteration in range(axis.extent):
        state.spend(last)
        state.values.update({arg: _at(entry, axis, iteration) for arg, entry in before.items()})
        state.values[block.args[0]] = _at(counter, axis, iteration)
        for index, entry in current.items():
            state.values[block.args[1 + index]] = entry
            found[index].append(entry)
        run(state, block, rest)
        current = {index: state.values[last.operands[index]] for index in indices}
    state.values.update(before)
    for index in indices:
        state.values[block.args[1 + index]] = _stacked(found[index], axis)
    return current


def _needed(block: Block, wanted: Sequence[SSAValue]) -> set[Operation]:
    """The body's operations that the values need; a branch or a loop needs what is within it, too."""
    needed: set[Operation] = set()
    pending = list(wanted)
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner.parent is block and owner not in needed:
            needed.add(owner)
            pending += [operand for inner in owner.walk() for operand in inner.operands]
    return needed


def _at(entry: Entry, axis: Axis, iteration: int) -> Entry:
    """A constant in one iteration."""
    tile = entry.offset if isinstance(entry, Pointer) else entry
    if not isinstance(tile, ConstantTile) or axis not in tile.keys:
        return entry
    at = tile.mapped(lambda term: _taken(term, axis, iteration), tile.shape)
    return entry.moved(at) if isinstance(entry, Pointer) else at


def _taken(term: ConstantTerm, axis: Axis, iteration: int) -> ConstantTerm:
    if axis not in term.keys:
        return term
    position = term.keys.index(axis)
    return ConstantTerm(term.data.take(iteration, axis=position), (*term.keys[:position], *term.keys[position + 1 :]))


def _stacked(entries: Sequence[Entry], axis: Axis) -> Entry:
    first = entries[0]
    tiles = [entry.offset if isinstance(entry, Pointer) else entry for entry in entries]
    wholes = [tile.whole() for tile in tiles if isinstance(tile, ConstantTile)]
    keys = tuple(dict.fromkeys(key for whole in wholes for key in whole.keys))
    data = np.stack(np.broadcast_arrays(*(whole.over(keys) for whole in wholes)), axis=-1)
    tile = of_term(_INT64 if isinstance(first, Pointer) else first.dtype, first.shape, ConstantTerm(data, (*keys, axis)))
    return first.moved(tile) if isinstance(first, Pointer) else tile
