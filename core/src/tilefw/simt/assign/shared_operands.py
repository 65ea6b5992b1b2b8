"""Which operands of dots a matrix unit reads from shared memory itself: the marks of dots that are given to such units, the views
that they read, and how the buffers lie for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import DenseArrayBase, StringAttr
from xdsl.ir import SSAValue

from tilefw.simt.assign.k_steps import undisturbed
from tilefw.simt.assign.staging import buffer_of_view
from tilefw.simt.description import LaneMachine
from tilefw.simt.layout.asynchronous import layouts_in_forms
from tilefw.simt.layout.atom_layouts import AtomChain, DotLayouts
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.layout.shared_operand import SharedOperand, transposed
from tilefw.simt.lower import dot
from tilefw.tile.dialect.base import dense_i64, string_attr
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.shape_ops import TransOp
from tilefw.tile.dialect.shared_ops import LoadSharedOp

_ATOM, _ROWS = "tile.async_atom", "tile.async_rows"
_REGISTERS = -1  # of an operand that stands there


def mark(op: DotOp, layouts: DotLayouts) -> None:
    """Give a dot to the atom of these layouts."""
    rows = [_REGISTERS if operand is None else operand.fast for operand in layouts.shared]
    op.attributes[_ATOM], op.attributes[_ROWS] = string_attr(layouts.atom.name), dense_i64(tuple(rows))


def is_marked(op: DotOp) -> bool:
    """Whether a dot is given to an asynchronous atom."""
    return _ATOM in op.attributes


def marked_layouts(op: DotOp, machine: LaneMachine, chain: AtomChain) -> DotLayouts | None:
    """The layouts of a dot that an asynchronous atom does; None of any other."""
    atom, rows = op.attributes.get(_ATOM), op.attributes.get(_ROWS)
    if not isinstance(atom, StringAttr) or not isinstance(rows, DenseArrayBase):
        return None
    along = [int(dim) for dim in rows.get_values()]
    return layouts_in_forms(dot.shape_of(op), dot.types_of(op), machine, chain, atom.data, along)


@dataclass(frozen=True)
class SharedOperandView:
    """The view of shared memory that an operand of a dot is read from, maybe transposed."""

    load: LoadSharedOp
    turned: bool

    @property
    def view(self) -> SSAValue:
        return self.load.view

    def layout(self, operand: SharedOperand) -> SharedLayout:
        """How the buffer lies for an operand that is read from it."""
        return transposed(operand.layout) if self.turned else operand.layout


def view_of(value: SSAValue, user: DotOp) -> SharedOperandView | None:
    """Where a dot can read an operand itself: nobody else reads that tile, and nothing between can write the buffer."""
    owner, turned = value.owner, False
    if isinstance(owner, TransOp) and owner.order == (1, 0) and not value.has_more_than_one_use():
        value, turned = owner.operands[0], True
        owner = value.owner
    if not isinstance(owner, LoadSharedOp) or value.has_more_than_one_use() or not undisturbed(owner, user):
        return None
    return SharedOperandView(owner, turned)


def claims(op: DotOp, layouts: DotLayouts) -> Iterator[tuple[SSAValue, SharedLayout, SharedOperand]]:
    """The buffers that an asynchronous atom reads for a dot, how they have to lie, and the operand that each is."""
    for value, operand in zip((op.a, op.b), layouts.shared, strict=True):
        found = view_of(value, op)
        if operand is not None and found is not None:
            yield buffer_of_view(found.view), found.layout(operand), operand


def alignments(dots: Mapping[DotOp, DotLayouts]) -> dict[SSAValue, int]:
    """The bytes at whose multiples the buffers begin that matrix units read."""
    return {buffer: each.form.pattern_bytes for op, layouts in dots.items() for buffer, _, each in claims(op, layouts)}
