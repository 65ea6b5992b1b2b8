"""What it costs to have a tile in a layout: computing it there, with all that it needs, or converting it from its encoding.

Costs are issue slots of a thread. An op's own cost is its registers times its weight; an operand that is already wanted in the
layout costs nothing more. What is never computed twice (dots, reductions, scans, gathers, atomics, carried values, volatile loads)
can only be converted.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.ir import Block, Operation, SSAValue

from tilefw.simt.assign.accesses import ACCESSES, Accesses
from tilefw.simt.assign.encodings import Encodings
from tilefw.simt.assign.transfer import operand_layouts, pull
from tilefw.simt.lane.registers import bits_of
from tilefw.simt.layout import LinearLayout, convert
from tilefw.simt.layout.convert import Plan
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.combine_op import CombineOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.gather_op import GatherOp
from tilefw.tile.dialect.inline_asm_op import InlineAsmOp
from tilefw.tile.dialect.shared_ops import LoadSharedOp
from tilefw.tile.dialect.structural_op import StructuralOp, index_map

_DEEP = 48  # of a slice; a longer one is never cheap
_REGISTER_BITS = 32
# Rows that are several instructions on every chip, by group of the elementwise table.
_HEAVY = ("math.", "float.div", "float.rem", "int.div", "int.rem")
_HEAVY_WEIGHT = 8.0


class Costs:
    """Costs of one function. `wanted` says which layouts of a value are asked for already."""

    def __init__(self, encodings: Encodings, accesses: Accesses, wanted: Callable[[SSAValue], list[LinearLayout]]) -> None:
        self.encodings = encodings
        self.accesses = accesses
        self.chip = encodings.machine.chip
        self._wanted = wanted
        self._known: dict[tuple[SSAValue, LinearLayout], float] = {}

    def plan(self, value: SSAValue, source: LinearLayout, target: LinearLayout) -> Plan:
        """How a tile is converted."""
        return convert.plan(source, target, element_bits(value, self.chip.pointer_bits), self.chip)

    def converted(self, value: SSAValue, source: LinearLayout, target: LinearLayout) -> float:
        """What a conversion costs; one through shared memory is not to be had where the chip has none."""
        plan = self.plan(value, source, target)
        if not isinstance(plan, convert.ThroughShared):
            return plan.cost
        # There an i1 is a byte: chosen and packed on one side, taken apart and compared on the other.
        bytes_of_bits = 2 * (source.registers + target.registers) if types.is_bool(types.element_of(value.type)) else 0
        return plan.cost + bytes_of_bits if self.chip.shared_bytes else math.inf

    def needs(self, op: Operation, layout: LinearLayout) -> list[tuple[SSAValue, LinearLayout]]:
        """The tiles that an op needs, each with its layout, to give its result in `layout`."""
        return self.accesses.needs(op, layout) if isinstance(op, ACCESSES) else operand_layouts(op, layout)

    def slice(self, op: Operation, layout: LinearLayout, depth: int = 0) -> float:
        """The cost of computing an op's result in a layout, with what it needs."""
        cost = self._own(op, layout)
        for operand, its in self.needs(op, layout):
            cost += self.operand(operand, its, depth + 1)
        return cost

    def operand(self, value: SSAValue, layout: LinearLayout, depth: int = 0) -> float:
        """The cost of having a value in a layout, as far as it is not wanted there anyway."""
        owner = value.owner
        if isinstance(owner, ops.ConstantOp | ops.SplatOp) or layout in self._wanted(value):
            return 0.0
        key = (value, layout)
        if key not in self._known:
            self._known[key] = self._operand(value, owner, layout, depth)
        return self._known[key]

    def _operand(self, value: SSAValue, owner: Operation | Block, layout: LinearLayout, depth: int) -> float:
        if isinstance(owner, Block) or (owner.regions and not isinstance(owner, CombineOp)):
            encoding = self.encodings.of(value)
            return 0.0 if layout == encoding else self.converted(value, encoding, layout)
        encoding = self.encodings.natural(owner)
        if fixed(owner):
            return 0.0 if layout == encoding else self.converted(value, encoding, layout)
        shared = value.has_more_than_one_use()
        if layout == encoding:
            return 0.0 if shared or depth > _DEEP else self.slice(owner, encoding, depth)
        conversion = self.converted(value, encoding, layout)
        if depth > _DEEP:
            return conversion
        first = 0.0 if shared else self.slice(owner, encoding, depth)
        return min(self.slice(owner, layout, depth), first + conversion)

    def _own(self, op: Operation, layout: LinearLayout) -> float:
        if isinstance(op, ops.LoadOp | ops.LoadBlockOp):
            return self.accesses.cost(op, layout)
        if isinstance(op, LoadSharedOp):
            return layout.registers * element_bits(op.results[0], self.chip.pointer_bits) / _REGISTER_BITS
        if isinstance(op, StructuralOp):
            return self._exchange(op, layout)
        if isinstance(op, ElementwiseOp):
            return layout.registers * (_HEAVY_WEIGHT if op.row.group.startswith(_HEAVY) else 1.0)
        return float(layout.registers) if isinstance(op, ops.AddPtrOp | ops.IotaOp) else 0.0

    def _exchange(self, op: StructuralOp, layout: LinearLayout) -> float:
        """What moving elements costs: nothing but picked registers, unless the constant of the map asks for an exchange."""
        moved, pulled = index_map(op), pull(op, layout)
        if moved is None or pulled is None or not moved.constant:
            return 0.0
        bits = element_bits(op.results[0], self.chip.pointer_bits)
        return convert.plan(pulled[0], pulled[0], bits, self.chip, moved.constant).cost


def fixed(op: Operation) -> bool:
    """Whether the op's results stand in one layout only, and are converted from it."""
    once = isinstance(op, DotOp | CombineOp | AtomicOp | GatherOp | InlineAsmOp)
    return once or (isinstance(op, ops.LoadOp | ops.LoadBlockOp) and op.volatile)


def element_bits(value: SSAValue, pointer_bits: int) -> int:
    """The bits that an element of a tile takes in registers."""
    element = types.element_of(value.type)
    return pointer_bits if types.is_pointer(element) else bits_of(types.dtype_of(element).ir)
