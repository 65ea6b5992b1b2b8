"""A lane function that is one dot: operands loaded in the dot's layouts, multiplied, the result stored; for tests of any chip."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from xdsl.dialects.builtin import StringAttr, UnknownLoc
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from tilefw.api.dtypes import DTYPES
from tilefw.simt import lane
from tilefw.simt.description import LaneMachine
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.atoms import DotLayouts
from tilefw.simt.lower import dot
from tilefw.simt.lower.access import Addressing
from tilefw.tile import types
from tilefw.tile.dialect.base import integer_attr

_ELEMENTS = {d.ir: types.ir_type(d) for d in DTYPES.values()}


def dot_kernel(layouts: DotLayouts, machine: LaneMachine, by_step: bool) -> FuncOp:
    """`k(a, b, c, d)`: *d = *a · *b + *c, all row-major. `by_step` loads the operands k step by k step."""
    return _Kernel(layouts, machine).function(by_step)


class _Kernel:
    def __init__(self, layouts: DotLayouts, machine: LaneMachine) -> None:
        self.layouts = layouts
        self.machine = machine
        names = (layouts.types.a, layouts.types.b, layouts.types.acc, layouts.types.acc)
        self.elements = [_ELEMENTS[name] for name in names]
        self.block = Block(arg_types=[types.pointer(element) for element in self.elements])
        self.builder = LaneBuilder(self.block, UnknownLoc())
        self.address = Addressing(self.builder, {}, None, types.i64, None)  # type: ignore[arg-type]
        self.bases = [self.builder.op("ptr_to_int", a, result=types.i64) for a in self.block.args]

    def function(self, by_step: bool) -> FuncOp:
        dealt = self.layouts
        a: dot.Operand
        b: dot.Operand
        if by_step:
            a = lambda step: self.load(0, dealt.a_step, dealt.a_offset(step))  # noqa: E731
            b = lambda step: self.load(1, dealt.b_step, dealt.b_offset(step))  # noqa: E731
        else:
            a, b = self.load(0, dealt.a), self.load(1, dealt.b)
        context: Any = SimpleNamespace(builder=self.builder, address=self.address, machine=self.machine)
        self.store(dot.lower(context, a, b, self.load(2, dealt.d), dealt))
        self.builder.insert(ReturnOp())
        attributes = {"lane.lanes": integer_attr(self.machine.lanes), "lane.waves": integer_attr(self.machine.waves)}
        function = FuncOp("k", ([a.type for a in self.block.args], []), Region(self.block))
        function.attributes.update(attributes)
        function.verify()
        return function

    def element_addresses(self, argument: int, layout: LinearLayout, flip: int = 0) -> SSAValue:
        """The address of each register's element."""
        index = self.address.index(layout)
        index = self.builder.op("xori", index, self.builder.constant(flip, index.type))
        size = types.dtype_of(self.elements[argument]).storage_bits // 8
        return self.builder.op("addi", self.builder.splat(self.bases[argument], layout.registers), self.address.scaled(index, size))

    def load(self, argument: int, layout: LinearLayout, flip: int = 0) -> SSAValue:
        n = layout.registers
        properties = lane.access_properties("address", 1, range(n), [0] * n, argument)
        operands, results = [self.element_addresses(argument, layout, flip)], [lane.vector(n, self.elements[argument])]
        return self.builder.insert(lane.LoadOp.create(operands=operands, result_types=results, properties=properties)).results[0]

    def store(self, value: SSAValue) -> None:
        n = self.layouts.d.registers
        operands = [self.element_addresses(3, self.layouts.d), value]
        properties: dict[str, Attribute] = lane.access_properties("address,value", 1, range(n), [0] * n, 3)
        mask = self.address.only_copy(self.layouts.d)
        if mask is not None:
            operands.append(mask)
            properties["parts"] = StringAttr("address,value,mask")
        self.builder.insert(lane.StoreOp.create(operands=operands, properties=properties))
