"""Spills loop-invariant operands of dots to shared memory where the registers would not hold all that the loop needs.

Example: the queries in attention. In registers they need no reload, but beside the accumulators of large heads they do not fit.
From shared memory each k step of them is read again in every iteration, like the operands that change.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.api.integers import ceil_div
from tilefw.simt.description import LaneMachine
from tilefw.simt.lane.registers import bits_of
from tilefw.simt.layout import LinearLayout, atoms
from tilefw.simt.layout.atoms import AtomChain, DotLayouts
from tilefw.simt.lower import dot
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.shared_ops import AllocSharedOp, LoadSharedOp, StoreSharedOp, shared
from tilefw.tile.dialect.shared_type import SharedType
from tilefw.tile.nested_ops import nested_of, nested_ops

# What accumulators and operands of a loop's dots may take of a lane's registers; the rest is for addresses and masks.
SHARE = 0.7


@dataclass(frozen=True)
class InvariantsToShared(ModulePass):
    """Spills loop-invariant operands of dots to shared memory where registers would run out.

    Looks at each loop with dots; does nothing on a chip that does not say how many registers a lane has.
    """

    machine: LaneMachine
    name = "invariants-to-shared"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = self.machine.chip
        if not chip.registers or not chip.shared_bytes:
            return
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp)]:
            loops = nested_of(function, ForOp)
            lot = _SharedBudget(function, chip.shared_bytes)
            for loop in loops:
                _relieve(loop, self.machine, lot)


def bytes_wanted(loop: ForOp, machine: LaneMachine) -> int:
    """The shared memory that operands of a loop's dots will be spilled to, where there is room."""
    chip, total = machine.chip, 0
    if not chip.registers or not chip.shared_bytes:
        return 0
    invariant, need = _demand(loop, machine)
    for value, size in invariant:
        if need <= SHARE * chip.registers:
            break
        total += _buffer_bytes(_buffer(value))
        need -= size
    return total


def _relieve(loop: ForOp, machine: LaneMachine, lot: _SharedBudget) -> None:
    """Spill operands that the loop does not change, the largest first, until the rest fits."""
    invariant, need = _demand(loop, machine)
    for value, size in invariant:
        if need <= SHARE * machine.chip.registers:
            return
        if lot.store(value, loop):
            need -= size


def _demand(loop: ForOp, machine: LaneMachine) -> tuple[list[tuple[SSAValue, int]], int]:
    """The operands of a loop's dots that it does not change, the largest first, with their registers; and all that it needs."""
    dots = [op for op in loop.body.block.ops if isinstance(op, DotOp)]
    chain = AtomChain.LEADS if len(dots) > 1 else AtomChain.NONE
    chosen = {op: atoms.choose(dot.shape_of(op), dot.types_of(op), machine, chain) for op in dots}
    invariant: dict[SSAValue, int] = {}
    for op, layouts in chosen.items():
        for value, layout in ((op.a, layouts.a), (op.b, layouts.b)):
            if _is_outside(value, loop):
                invariant[value] = max(invariant.get(value, 0), _registers(layout, value))
    need = sum(invariant.values()) + _working_set(chosen)
    return sorted(invariant.items(), key=lambda item: -item[1]), need


def _working_set(chosen: dict[DotOp, DotLayouts]) -> int:
    """Registers of all accumulators, and of one k step's operands."""
    sums = sum(_registers(layouts.d, op.acc) for op, layouts in chosen.items())
    steps = [_registers(layouts.a_step, op.a) + _registers(layouts.b_step, op.b) for op, layouts in chosen.items()]
    return sums + max(steps, default=0)


def _registers(layout: LinearLayout, value: SSAValue) -> int:
    return ceil_div(layout.registers * bits_of(types.dtype_of(value.type).ir), 32)


def _is_outside(value: SSAValue, loop: ForOp) -> bool:
    """Whether a value comes from outside of the loop, and is more than a constant."""
    owner = value.owner
    if isinstance(owner, ops.ConstantOp | ops.SplatOp | LoadSharedOp):
        return False
    block: Block | None = owner if isinstance(owner, Block) else owner.parent
    while block is not None:
        if block is loop.body.block:
            return False
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return True


class _SharedBudget:
    """The shared memory of a function that is still free; a spilled value has one buffer in each block."""

    def __init__(self, function: FuncOp, limit: int) -> None:
        taken = [op.type for op in nested_ops(function) if isinstance(op, AllocSharedOp)]
        self.left = limit - sum(_buffer_bytes(type) * max(1, type.slots) for type in taken)
        self.views: dict[tuple[SSAValue, Block], SSAValue] = {}

    def store(self, value: SSAValue, loop: ForOp) -> bool:
        """Have the dots of a loop, and those behind it, read `value` from shared memory; False where that does not hold it."""
        block = loop.parent
        assert block is not None
        view = self.views.get((value, block))
        if view is None:
            type = _buffer(value)
            if _buffer_bytes(type) > self.left:
                return False
            self.left -= _buffer_bytes(type)
            alloc = AllocSharedOp(type)
            view = self.views[value, block] = alloc.results[0]
            view.name_hint = value.name_hint
            _before(loop, alloc)
            _before(loop, StoreSharedOp(view, value))
        for use in list(value.uses):
            if use.index < 2 and isinstance(use.operation, DotOp) and _follows(use.operation, loop):
                load = LoadSharedOp(view)
                load.results[0].name_hint = value.name_hint
                _before(use.operation, load)
                use.operation.operands[use.index] = load.results[0]
        return True


def _follows(op: Operation, loop: ForOp) -> bool:
    """Whether an op stands in a loop or behind it."""
    inner: Operation | None = op
    while inner is not None and inner.parent is not loop.parent:
        inner = inner.parent_op()
    while inner is not None and inner is not loop:
        inner = inner.prev_op
    return inner is not None


def _before(place: Operation, op: Operation) -> None:
    op.location = place.location
    assert place.parent is not None
    place.parent.insert_op_before(op, place)


def _buffer(value: SSAValue) -> SharedType:
    return shared(0, types.shape_of(value.type), types.element_of(value.type))


def _buffer_bytes(type: SharedType) -> int:
    total = bits_of(types.dtype_of(type.element).ir) // 8
    for extent in type.shape:
        total *= extent
    return total
