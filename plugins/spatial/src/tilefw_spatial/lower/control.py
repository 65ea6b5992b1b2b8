"""Branches and loops whose trip counts are compile-time constants: iterations that are independent, or only accumulate, become an
axis; others are unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilefw.api import DTYPES
from tilefw.api.ir import AtomicOp, Block, ForOp, IfOp, LoadBlockOp, LoadOp, Operation, SSAValue, WhileOp
from tilefw_spatial.graph import Axis
from tilefw_spatial.lower.accumulate import AccumulationChain, Serial, chain_of, finished
from tilefw_spatial.lower.constant_tile import ConstantTerm, ConstantTile, iota, of_term, product, total
from tilefw_spatial.lower.order import Conflict, left
from tilefw_spatial.lower.state import State
from tilefw_spatial.lower.stepping import stepped
from tilefw_spatial.lower.tiles import Data, Entry, unsupported

Run = Callable[[State, Block, frozenset[Operation]], list[Entry]]
_INT64 = DTYPES["int64"]
_NONE: frozenset[Operation] = frozenset()


class Divided(Exception):
    """Programs of one class diverge: of those with `numbers`, ones of equal `labels` stay together."""

    def __init__(self, numbers: NDArray[np.int64], labels: NDArray[np.int64]) -> None:
        super().__init__("programs differ in control")
        self.numbers, self.labels = numbers, labels


def _decided(state: State, tile: ConstantTile) -> int:
    """A number that control depends on, which must be one for all programs and iterations that run together."""
    number = tile.number
    if number is not None:
        return int(number)
    whole = tile.whole()
    for key in whole.keys:
        if isinstance(key, Axis) and key in state.loops:
            raise Serial(key)
    keys = tuple(state.programs.axes)
    numbers = state.programs.numbers
    raise Divided(numbers.ravel(), np.broadcast_to(whole.over(keys), numbers.shape).astype(np.int64).ravel())


def branch(state: State, op: IfOp, run: Run) -> list[Entry]:
    """A branch on a constant condition."""
    condition = state.constant(op.cond, op, "a branch depends on loaded data", "cf.branch")
    region = op.true_region if _decided(state, condition) else op.false_region
    return run(state, region.block, _NONE) if region.blocks else []


def while_loop(state: State, op: WhileOp, run: Run) -> list[Entry]:
    """A loop that ends by a constant condition: unrolled."""
    carried = [state.values[value] for value in op.arguments]
    before, after = op.before_region.block, op.after_region.block
    while True:
        state.spend(op)  # each trip, as its body may be empty
        state.values.update(zip(before.args, carried, strict=True))
        condition, *passed = run(state, before, _NONE)
        if not isinstance(condition, ConstantTile):
            raise unsupported(op, "the trip count of a loop depends on loaded data", "cf.dynamic")
        if not _decided(state, condition):
            return passed
        state.values.update(zip(after.args, passed, strict=True))
        carried = run(state, after, _NONE)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What becomes of a loop's carried values when it is an axis: unchanged ones are kept, constants step, others follow their
    chains."""

    kept: tuple[int, ...]
    stepped: tuple[int, ...]
    chains: tuple[AccumulationChain, ...]


def for_loop(state: State, op: ForOp, run: Run) -> list[Entry]:
    """A loop whose bounds are constants."""
    what = "the trip count of a loop depends on loaded data"
    lower, upper, step = (state.constant(value, op, what, "cf.dynamic") for value in (op.lb, op.ub, op.step))
    trips = _decided(state, _trips(lower, upper, step))
    carried = [state.values[value] for value in op.iter_args]
    plan = _planned(state, op.body.block, carried) if trips > 1 else None
    if plan is not None:
        marks = len(state.stores), len(state.loads), len(state.stored)
        axis, loops = state.loop_axis(trips), state.loops
        state.loops = (*loops, axis)
        try:
            found = _along(state, op.body.block, plan, carried, axis, _counter(lower, step, axis), run)
            state.loops = loops
            left(state, axis, marks[1], marks[2])
            return found
        except Conflict:
            pass
        except Serial as error:
            if error.axis is not axis:
                raise
        finally:
            state.loops = loops
        del state.stores[marks[0] :], state.loads[marks[1] :], state.stored[marks[2] :]
    return _unrolled(state, op, carried, lower, step, trips, run)


def _trips(lower: ConstantTile, upper: ConstantTile, step: ConstantTile) -> ConstantTile:
    wholes = [tile.whole() for tile in (lower, upper, step)]
    keys = tuple(dict.fromkeys(key for whole in wholes for key in whole.keys))
    first, last, by = (whole.over(keys).astype(np.int64) for whole in wholes)
    return of_term(_INT64, (), ConstantTerm(np.maximum(0, -((first - last) // np.maximum(by, 1))), keys))


def _counter(lower: ConstantTile, step: ConstantTile, axis: Axis) -> ConstantTile:
    steps = product(step, iota(step.dtype, (), axis, axis.extent))
    if steps is None:
        whole = step.whole()
        steps = of_term(step.dtype, (), ConstantTerm(whole.data[..., None] * np.arange(axis.extent), (*whole.keys, axis)))
    return total(lower, steps)


def _unrolled(
    state: State, op: ForOp, carried: list[Entry], lower: ConstantTile, step: ConstantTile, trips: int, run: Run
) -> list[Entry]:
    block, counter = op.body.block, lower
    for _ in range(trips):
        state.values[block.args[0]] = counter
        state.values.update(zip(block.args[1:], carried, strict=True))
        carried = run(state, block, _NONE)
        counter = total(counter, step)
    return carried


def _along(
    state: State, block: Block, plan: _Plan, carried: Sequence[Entry], axis: Axis, counter: ConstantTile, run: Run
) -> list[Entry]:
    """The loop as an axis: its body once, for all iterations."""
    results = list(carried)
    state.values[block.args[0]] = counter
    for index in plan.kept:
        state.values[block.args[1 + index]] = carried[index]
    ends = stepped(state, block, plan.stepped, carried, axis, counter, run)
    for index in plan.stepped:
        results[index] = ends[index]
    chained = frozenset(op for chain in plan.chains for op in chain.ops)
    run(state, block, chained)
    for chain in plan.chains:
        results[chain.index] = finished(state, chain, carried[chain.index], axis)
    return results


def _planned(state: State, block: Block, carried: Sequence[Entry]) -> _Plan | None:
    """The plan of a loop that may become an axis; None where an iteration needs another's data otherwise than by adding to it."""
    last = block.last_op
    assert last is not None
    yielded = list(last.operands)
    arguments: list[SSAValue] = [*block.args[1:]]
    loaded = {arguments[i] for i, entry in enumerate(carried) if isinstance(entry, Data)}
    while True:
        found = _loaded(state, block, loaded)
        more = {arguments[i] for i, value in enumerate(yielded) if value in found or _is_data(state, value)} - loaded
        if not more:
            break
        loaded |= more
    kept, steps, chains = [], [], []
    for index, value in enumerate(yielded):
        if value is block.args[1 + index]:
            kept.append(index)
        elif block.args[1 + index] not in loaded:
            steps.append(index)
        elif (chain := chain_of(block, index)) is not None:
            chains.append(chain)
        else:
            return None
    return _Plan(tuple(kept), tuple(steps), tuple(chains))


def _loaded(state: State, block: Block, seeds: set[SSAValue]) -> set[SSAValue]:
    """What depends on loaded data, where `seeds` do."""
    found = set(seeds)
    for op in block.ops:
        inner = list(op.walk()) if isinstance(op, ForOp | IfOp | WhileOp) else [op]
        if any(isinstance(o, LoadOp | LoadBlockOp | AtomicOp) for o in inner) or any(
            value in found or _is_data(state, value) for o in inner for value in o.operands
        ):
            found.update(op.results)
    return found


def _is_data(state: State, value: SSAValue) -> bool:
    return isinstance(state.values.get(value), Data)
