"""Lane IR to machine code: the pass, and which part of selection takes which op.

Memory, barriers, atoms and control flow keep their order; everything else is selected when one of them asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ForOp, IfOp, WhileOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.api.errors import InternalError
from tilefw.copy_descriptors import CopyDescriptor
from tilefw.machine.function_attributes import FunctionAttributes
from tilefw.machine.function_op import FuncOp as MachineFuncOp
from tilefw.machine.inst import Function
from tilefw.simt import lane
from tilefw.simt.chip import LaneChip
from tilefw.simt.expand.base import check_rules
from tilefw.simt.lane.registers import LaneVector, RegisterPiece, bits_of, type_name
from tilefw.simt.lower.remarks import remarks_of
from tilefw.simt.lower.tile_to_lane import WORKGROUPS
from tilefw.simt.select import declared
from tilefw.simt.select.atomics import AtomicSelection
from tilefw.simt.select.bulk_copies import BulkCopySelection
from tilefw.simt.select.cluster import ClusterSelection
from tilefw.simt.select.code import Code
from tilefw.simt.select.control import ControlSelection
from tilefw.simt.select.counting_barriers import CountingBarrierSelection
from tilefw.simt.select.early import early_loads
from tilefw.simt.select.inline_asm import inline_asm
from tilefw.simt.select.matrix import MatrixSelection
from tilefw.simt.select.memory import MemorySelection
from tilefw.simt.select.parameters import parameters
from tilefw.simt.select.products import ProductSelection
from tilefw.simt.select.values import Values
from tilefw.simt.shared_memory.placement import shared_memory
from tilefw.tile import types
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.kernel_info import argument_attributes, hidden_of
from tilefw.tile.discarded import discard
from tilefw.tile.nested_ops import nested_ops


@dataclass(frozen=True)
class SelectInstructions(ModulePass):
    """Selects instructions of `chip` for every function."""

    name = "lane-to-machine"
    level: ClassVar[str] = "lane"
    chip: LaneChip
    target: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp)]:
            machine = select(function, self.chip, self.target)
            op.body.block.insert_op_before(MachineFuncOp.of(machine), function)
            discard(function)


def select(function: FuncOp, chip: LaneChip, target: str) -> Function:
    """The machine code of one lane function; raises PluginError (TFW0510) for a chip without the base set."""
    check_rules(chip.name, chip.rules)
    waves = function.attributes["lane.waves"].value.data  # type: ignore[attr-defined]
    workgroups = function.attributes[WORKGROUPS].value.data if WORKGROUPS in function.attributes else 1  # type: ignore[attr-defined]
    shared = shared_memory(function)
    attributes = FunctionAttributes(
        workgroup=(chip.lanes * waves // workgroups, 1, 1), workgroups=workgroups,
        parameters=parameters(function, chip.pointer_bits, chip.description.copy_engine),
        shared_bytes=shared.bytes, shared_align=shared.align, remarks=remarks_of(function),
        acquires=any(isinstance(op, lane.AtomicOp | lane.FenceOp) and op.acquires for op in nested_ops(function)),
    )
    machine = Function(function.sym_name.data, target, attributes)
    selector = Selector(machine, chip)
    selector.function(function)
    selector.code.finish()
    return machine


class Selector:
    """One function's selection: `values` on demand, the other parts in order."""

    def __init__(self, machine: Function, chip: LaneChip) -> None:
        self.chip = chip
        self.code = Code(machine, chip)
        self.values = Values(self.code, chip)
        self.cluster = ClusterSelection(self.code, chip)
        self.memory = MemorySelection(self.values, self.cluster)
        self.counting = CountingBarrierSelection(self.memory)
        self.atomics = AtomicSelection(self.memory)
        self.matrix = MatrixSelection(self.memory)
        self.products = ProductSelection(self.matrix)
        self.copies = BulkCopySelection(self.memory)
        self.control = ControlSelection(self.values)
        self._reads: list[Operation] = []  # of shared memory, not made yet

    def function(self, function: FuncOp) -> None:
        self.memory.early = early_loads(function.body.block)
        self.cluster.first_role = _first_role(function)
        self.chip.prologue(self.code)
        for i, argument in enumerate(function.body.block.args):
            name = f"i{self.chip.pointer_bits}" if types.is_pointer(argument.type) else type_name(argument.type)
            described = CopyDescriptor.of(hidden_of(argument_attributes(function, i))) is not None
            element = self.chip.descriptor(self.code, i) if described else self.chip.parameter(self.code, i, name)
            self.values.vectors[argument] = LaneVector(name, 1, [RegisterPiece(elements=[element])])
        self._meet()
        for op in function.body.block.ops:
            self.op(op)

    def _meet(self) -> None:
        """Where workgroups that make a program together begin or end, if they store to each other's memory."""
        if self.code.function.attributes.shared_bytes:
            self.cluster.meet()

    def branch(self, op: IfOp) -> None:
        """A branch; in one between roles barriers are for the consumers alone, as the producer has none."""
        roles = op.attributes.get(lane.ROLES)
        if isinstance(roles, IntegerAttr):
            self.cluster.participants = roles.value.data
        self.control.if_op(op, self.op)
        if roles is not None:
            self.cluster.participants = None

    def end(self) -> None:
        """The end of the program."""
        self._meet()
        declared.end(self.chip, self.code)

    def op(self, op: Operation) -> None:
        handler = _ORDERED.get(type(op))
        if handler is None:
            if type(op) not in _POSTPONED:
                raise InternalError(f"no selection for {op.name}")
            self.values.postpone(op)
        elif isinstance(op, lane.FragmentLoadOp) or (isinstance(op, lane.LoadOp) and op.shared):
            self._reads.append(op)
        else:
            if isinstance(op, lane.AtomOp):
                self._before_reads(op)
            self._make_reads()
            self._ordered(op)
        if op.next_op is not None and op.next_op.next_op is None:  # the terminator asks for values
            self._make_reads()

    def _ordered(self, op: Operation) -> None:
        self.code.insert_at(op)
        _ORDERED[type(op)](self, op)

    def _make_reads(self) -> None:
        """Reads of shared memory are put off to the next op that keeps order: pure ops are selected late, and what an atom reads
        for itself would hold registers meanwhile."""
        reads, self._reads = self._reads, []
        for read in reads:
            self._ordered(read)

    def _before_reads(self, atom: lane.AtomOp) -> None:
        """What the atom needs besides what is still to be read for it: work that ends before the reads begin."""
        if self._reads:
            for operand in atom.operands:
                if not self._is_read(operand):
                    self.values.force(_narrowed(operand))

    def _is_read(self, value: SSAValue) -> bool:
        """Whether a value depends on a read that is put off."""
        reads = {read.results[0] for read in self._reads}
        seen: set[SSAValue] = set()
        todo = [value]
        while todo:
            value = todo.pop()
            if value in reads:
                return True
            vector = self.values.vectors[value]
            if value not in seen and vector.op is not None and None in vector.pieces:
                seen.add(value)
                todo += vector.op.operands
        return False


def _first_role(function: FuncOp) -> int:
    """The threads whose role comes first, 0 where there are no roles."""
    roles = [op.attributes[lane.ROLES] for op in function.body.block.ops if lane.ROLES in op.attributes]
    return roles[0].value.data if roles and isinstance(roles[0], IntegerAttr) else 0


def _narrowed(operand: SSAValue) -> SSAValue:
    """All that was made narrower for the dot whose step this is an operand of: the wide elements end with that."""
    source = operand.owner.operands[0] if isinstance(operand.owner, lane.PickOp) else operand
    row = source.owner
    if not isinstance(row, ElementwiseOp) or not row.row.is_cast:
        return operand
    return source if bits_of(type_name(source.type)) < bits_of(type_name(row.operands[0].type)) else operand


# Looked up by class, as xDSL's classes have a slow isinstance.
_POSTPONED = frozenset({
    *lane.ELEMENTWISE.values(), lane.ConstantOp, lane.ConstantsOp, lane.SplatOp, lane.PickOp, lane.JoinOp, lane.ShuffleOp,
    lane.UniformOp, lane.AllocOp,
})
_ORDERED: dict[type, Callable[[Selector, Any], None]] = {
    lane.LoadOp: lambda s, op: s.memory.load(op),
    lane.StoreOp: lambda s, op: s.memory.store(op),
    lane.AtomicOp: lambda s, op: s.atomics.atomic(op),
    lane.FenceOp: lambda s, op: s.atomics.fence(op),
    lane.CopyAsyncOp: lambda s, op: s.memory.copy_async(op),
    lane.CommitOp: lambda s, op: s.chip.commit(s.code),
    lane.WaitOp: lambda s, op: s.chip.wait(s.code, op.pending),
    lane.BarrierOp: lambda s, op: s.cluster.barrier(),
    lane.TrapOp: lambda s, op: declared.act(s.chip, s.code, "traps", lambda: s.chip.trap(s.code)),
    lane.ObserveOp: lambda s, op: s.values.define(op.result, declared.observe(s.chip, s.code, op)),
    lane.InlineAsmOp: lambda s, op: inline_asm(s.values, op),
    lane.LeaveOp: lambda s, op: s.control.leave(op),
    lane.RegistersOp: lambda s, op: s.chip.deal_registers(s.code, op.count, op.more),
    lane.FragmentLoadOp: lambda s, op: s.matrix.fragment_load(op),
    lane.FragmentStoreOp: lambda s, op: s.matrix.fragment_store(op),
    lane.AtomOp: lambda s, op: s.matrix.atom(op),
    lane.AsyncAtomOp: lambda s, op: s.products.start(op),
    lane.AtomWaitOp: lambda s, op: s.products.wait(op),
    lane.BulkCopyOp: lambda s, op: s.copies.copy(op),
    lane.BulkStoreOp: lambda s, op: s.copies.store(op),
    lane.BulkStoreWaitOp: lambda s, op: s.copies.finish_stores(op),
    lane.FenceViewOp: lambda s, op: s.chip.fence_view(s.code, op.arrays),
    lane.ThreadIdOp: lambda s, op: s.values.define(op.result, s.cluster.thread_id()),
    lane.ProgramIdOp: lambda s, op: s.values.define(op.result, s.cluster.program_id(op.axis)),
    lane.NumProgramsOp: lambda s, op: s.values.define(op.result, s.cluster.num_programs(op.axis)),
    ForOp: lambda s, op: s.control.for_loop(op, s.op),
    lane.BeginBarriersOp: lambda s, op: s.counting.begin(op),
    lane.ShowBarriersOp: lambda s, op: s.counting.show(),
    lane.ArriveOp: lambda s, op: s.counting.arrive(op),
    lane.WaitPhaseOp: lambda s, op: s.counting.wait(op),
    IfOp: lambda s, op: s.branch(op),
    WhileOp: lambda s, op: s.control.while_loop(op, s.op),
    ReturnOp: lambda s, op: s.end(),
}
