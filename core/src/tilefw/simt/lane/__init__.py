"""The `lane` dialect: SSA on `vector<NxT>`, N distinct elements in each lane; a scalar is uniform in the workgroup.

Elementwise ops are the rows of the one table (`lane.addf`, …). Here are values and ids; memory and a wave's ops have files of
their own. Addresses are plain integers, global ones of the chip's pointer width; control flow is scf's.
"""

from __future__ import annotations

from typing import Self

from xdsl.ir import Dialect
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilefw.simt.lane.asynchronous import ASYNCHRONOUS_OPS, AsyncAtomOp, AtomWaitOp, FenceViewOp
from tilefw.simt.lane.atomics import CAS, MULTICAST_KINDS, MULTICAST_LOADS, AtomicOp, FenceOp
from tilefw.simt.lane.base import GenericOp, vector
from tilefw.simt.lane.bulk_copies import BULK_COPY_OPS, BulkCopyOp, BulkStoreOp, BulkStoreWaitOp
from tilefw.simt.lane.counting_barriers import (
    COUNTING_BARRIER_OPS,
    ArriveOp,
    BarrierUseOp,
    BeginBarriersOp,
    ShowBarriersOp,
    WaitPhaseOp,
)
from tilefw.simt.lane.inline_asm import InlineAsmOp
from tilefw.simt.lane.memory import (
    MEMORY_OPS,
    SHARED,
    AllocOp,
    BarrierOp,
    CommitOp,
    CopyAsyncOp,
    FragmentLoadOp,
    FragmentStoreOp,
    HandOverOp,
    LoadOp,
    MemoryOp,
    StoreOp,
    TrapOp,
    WaitOp,
    access_properties,
    shared_properties,
)
from tilefw.simt.lane.wave import ROLES, SHUFFLES, WAVE_OPS, AtomOp, LeaveOp, RegistersOp, ShuffleOp, UniformOp
from tilefw.tile import types
from tilefw.tile.dialect import observe_op as tile_observe
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.base import PURE, TileOp, dense_i64
from tilefw.tile.dialect.elementwise_op import op_classes

__all__ = [
    "CAS", "ELEMENTWISE", "MULTICAST_KINDS", "MULTICAST_LOADS", "ROLES", "SHARED", "SHUFFLES", "AllocOp", "ArriveOp", "AsyncAtomOp",
    "AtomOp", "AtomWaitOp", "AtomicOp",
    "BarrierOp", "BarrierUseOp", "BeginBarriersOp", "BulkCopyOp", "BulkStoreOp", "BulkStoreWaitOp", "CommitOp", "ConstantOp",
    "ConstantsOp", "CopyAsyncOp", "FenceOp", "FenceViewOp", "FragmentLoadOp", "FragmentStoreOp", "GenericOp", "HandOverOp",
    "InlineAsmOp", "JoinOp", "Lane", "LeaveOp", "LoadOp", "MemoryOp", "NumProgramsOp", "ObserveOp", "PickOp", "ProgramIdOp",
    "RegistersOp", "ShowBarriersOp", "ShuffleOp", "SplatOp", "StoreOp", "ThreadIdOp", "TrapOp", "UniformOp", "WaitOp",
    "WaitPhaseOp", "access_properties", "shared_properties", "vector",
]

ELEMENTWISE = op_classes("lane")


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
        return self.integers("values")

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


class ObserveOp(tile_observe.ObserveOp):
    """What the machine knows, as each thread reads it: readings of the time differ from thread to thread."""

    name = "lane.observe"


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
        return self.integers("indices")

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


OPS = (
    ConstantOp, ConstantsOp, SplatOp, ProgramIdOp, NumProgramsOp, ThreadIdOp, ObserveOp, PickOp, JoinOp,
    *MEMORY_OPS, *COUNTING_BARRIER_OPS, *BULK_COPY_OPS, AtomicOp, FenceOp, InlineAsmOp, *WAVE_OPS, *ASYNCHRONOUS_OPS,
    *ELEMENTWISE.values(),
)
Lane = Dialect("lane", list(OPS), [])
