"""Bugs of plain loads and stores: masks, what stands for masked-off elements, neighbours, strides, stores left out."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region

from tilefw.passes.fold import constant_of
from tilefw.passes.rewriting import erase, exchange, insert, place_before
from tilefw.tile import types
from tilefw.tile.dialect.block_ops import BlockAccess
from tilefw.tile.dialect.memory_ops import PointerAccess
from tilefw.tile.dialect.ops import AddPtrOp, LoadBlockOp, LoadOp, NumProgramsOp, ProgramIdOp, StoreBlockOp, StoreOp, TransOp
from tilefw_planted.bug import Bug, by_row, full, made, operand_changed, swapped


def _checked(op: object, kind: type[BlockAccess]) -> bool:
    return isinstance(op, kind) and any(check != "none" for check in op.checks)


def _bound_moved(op: BlockAccess, by: int) -> None:
    """The bound of the last checked dim."""
    last = 2 * len(op.block) + sum(check != "none" for check in op.checks)
    operand_changed(op, last, lambda bound, before: by_row("addi", bound, before=before, number=by))


def _masked(op: object, kind: type[PointerAccess]) -> bool:
    return isinstance(op, kind) and op.mask is not None


def _bare_load(op: LoadOp | LoadBlockOp) -> None:
    if isinstance(op, LoadOp):
        exchange(op, LoadOp(op.pointer, op.offsets, **op.hints))
    else:
        exchange(op, LoadBlockOp(op.base, [None] * len(op.block), op.strides, op.offsets, op.block, **op.hints))


def _bare_store(op: StoreOp | StoreBlockOp) -> None:
    if isinstance(op, StoreOp):
        exchange(op, StoreOp(op.pointer, op.value, op.offsets, **op.hints))
    else:
        exchange(op, StoreBlockOp(op.base, op.value, [None] * len(op.block), op.strides, op.offsets, **op.hints))


def _has_other(op: object) -> bool:
    return isinstance(op, LoadOp | LoadBlockOp) and op.other is not None


def _other_put(op: LoadOp | LoadBlockOp, number: int) -> None:
    assert op.other is not None
    op.operands[len(op.operands) - 1] = full(number, op.other.type, op)


def _other_is_no_zero(op: Any) -> bool:
    return _has_other(op) and constant_of(op.other) != 0


def _neighbour(op: LoadOp | LoadBlockOp) -> None:
    if isinstance(op, LoadBlockOp):
        operand_changed(op, len(op.block), lambda offset, before: by_row("addi", offset, before=before, number=1))
    elif op.offsets is not None:
        operand_changed(op, 1, lambda offset, before: by_row("addi", offset, before=before, number=1))
    else:
        one = full(1, types.with_element(op.pointer.type, types.i32), op)
        operand_changed(op, 0, lambda pointer, before: insert(AddPtrOp(pointer, one), before))


def _is_square_store(op: object) -> bool:
    if not isinstance(op, StoreOp | StoreBlockOp):
        return False
    shape = types.shape_of(op.value.type)
    return len(shape) == 2 and shape[0] == shape[1] > 1


def _transposed(op: StoreOp | StoreBlockOp) -> None:
    place = next(i for i, operand in enumerate(op.operands) if operand is op.value and i > 0)
    operand_changed(op, place, lambda value, before: insert(TransOp(value, (1, 0)), before))


def _has_two_strides(op: object) -> bool:
    return isinstance(op, LoadBlockOp) and len(op.block) > 1 and op.strides[-1] is not op.strides[-2]


def _is_later_store(op: Operation) -> bool:
    """Stores a second result: another store stands before it in its block."""
    if not isinstance(op, StoreOp | StoreBlockOp):
        return False
    earlier = op.prev_op
    while earlier is not None and not isinstance(earlier, StoreOp | StoreBlockOp):
        earlier = earlier.prev_op
    return earlier is not None


def _not_in_last_program(op: Operation) -> None:
    following = by_row("addi", insert(ProgramIdOp(0), op), before=op, number=1)
    others = made("nei", following, insert(NumProgramsOp(0), op), before=op)
    block = Block()
    place_before(scf.IfOp(others, [], Region(block)), op)
    op.detach()
    block.add_ops([op, scf.YieldOp()])


def _bounds_of(word: str, kind: type[BlockAccess], beyond: str) -> list[Bug]:
    """A bound of loads or of stores, moved either way; `beyond` is how it shows when it is too large."""
    moved = {
        "more": (1, "large", beyond), "less": (-1, "small: the last column is dropped", "in the last element"),
    }
    return [
        Bug(
            f"{word}-one-{way}", f"a {word}'s bound is one too {mistake}", shows,
            lambda op: _checked(op, kind), lambda op, by=by: _bound_moved(op, by),
        )
        for way, (by, mistake, shows) in moved.items()
    ]


BUGS = [
    *_bounds_of("load", LoadBlockOp, "what is loaded is not an `other`, or lies outside the array"),
    *_bounds_of("store", StoreBlockOp, "behind the array"),
    Bug(
        "load-unmasked", "a load ignores its mask or bounds", "where `other` matters, or outside the array",
        lambda op: _checked(op, LoadBlockOp) or _masked(op, LoadOp), _bare_load,
    ),
    Bug(
        "store-unmasked", "a store ignores its mask or bounds", "in elements that must stay",
        lambda op: _checked(op, StoreBlockOp) or _masked(op, StoreOp), _bare_store,
    ),
    Bug(
        "other-ignored", "masked-off elements keep what a register held", "where a masked-off element is used",
        lambda op: _has_other(op) and constant_of(op.other) != 3, lambda op: _other_put(op, 3),
    ),
    Bug(
        "other-zero", "masked-off elements are always zero", "where `other` is not zero and is used",
        _other_is_no_zero, lambda op: _other_put(op, 0),
    ),
    Bug(
        "neighbour-loaded", "loads are off by one element", "wherever neighbours differ",
        lambda op: isinstance(op, LoadOp | LoadBlockOp), _neighbour,
    ),
    Bug(
        "store-transposed", "a square tile is stored with its dims in the other order", "off the diagonal",
        _is_square_store, _transposed,
    ),
    Bug(
        "strides-swapped", "the strides of a block's last two dims change places", "unless they are equal",
        _has_two_strides, lambda op: swapped(op, 2 * len(op.block) - 1, 2 * len(op.block)),
    ),
    Bug("later-store-lost", "of two stores the second is dropped as dead", "in its array", _is_later_store, erase),
    Bug(
        "last-program-silent", "the last program along axis 0 stores nothing", "in its part of the result",
        lambda op: isinstance(op, StoreOp | StoreBlockOp), _not_in_last_program,
    ),
]
