"""Loads of loops become blocks of whole arrays where a copy engine then fetches them for matrix units that run by themselves.

An engine is told of an array by the launch, and where a block of it begins by the kernel (`lower/bulk_copy.py`). A load through
a pointer that the loop moves on says neither: `walked_block.py` finds both. What the engine would not take stays as it is: for
lanes a mask costs more than an index that wraps around. All loads of a kernel's loops change, or none: barriers of an engine beside
groups of lanes' copies cost more than they save (of products of 128x128x32 in fp32, whose other operand lanes copy, 4 % of all
instructions; of causal attention where its second loop may begin before the keys, 2 %).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.passes import ModulePass

from tilefw.passes.dce import erase_dead
from tilefw.passes.integer_ranges import IntegerRanges
from tilefw.passes.rewriting import exchange, place_before
from tilefw.simt.description import CopyEngine, LaneMachine
from tilefw.simt.facts import LaneFacts
from tilefw.simt.lower.described_array import array_of, engine_of
from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.simt.software_pipeline.other_values import fills
from tilefw.simt.software_pipeline.plan import candidates, stages_of
from tilefw.simt.software_pipeline.unit_products import is_for_units
from tilefw.simt.software_pipeline.walked_block import walked_block
from tilefw.tile import types
from tilefw.tile.dialect.block_ops import LoadBlockOp
from tilefw.tile.dialect.kernel_info import is_argument
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.offset_arithmetic import offset_arithmetic


@dataclass(frozen=True)
class WholeArrays(ModulePass):
    """Rewrites the loads of loops that will be pipelined, at most `most_stages` iterations deep."""

    machine: LaneMachine
    num_stages: int
    most_stages: int | None = None
    name = "whole-arrays"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.machine.chip.copy_engine is None:
            return
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp)]:
            loops = [each for each in nested_ops(function) if isinstance(each, ForOp) and self._is_pipelined(each)]
            if loops:
                self._function(function, loops)

    def _is_pipelined(self, loop: ForOp) -> bool:
        stages = stages_of(loop, self.num_stages)
        return min(stages, self.most_stages or stages) > 1 and engine_of(self.machine, loop) is not None

    def _function(self, function: FuncOp, loops: list[ForOp]) -> None:
        offset_ops, ranges, engine = offset_arithmetic(function), IntegerRanges(function), engine_of(self.machine, loops[0])
        assert engine is not None
        blocks: dict[Load, LoadBlockOp | None] = {}
        for loop in loops:
            for load in [each for each in candidates(loop) if not _is_told(each)]:
                blocks[load] = walked_block(load, loop, offset_ops, ranges) if self._may_change(load, engine) else None
        found = {load: block for load, block in blocks.items() if block is not None}
        if found and len(found) == len(blocks):
            self._exchange(function, found, engine)

    def _exchange(self, function: FuncOp, blocks: dict[Load, LoadBlockOp], engine: CopyEngine) -> None:
        """Put blocks in the place of loads, if the engine takes them."""
        for load, block in blocks.items():
            place_before(block, load)
        facts = LaneFacts(function, self.machine)
        arrays = {load: array_of(function, facts, block, engine) for load, block in blocks.items()}
        changes = all(array is not None and is_for_units(load, array.order[0], self.machine) for load, array in arrays.items())
        for load, block in blocks.items():
            block.detach()
            if changes:
                exchange(load, block)
            else:
                block.erase()
        while erase_dead(function):
            pass

    def _may_change(self, load: Load, engine: CopyEngine) -> bool:
        """Whether a load can be of one copy of the engine's."""
        if fills(load):
            return False
        shape, size = types.shape_of(load.result.type), types.dtype_of(load.result.type).storage_bits // 8
        return len(shape) == 2 and max(shape) * size % engine.alignment == 0


def _is_told(load: Load) -> bool:
    """Whether a load is told from its array's beginning already."""
    return isinstance(load, LoadBlockOp) and is_argument(load.base)
