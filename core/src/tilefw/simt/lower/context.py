"""LoweringContext: what the lowering of one function to lanes knows; handlers and the kit's other parts receive it.

`builder` makes lane IR, `address` indices and addresses, `offsets` accesses from uniform bases (None for a chip without them);
`scalars` maps tile-level scalars to lane values, `tiles` pairs of a tile and a layout; `steps` reads an operand of a dot k step by
k step; `descriptors` are the hidden arguments that tell copy engines of arrays. `views` has each shared buffer or slot by its
tile-level value; `stores_in_loops` are the buffers from which an engine stores in loops. `offset_ops` are the tile ops
that compute offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilefw.simt import lane
from tilefw.simt.assign.assignment import Assignment
from tilefw.simt.assign.buffers import shared_layouts
from tilefw.simt.assign.shared_operands import alignments
from tilefw.simt.description import LaneMachine
from tilefw.simt.facts import LaneFacts
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.lower import exchange
from tilefw.simt.lower.access import Addressing
from tilefw.simt.lower.offsets import Offsets
from tilefw.tile import types
from tilefw.tile.dialect.base import integer_attr, string_attr
from tilefw.tile.offset_arithmetic import offset_arithmetic


@dataclass(frozen=True, slots=True)
class SharedView:
    """A buffer in shared memory, or a slot of a ring: its address (uniform i32), allocation, layout and ring position."""

    address: SSAValue
    buffer: int
    layout: SharedLayout
    slots: int = 0
    phase: int = 0


class LoweringContext:
    """The state of one function's lowering."""

    def __init__(self, function: FuncOp, machine: LaneMachine, analysed: LoweringContext | None = None) -> None:
        self.function = function
        self.machine = machine
        self.pointer: Attribute = types.i64 if machine.chip.pointer_bits == 64 else types.i32
        self.offset_ops = offset_arithmetic(function)
        if analysed is None:
            self.facts = LaneFacts(function, machine)
            self.assignment = Assignment(function, machine, self.facts)
            self.shared = shared_layouts(function, self.assignment, machine)
        else:
            self.facts, self.assignment, self.shared = analysed.facts, analysed.assignment, analysed.shared
        self.alignments = alignments(self.assignment.dots)
        self.waves = machine.waves
        self.scalars: dict[SSAValue, SSAValue] = {}
        self.tiles: dict[tuple[SSAValue, LinearLayout], SSAValue] = {}
        self.steps: dict[SSAValue, Callable[[int], SSAValue]] = {}
        self.views: dict[SSAValue, SharedView] = {}
        self.descriptors: dict[str, SSAValue] = {}
        self.stores_in_loops: dict[object, lane.AllocOp] = {}
        self._deals: dict[object, int] = {}
        self.entry = Block()  # of the function that is made
        self.builder = LaneBuilder(self.entry, function.location)
        self.address = Addressing(self.builder, self.scalars, self.facts, self.pointer, self.assignment.accesses)
        self.offsets = Offsets(self.address, machine) if machine.chip.offsets else None

    def anew(self) -> LoweringContext:
        """One of the same analyses, by which nothing is lowered yet."""
        return LoweringContext(self.function, self.machine, self)

    def leave(self, spare: int) -> None:
        """End the threads whose index has bits of `spare`, which are whole waves."""
        self.waves >>= spare.bit_count()
        self.address.spare = spare
        if spare:
            self.builder.insert(lane.LeaveOp.create(properties={"bits": integer_attr(spare)}))

    def element(self, type: Attribute) -> Attribute:
        """The lane-level element type: pointers are integers."""
        return self.pointer if types.is_pointer(type) else types.element_of(type)

    def lane_type(self, value: SSAValue, layout: LinearLayout | None) -> Attribute:
        """The type of a tile in a layout, or of a scalar."""
        element = self.element(value.type)
        return element if layout is None else lane.vector(layout.registers, element)

    def layouts(self, value: SSAValue) -> list[LinearLayout | None]:
        """The layouts that a value is computed in; a scalar's one is None."""
        return list(self.assignment.made.get(value, ())) if types.is_tile(value.type) else [None]

    def get(self, value: SSAValue, layout: LinearLayout | None) -> SSAValue:
        """The lane value of a tile in a layout, or of a scalar."""
        return self.tiles[value, layout] if layout is not None and types.is_tile(value.type) else self.scalars[value]

    def put(self, value: SSAValue, layout: LinearLayout | None, lowered: SSAValue) -> None:
        if layout is None:
            self.scalars[value] = lowered
        else:
            self.tiles[value, layout] = lowered

    def deal(self, layout: LinearLayout) -> int:
        """A number for the way in which a layout deals elements to waves: the first that is asked for has 0, and one wave all."""
        if self.waves == 1:
            return 0
        shape, within, waves = layout.deal
        stay = tuple(wave for i, wave in enumerate(waves) if not self.address.spare >> len(layout.lane) + i & 1)
        return self._deals.setdefault((shape, within, stay), len(self._deals))

    def repeated(self, layout: LinearLayout | None) -> bool:
        """Whether several waves have the elements of a layout, None for a scalar's."""
        if layout is None:
            return self.waves > 1
        return layout.copies & ~self.address.spare >= self.machine.lanes

    def convert(self, value: SSAValue) -> None:
        """Bring a tile that was just computed to the layouts that it is converted to."""
        for source, target in self.assignment.conversions.get(value, ()):
            plan = self.assignment.costs.plan(value, source, target)
            found = self.tiles[value, source]
            lowered = exchange.emit(self, found, plan, source, target)
            if lowered is not found and isinstance(lowered.owner, Operation):
                lowered.owner.attributes.setdefault("reason", string_attr(plan.reason))
            self.put(value, target, lowered)

    def descriptor(self, words: str) -> SSAValue:
        """A hidden argument of the function, by the words that tell the launch of it (`Parameter.hidden`)."""
        if words not in self.descriptors:
            block = self.entry
            found = block.insert_arg(types.pointer(types.i8), len(block.args))
            found.name_hint = f"descriptor{len(self.descriptors)}"
            self.descriptors[words] = found
        return self.descriptors[words]

    def numbered(self, cls: type[Operation], *details: int) -> SSAValue:
        """A pure lane op without operands, made once."""
        return self.builder.numbered((cls.name, *details), lambda: cls(*details))
