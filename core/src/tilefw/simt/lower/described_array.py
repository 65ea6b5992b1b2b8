"""Whether the launch can tell a copy engine of the array of a block: its base, its sizes and strides are known there, as numbers.

Lanes copy of an array to which the kernel may have stored (`unseen_stores.py`), and of one whose rows do not begin where the
engine wants them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilefw.passes.affine import ZERO, AffineAnalysis, Poly
from tilefw.simt.description import CopyEngine, LaneMachine
from tilefw.simt.facts import LaneFacts
from tilefw.simt.lower.unseen_stores import may_miss_stores, stores_alone
from tilefw.simt.software_pipeline.loop_numbers import Signs
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.block_ops import BlockAccess, StoreBlockOp
from tilefw.tile.dialect.kernel_info import is_argument

_BEYOND = (1 << 31) - 1  # elements of a dim that nothing bounds


@dataclass(frozen=True)
class BlockArray:
    """The number of the argument that is the base; the dims of the block, innermost first (`order`); in that order the sizes, and
    the strides of all dims but the innermost: numbers, or numbers of arguments. The array has further dims behind those, in which
    the block is one element: it stands at `outer` along them (a head of a batch). `divisors` are the numbers of the arguments that
    must not be negative, or blocks began before the array."""

    base: int
    order: tuple[int, ...]
    sizes: tuple[int | str, ...]
    strides: tuple[int | str, ...]
    outer: tuple[SSAValue, ...]
    divisors: tuple[int, ...]


def engine_of(machine: LaneMachine, op: Operation) -> CopyEngine | None:
    """The engine that may make a copy at the place of an op: one that counting barriers tell of, whose phases
    are counted in the function and in its counted loops."""
    chip = machine.chip
    if chip.copy_engine is None or not chip.barrier_bytes:
        return None
    around = op.parent_op()
    while isinstance(around, ForOp):
        around = around.parent_op()
    return chip.copy_engine if isinstance(around, FuncOp) else None


def array_of(function: FuncOp, facts: LaneFacts, op: BlockAccess, engine: CopyEngine) -> BlockArray | None:
    """The array of a block; None where the launch cannot describe it, the engine does not take it, or where the block may begin
    before it: there an engine reads zeros."""
    signs = Signs()
    if not _is_behind_begin(op, signs):
        return None
    found = _described(facts, op, engine, signs)
    if found is None or may_miss_stores(function, op, function.body.block.args[found.base], facts.disjoint):
        return None
    return found


def stored_array_of(function: FuncOp, facts: LaneFacts, op: StoreBlockOp, engine: CopyEngine) -> BlockArray | None:
    """The array of a block that an engine may store wherever it does not begin before the array along any dim; None where something
    else accesses the array, and as for `array_of`."""
    return _described(facts, op, engine, Signs()) if stores_alone(function, op, facts.disjoint) else None


def uncertain(op: BlockAccess) -> list[SSAValue]:
    """The offsets of a block that may be negative, as far as is known without a launch."""
    analysis = AffineAnalysis()

    def is_certain(offset: SSAValue) -> bool:
        signs = Signs()
        return signs.all_upwards(analysis.scalar(offset)) and not signs.divisors

    return [offset for offset in op.offsets if not is_certain(offset)]


def _described(facts: LaneFacts, op: BlockAccess, engine: CopyEngine, signs: Signs) -> BlockArray | None:
    dtype, origin = types.dtype_of(types.element_of(op.block_type)), _origin(op.base)
    size, order = dtype.storage_bits // 8, _innermost_first(facts, op)
    if order is None or origin is None or size not in engine.element_bytes:
        return None
    base, outer = origin[0], _outer(facts, origin[1], signs)
    if outer is None or op.rank + len(outer) > engine.rank:
        return None
    steps = [op.strides[dim] for dim in order[1:]]
    apart = [step if isinstance(step, int) else facts.divisor(step) for step in (*steps, *(step for _, step in outer))]
    if facts.divisor(base) % engine.alignment or any(distance * size % engine.alignment for distance in apart):
        return None
    sizes = [_BEYOND if (bound := op.shape[dim]) is None else _measure(facts, bound) for dim in order]
    strides = [_measure(facts, step) for step in steps]
    if any(measure is None for measure in (*sizes, *strides)) or not all(_is_near(facts, offset) for offset in op.offsets):
        return None
    if any(isinstance(stride, int) and stride < 0 for stride in strides):  # rows that go backwards
        return None
    along = [step if isinstance(step, int) else str(step.index) for _, step in outer]
    return BlockArray(
        base.index, tuple(order), (*sizes, *(_BEYOND for _ in outer)), (*strides, *along),  # type: ignore[arg-type]
        tuple(place for place, _ in outer), tuple(sorted(argument.index for argument in signs.divisors)),
    )


def _origin(pointer: SSAValue) -> tuple[BlockArgument, Poly] | None:
    """The argument that a scalar pointer comes from, and how many elements behind it."""
    analysis, total = AffineAnalysis(), ZERO
    while isinstance(owner := pointer.owner, ops.AddPtrOp):
        total, pointer = total + analysis.scalar(owner.offset), owner.pointer
    return (pointer, total) if is_argument(pointer) else None


def _outer(facts: LaneFacts, total: Poly, signs: Signs) -> list[tuple[SSAValue, int | BlockArgument]] | None:
    """A sum of places times strides, each of which is a number or an argument; None for another sum."""
    found: list[tuple[SSAValue, int | BlockArgument]] = []
    for monomial, factor in total.terms:
        if len(monomial) == 1 and factor > 1:
            found.append((monomial[0], factor))
            continue
        strides = [value for value in monomial if is_argument(value)]
        if len(monomial) != 2 or factor != 1 or not strides:
            return None
        stride = max(strides, key=facts.divisor)
        found.append((monomial[1 - monomial.index(stride)], stride))
    if not all(place.type == types.i32 and signs.upwards(place) for place, _ in found):
        return None
    return sorted(found, key=lambda each: each[1] if isinstance(each[1], int) else -1 - each[1].index)


def _is_behind_begin(op: BlockAccess, signs: Signs) -> bool:
    """Whether nothing is read along any dim that stands before the array."""
    analysis = AffineAnalysis()
    return all(
        check == "both" or signs.all_upwards(analysis.scalar(offset)) for check, offset in zip(op.checks, op.offsets, strict=True)
    )


def _innermost_first(facts: LaneFacts, op: BlockAccess) -> Sequence[int] | None:
    """The dims of the block, that of neighbours first; None where that is not clear."""
    dense = [dim for dim, stride in enumerate(op.strides) if facts.constant(stride) == 1]
    return [dense[0], *(dim for dim in reversed(range(op.rank)) if dim != dense[0])] if len(dense) == 1 else None


def _measure(facts: LaneFacts, value: SSAValue) -> int | str | None:
    """A number that the launch knows: one that is fixed, or an argument's; None for any other."""
    fixed = facts.constant(value)
    if fixed is not None:
        return fixed
    while isinstance(value.owner, Operation) and value.owner.name == "tile.exts":
        value = value.owner.operands[0]
    return str(value.index) if is_argument(value) else None


def _is_near(facts: LaneFacts, offset: SSAValue) -> bool:
    """Whether a place in the array is a number of 32 bits."""
    if offset.type == types.i32:
        return True
    reach = facts.reach(offset)
    return reach is not None and reach < 1 << 31
