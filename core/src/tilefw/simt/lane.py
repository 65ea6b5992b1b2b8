"""The `lane` dialect: SSA on `vector<NxT>`, N distinct elements in each lane; a scalar is uniform in the workgroup.

Elementwise ops are the rows of the one table (`lane.addf`, …). The rest is here. Addresses are plain integers of the
chip's pointer width; control flow is scf's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from xdsl.dialects.builtin import StringAttr, VectorType
from xdsl.ir import Attribute, Dialect, OpTraits, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilefw.tile import ops, types
from tilefw.tile.base import PURE, TileOp, dense_i64, integer_attr
from tilefw.tile.elementwise import op_classes

ELEMENTWISE = op_classes("lane")


def vector(n: int, element: Attribute) -> Attribute:
    """`vector<n x element>`."""
    return types.with_element(_shape(n), element)


def _shape(n: int) -> VectorType[Any]:
    return VectorType(types.i1, [n])


class ConstantOp(ops.ConstantOp):
    """A number in every element: `lane.constant 0 : vector<4xf32>`."""

    name = "lane.constant"


class ConstantsOp(TileOp):
    """A vector of integer constants: `lane.constants [0, 32] : vector<2xi32>`."""

    name = "lane.constants"
    operand_count = 0
    property_names = frozenset({"values"})
    traits = PURE

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(self.properties["values"].get_values())  # type: ignore[attr-defined]

    def problem(self) -> str | None:
        return None if types.shape_of(self.result.type) == (len(self.values),) else "one value an element is needed"

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {list(self.values)} : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        values = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(":")
        return cls.create(result_types=[parser.parse_type()], properties={"values": dense_i64(tuple(values))})


class SplatOp(ops.SplatOp):
    """A scalar or `vector<1xT>` in every element."""

    name = "lane.splat"

    def shape_problem(self, source: tuple[int, ...], result: tuple[int, ...]) -> str | None:
        return None if source in ((), (1,)) and len(result) == 1 else "splats a scalar or vector<1xT> to a vector"


class ProgramIdOp(ops.ProgramIdOp):
    """The program's index along a grid axis."""

    name = "lane.program_id"


class NumProgramsOp(ops.NumProgramsOp):
    """The grid's size along an axis."""

    name = "lane.num_programs"


class GenericOp(TileOp):
    """Base of ops whose text is `name operands {properties} : (types) -> types`."""

    def print(self, printer: Printer) -> None:
        if self._operands:
            printer.print_string(" ")
            printer.print_list(self._operands, printer.print_operand)
        printer.print_op_attributes({**self.attributes, **self.properties})
        if self._operands or self.results:
            printer.print_string(" : ")
            printer.print_operation_type(self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        unresolved = []
        while (operand := parser.parse_optional_unresolved_operand()) is not None:
            unresolved.append(operand)
            if not parser.parse_optional_punctuation(","):
                break
        found = parser.parse_optional_attr_dict()
        operands: Sequence[SSAValue] = ()
        results: Sequence[Attribute] = ()
        if parser.parse_optional_punctuation(":"):
            type = parser.parse_function_type()
            operands = parser.resolve_operands(unresolved, type.inputs.data, position)
            results = type.outputs.data
        properties = {k: v for k, v in found.items() if k in cls.property_names}
        attributes = {k: v for k, v in found.items() if k not in cls.property_names}
        return cls.create(operands=operands, result_types=results, properties=properties, attributes=attributes)


class ThreadIdOp(GenericOp):
    """The thread's index within its workgroup, lane bits lowest: `vector<1xi32>`."""

    name = "lane.thread_id"
    operand_count = 0
    traits = PURE


class PickOp(GenericOp):
    """Element i of the result is element `indices[i]` of the source: register permutation, slice, repetition."""

    name = "lane.pick"
    operand_count = 1
    property_names = frozenset({"indices"})
    traits = PURE

    @property
    def indices(self) -> tuple[int, ...]:
        return tuple(self.properties["indices"].get_values())  # type: ignore[attr-defined]

    def problem(self) -> str | None:
        size = types.shape_of(self._operands[0].type)
        if len(size) != 1 or types.shape_of(self.result.type) != (len(self.indices),):
            return "picks elements of a vector, one an index"
        return None if all(0 <= i < size[0] for i in self.indices) else "an index is out of the source's range"


class JoinOp(GenericOp):
    """Vectors one after the other as one."""

    name = "lane.join"
    traits = PURE

    def problem(self) -> str | None:
        count = sum(types.shape_of(v.type)[0] for v in self._operands)
        return None if types.shape_of(self.result.type) == (count,) else "the result holds all operands' elements"


class MemoryOp(GenericOp):
    """Elements k·width … (k+1)·width - 1 are one access, at address[slots[k]] + immediates[k] bytes, contiguous in memory.

    Operands: address, value (stores), mask?, other? (loads). The mask has one i1 an access, or is one scalar; a
    masked-off access does not happen. `parts` names the operands that are there; `buffer` the kernel argument that
    the address comes from, -1 for unknown. Scalar loads read one uniform value.
    """

    property_names = frozenset({"parts", "width", "slots", "immediates", "buffer", "cache", "eviction", "volatile", "space"})

    def part(self, name: str) -> SSAValue | None:
        names = self.properties["parts"].data.split(",")  # type: ignore[attr-defined]
        return self._operands[names.index(name)] if name in names else None

    @property
    def width(self) -> int:
        return self.integer("width")

    @property
    def slots(self) -> tuple[int, ...]:
        return tuple(self.properties["slots"].get_values())  # type: ignore[attr-defined]

    @property
    def immediates(self) -> tuple[int, ...]:
        return tuple(self.properties["immediates"].get_values())  # type: ignore[attr-defined]

    @property
    def buffer(self) -> int:
        return self.integer("buffer")

    def word(self, name: str) -> str:
        attribute = self.properties.get(name)
        return attribute.data if isinstance(attribute, StringAttr) else ""

    @property
    def accessed(self) -> Attribute:
        """The type of the loaded or stored elements."""
        value = self.part("value")
        return self.results[0].type if value is None else value.type

    def problem(self) -> str | None:
        n = (types.shape_of(self.accessed) or (1,))[0]
        count = len(self.slots)
        if count * self.width != n or len(self.immediates) != count:
            return f"{count} accesses of {self.width} elements are not the {n} elements"
        mask = self.part("mask")
        if mask is not None and (types.shape_of(mask.type) or (1,))[0] not in (1, count):
            return f"the mask is {mask.type}, for {count} accesses"
        return None


def access_properties(
    parts: str, width: int, slots: Sequence[int], immediates: Sequence[int], buffer: int
) -> dict[str, Attribute]:
    """The properties that every access has."""
    return {
        "parts": StringAttr(parts), "width": integer_attr(width), "slots": dense_i64(tuple(slots)),
        "immediates": dense_i64(tuple(immediates)), "buffer": integer_attr(buffer),
    }


class LoadOp(MemoryOp):
    """Reads global memory; see MemoryOp."""

    name = "lane.load"
    traits = OpTraits(lambda: (MemoryReadEffect(),))


class StoreOp(MemoryOp):
    """Writes global memory; see MemoryOp."""

    name = "lane.store"
    result_count = 0
    traits = OpTraits(lambda: (MemoryWriteEffect(),))


class BarrierOp(GenericOp):
    """All threads of the workgroup arrive before any goes on; memory before it is seen after it, within the workgroup."""

    name = "lane.barrier"
    operand_count = 0
    result_count = 0
    traits = OpTraits(lambda: (MemoryReadEffect(), MemoryWriteEffect()))


OPS = (
    ConstantOp, ConstantsOp, SplatOp,
    ProgramIdOp, NumProgramsOp, ThreadIdOp, PickOp, JoinOp, LoadOp, StoreOp, BarrierOp,
    *ELEMENTWISE.values(),
)
Lane = Dialect("lane", list(OPS), [])
