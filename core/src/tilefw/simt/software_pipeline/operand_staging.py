"""Operands of dots that no pipeline loads early go through shared memory in a buffer of their own, like those that one does.

The buffer has the layout in which both sides are wide and free of bank conflicts, the load the one that suits it, and the dot reads
one k step at a time; a conversion between the layouts of load and dot would have none of that. The loads of a dot are all issued
before the first of them is waited for. Where shared memory rather than registers would then say how many workgroups run side by
side, the factors share the same bytes one after the other: one is read whole before the other is stored.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from xdsl.dialects.scf import ForOp
from xdsl.ir import SSAValue

from tilefw.simt.description import LaneMachine
from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.simt.software_pipeline.emitter import Emitter
from tilefw.simt.software_pipeline.invariants_to_shared import SHARE
from tilefw.tile import types
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.shared_ops import AllocSharedOp, LoadSharedOp, StoreSharedOp, shared


def operands_of(loop: ForOp, loads: Collection[Load]) -> list[Load]:
    """Those of `loads` that nobody but one dot of the loop's body reads, as a factor."""
    return [load for load in loads if _factor_of(load, loop) is not None]


def stage(loop: ForOp, loads: Collection[Load], machine: LaneMachine) -> None:
    """Put these loads of the loop, operands of its dots, into shared memory right before the dot, which reads them from there."""
    outside = Emitter(loop)
    for dot in [op for op in loop.body.block.ops if isinstance(op, DotOp)]:
        place = Emitter(dot, outside)
        mine = sorted((load for load in loads if _factor_of(load, loop) is dot), key=_load_bytes)
        if len(mine) > 1 and _crowds(dot, mine, machine):
            for load in mine:
                _read_from_shared(load, _stored(load, place), dot, place)
            continue
        for load, view in [(load, _stored(load, place)) for load in mine]:
            _read_from_shared(load, view, dot, place)


def _crowds(dot: DotOp, loads: Sequence[Load], machine: LaneMachine) -> bool:
    """Whether fewer workgroups have room in shared memory, side by side, than in the registers."""
    chip, total = machine.chip, sum(map(_load_bytes, loads))
    sums = types.dtype_of(dot.acc.type).storage_bits // 8 * math.prod(types.shape_of(dot.acc.type))
    registers = (sums + total) // 4 / SHARE
    return chip.shared_bytes // total < min(chip.processor_registers // registers, chip.processor_threads // machine.threads)


def _factor_of(load: Load, loop: ForOp) -> DotOp | None:
    uses = list(load.result.uses)
    alone = len(uses) == 1 and uses[0].index < 2 and uses[0].operation.parent is loop.body.block
    user = uses[0].operation if alone else None
    return user if isinstance(user, DotOp) else None


def _stored(load: Load, place: Emitter) -> SSAValue:
    """The buffer that a load's value is stored to."""
    type = load.result.type
    buffer = place.insert(AllocSharedOp(shared(0, types.shape_of(type), types.element_of(type)))).results[0]
    buffer.name_hint = load.result.name_hint
    place.insert(StoreSharedOp(buffer, load.result))
    return buffer


def _read_from_shared(load: Load, buffer: SSAValue, dot: DotOp, place: Emitter) -> None:
    """Have the dot read from a buffer what it read from a load."""
    read = place.insert(LoadSharedOp(buffer)).results[0]
    read.name_hint = load.result.name_hint
    dot.operands = [read if operand is load.result else operand for operand in dot.operands]


def _load_bytes(load: Load) -> int:
    return types.dtype_of(load.result.type).storage_bits // 8 * math.prod(types.shape_of(load.result.type))
