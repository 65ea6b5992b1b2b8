"""The layout of each shared buffer, chosen once from all that is written to it and read from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.simt.assign.assignment import Assignment
from tilefw.simt.assign.k_steps import dot_of, operand_of
from tilefw.simt.assign.shared_operands import claims
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.layout import LinearLayout, swizzle
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.lower import shared_access
from tilefw.tile.dialect.copy_ops import CopyBlockOp, CopyOp
from tilefw.tile.dialect.shared_ops import AllocSharedOp, LoadSharedOp, SlotOp, StoreSharedOp
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.text.source_location import place_of


@dataclass(slots=True)
class _Use:
    """How one buffer is used."""

    writers: list[LinearLayout] = field(default_factory=list)
    readers: list[LinearLayout] = field(default_factory=list)
    copies: list[tuple[LinearLayout, int]] = field(default_factory=list)


def shared_layouts(function: FuncOp, assignment: Assignment, machine: LaneMachine) -> dict[SSAValue, SharedLayout]:
    """By the result of each `tile.alloc_shared`. Raises UnsupportedError as `buffer_of` does."""
    uses: dict[SSAValue, _Use] = {}
    for op in nested_ops(function):
        if isinstance(op, AllocSharedOp):
            uses[op.results[0]] = _Use()
        elif isinstance(op, LoadSharedOp):
            uses[buffer_of(op.view, op)].readers += _readers(op, assignment, machine.chip)
        elif isinstance(op, StoreSharedOp):
            uses[buffer_of(op.view, op)].writers.append(assignment.layouts[op])
        elif isinstance(op, CopyOp | CopyBlockOp) and machine.chip.copy_bytes:  # else an engine makes it, as its reader has it
            layout = assignment.layouts[op]
            uses[buffer_of(op.view, op)].copies.append((layout, assignment.accesses.access_width(op, layout)))
    filled = dict(assignment.copies.buffers)
    for dot, layouts in assignment.dots.items():
        filled |= {buffer: layout for buffer, layout, _ in claims(dot, layouts)}
    return {buffer: filled[buffer] if buffer in filled else _chosen(buffer, use, machine) for buffer, use in uses.items()}


def _readers(op: LoadSharedOp, assignment: Assignment, chip: ChipDescription) -> Sequence[LinearLayout]:
    dot = dot_of(op)
    if dot is not None and assignment.dots[dot].atom.asynchronous:
        return ()
    made = assignment.made.get(op.results[0], ())
    return made if dot is None or not made else [operand_of(op, dot, assignment.dots[dot], chip)]


def _chosen(buffer: SSAValue, use: _Use, machine: LaneMachine) -> SharedLayout:
    type = buffer.type.view  # type: ignore[attr-defined]
    # What is stored before a loop and at its end alike counts once: the loop's rounds are many.
    writers = list(dict.fromkeys(use.writers))
    return swizzle.choose(type.shape, shared_access.storage_bits(type.element), writers, use.readers, machine.chip, use.copies)


def buffer_of(view: SSAValue, user: Operation) -> SSAValue:
    """The allocation that a view is of. Raises UnsupportedError (TFW0614) where that is not one in sight."""
    owner = view.owner
    if isinstance(owner, SlotOp):
        return buffer_of(owner.ring, user)
    if not isinstance(owner, AllocSharedOp):
        message = "a shared buffer comes from one allocation, not through branches or loops"
        raise UnsupportedError(message, code="TFW0614", place=place_of(user))
    return view
