"""Gives dots to asynchronous atoms, and puts those operands into shared memory that the atoms read there.

A dot is marked with the atom that does it and the dims along which its operands' rows lie. An operand that a loop's pipeline has in
shared memory stays there: the atom reads the slot itself, also the transposed tile of it. What copies fill has the rows that memory
has. Any other operand is stored to a buffer of its own, where it is computed or, in a loop, before the dot; but the A of a chain,
which is computed from another dot's sums, stays in registers. A dot whose operands no form holds is left to the other atoms.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.api.remark import Remark
from tilefw.simt.assign.accesses import Accesses
from tilefw.simt.assign.chains import DotChains
from tilefw.simt.assign.classes import Classes
from tilefw.simt.assign.shared_operands import SharedOperandView, claims, mark, view_of
from tilefw.simt.assign.staging import buffer_of_view, users_of
from tilefw.simt.description import LaneMachine
from tilefw.simt.facts import LaneFacts
from tilefw.simt.layout.asynchronous import FactorSource, asynchronous_layouts, why_no_atom
from tilefw.simt.layout.atom_layouts import AtomChain, DotLayouts
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.layout.shared_operand import SharedOperand
from tilefw.simt.lower import dot, remarks
from tilefw.simt.software_pipeline.emitter import Emitter
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.copy_ops import CopyBlockOp, CopyOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.dot_scaled_op import DotScaledOp
from tilefw.tile.dialect.shape_ops import TransOp
from tilefw.tile.dialect.shared_ops import AllocSharedOp, LoadSharedOp, StoreSharedOp, shared
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.text.source_location import place_of


@dataclass(frozen=True)
class AsynchronousDots(ModulePass):
    """Marks the dots that asynchronous atoms of the chip do, and stages their operands."""

    machine: LaneMachine
    name = "asynchronous-dots"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not any(atom.asynchronous for atom in self.machine.chip.atoms):
            return
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp)]:
            _DotStaging(function, self.machine).run()


class _DotStaging:
    """One function's dots. `claimed` are the layouts of buffers that dots read already, `staged` those that were made for them."""

    def __init__(self, function: FuncOp, machine: LaneMachine) -> None:
        self.function = function
        self.machine = machine
        self.accesses = Accesses(machine, LaneFacts(function, machine))
        self.claimed: dict[SSAValue, SharedLayout] = {}
        self.staged: dict[tuple[SSAValue, SharedLayout], SSAValue] = {}

    def run(self) -> None:
        dots = [op for op in nested_ops(self.function) if isinstance(op, DotOp) and not isinstance(op, DotScaledOp)]
        for op in dots:  # before what is stored for one stands between another and its reads
            for value in (op.a, op.b):
                view = view_of(value, op)
                if view is not None:
                    _bring(view, op)
        chains = DotChains(dots, Classes(self.function))
        for op in dots:
            chain = chains.of(op)
            sources = self._source(op.a, op, chain is AtomChain.FOLLOWS), self._source(op.b, op, False)
            layouts = asynchronous_layouts(dot.shape_of(op), dot.types_of(op), self.machine, chain, sources)
            if layouts is not None and self._are_free(op, layouts):
                self._give(op, layouts)
            else:
                self._remark(op, chain)

    def _remark(self, op: DotOp, chain: AtomChain) -> None:
        """TFW0628: other atoms do a dot for whose types the chip has asynchronous ones."""
        why, sizes = why_no_atom(dot.shape_of(op), dot.types_of(op), self.machine, chain), dot.shape_of(op)
        if why is not None:
            product = "x".join(map(str, sizes))
            remarks.add(self.function, Remark(
                "TFW0628", f"this dot of {product} (m x n x k) is not left to the matrix unit that runs by itself: {why}",
                "a warp's own matrix instructions do it, at a lower rate and with all operands in registers",
                place_of(op, with_text=False),
            ))

    def _source(self, value: SSAValue, op: DotOp, computed: bool) -> FactorSource:
        found = view_of(value, op)
        if found is None:
            return FactorSource(False) if computed else FactorSource(True, self._preferred(value))
        copies = [user for user in users_of(buffer_of_view(found.view)) if isinstance(user, CopyOp | CopyBlockOp)]
        stores = [user for user in users_of(buffer_of_view(found.view)) if isinstance(user, StoreSharedOp)]
        if copies:
            rows = {self.accesses.preference(copy)[0][0] for copy in copies}  # also where lanes would copy single elements
            return FactorSource(True, tuple(1 - dim if found.turned else dim for dim in rows) if len(rows) == 1 else ())
        order = self._preferred(stores[0].value) if stores else (1, 0)
        return FactorSource(True, tuple(1 - dim for dim in order) if found.turned else order)

    def _preferred(self, value: SSAValue) -> tuple[int, ...]:
        """The dims along which a tile from registers had best lie: first that of its load."""
        owner = value.owner
        if isinstance(owner, TransOp) and owner.order == (1, 0):
            return tuple(1 - dim for dim in self._preferred(owner.operands[0]))
        last = _fastest(self.accesses, owner) if isinstance(owner, ops.LoadOp | ops.LoadBlockOp) else 1
        return (last, 1 - last)

    def _are_free(self, op: DotOp, layouts: DotLayouts) -> bool:
        """Whether no other dot, nor the dot's other operand, wants the buffers in another layout."""
        wanted = dict(self.claimed)
        return all(wanted.setdefault(buffer, layout) == layout for buffer, layout, _ in claims(op, layouts))

    def _give(self, op: DotOp, layouts: DotLayouts) -> None:
        mark(op, layouts)
        views = [view_of(value, op) for value in (op.a, op.b)]
        for index, (operand, view) in enumerate(zip(layouts.shared, views, strict=True)):
            if operand is not None and view is None:
                views[index] = SharedOperandView(self._stage(op, index, operand), False)
        for view in views:
            if view is not None:
                _bring(view, op)
        self.claimed |= {buffer: layout for buffer, layout, _ in claims(op, layouts)}

    def _stage(self, op: DotOp, index: int, operand: SharedOperand) -> LoadSharedOp:
        """Have the dot read an operand from a buffer of its own, stored where it is computed or, in the dot's block, before the
        dot. What was stored where it is computed serves all dots that want it so."""
        value, here = op.operands[index], Emitter(op)
        owner = value.owner
        behind = owner.next_op if isinstance(owner, Operation) and owner.parent is not op.parent else None
        buffer = None if behind is None else self.staged.get((value, operand.layout))
        if buffer is None:
            place = here if behind is None else Emitter(behind)
            type = shared(0, types.shape_of(value.type), types.element_of(value.type))
            buffer = place.insert(AllocSharedOp(type)).results[0]
            buffer.name_hint = value.name_hint
            place.insert(StoreSharedOp(buffer, value))
            if behind is not None:
                self.staged[value, operand.layout] = buffer
        read = LoadSharedOp(buffer)
        here.insert(read)
        read.results[0].name_hint = value.name_hint
        operands = list(op.operands)
        operands[index] = read.results[0]
        op.operands = operands
        return read


def _bring(view: SharedOperandView, op: DotOp) -> None:
    """Move a dot's read of an operand to right before it, behind all that is stored for the dot."""
    block = op.parent
    assert block is not None
    reading: Operation = view.load
    while reading is not op:
        following = next(iter(reading.results[0].uses)).operation
        reading.detach()
        block.insert_op_before(reading, op)
        reading = following


def _fastest(accesses: Accesses, op: ops.LoadOp | ops.LoadBlockOp) -> int:
    """The dim along which an access's elements are neighbours in memory."""
    layout = accesses.coalesced(op)
    first = next((basis for basis in (*layout.register, *layout.lane, *layout.wave) if basis), 0)
    return next((dim for dim, step in enumerate(layout.coordinates(first)) if step), 1)
