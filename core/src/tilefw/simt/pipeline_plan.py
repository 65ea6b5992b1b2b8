"""What a loop's pipeline is made of: which loads are issued early, how far, and whether into shared memory or registers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.scf import ForOp, WhileOp
from xdsl.ir import Block, Operation, SSAValue

from tilefw.simt.accesses import Accesses
from tilefw.simt.pipeline_alias import LoopWrites
from tilefw.simt.pipeline_slice import Load, Slice, slice_of
from tilefw.tile import ops, types
from tilefw.tile.dot_op import DotOp
from tilefw.tile.fold import constant_of

Way = Literal["ring", "registers"]
STAGES = "tile.num_stages"  # the author's wish for one loop, `tl.range(…, num_stages=n)`
_NARROWEST = 4  # bytes of an access below which a copy is no gain: no chip copies less, and a load can be of any width
_UNCACHED = ".cv"  # fetch anew on each access: as good as volatile


@dataclass(frozen=True)
class Level:
    """Loads that are issued `distance` iterations early, and the slice that computes their operands.

    Level 0 holds what the loop's work reads; level n + 1 what the addresses of level n are computed from, one iteration earlier.
    """

    distance: int
    loads: tuple[Load, ...]
    slice: Slice


@dataclass(frozen=True)
class Plan:
    """The levels of one loop, for each load of level 0 its way, and the slots of each ring.

    A ring has one slot more than there are iterations ahead, so that the slot to fill is not the one being read. Where that
    is more shared memory than the chip has, a slot less will do (`compact`), for a second barrier: copies then follow the reads.
    """

    levels: tuple[Level, ...]
    ways: dict[Load, Way]
    compact: bool

    @property
    def distance(self) -> int:
        """How many iterations early the loop's own loads are issued."""
        return self.levels[0].distance

    @property
    def slots(self) -> int:
        """The slots of each ring."""
        return self.distance if self.compact else self.distance + 1

    @property
    def ringed(self) -> list[Load]:
        """The loads that become copies into rings."""
        return [load for load in self.levels[0].loads if self.ways[load] == "ring"]


def stages_of(loop: ForOp, default: int) -> int:
    """The stages of a loop: its author's, or those of the launch."""
    wish = loop.attributes.get(STAGES)
    return wish.value.data if isinstance(wish, IntegerAttr) else default


def candidates(loop: ForOp) -> list[Load]:
    """The loads of an innermost loop that are worth issuing early: what dots read or, without any, what a marked loop reads."""
    body = loop.body.block
    if any(isinstance(op, ForOp | WhileOp) for op in body.walk()):
        return []
    dots = [op for op in body.ops if isinstance(op, DotOp)]
    if not dots and STAGES not in loop.attributes:
        return []
    found = [op for op in body.ops if isinstance(op, Load) and _may_move(op)]
    if not dots or not found:
        return found
    feeding = _feeding(dots, body)
    return [load for load in found if load in feeding]


def _may_move(load: Load) -> bool:
    element = types.element_of(load.result.type)
    plain = types.is_tile(load.result.type) and (types.is_int(element) or types.is_float(element))
    return plain and not load.volatile and load.cache != _UNCACHED


def _feeding(dots: list[DotOp], body: Block) -> set[Operation]:
    """The ops of the body whose results reach a dot in the same iteration, loads being where the search ends."""
    seen: set[Operation] = set()
    pending: list[Operation] = list(dots)
    while pending:
        for operand in pending.pop().operands:
            op = operand.owner
            if isinstance(op, Operation) and op.parent is body and op not in seen:
                seen.add(op)
                if not isinstance(op, Load):
                    pending.append(op)
    return seen


def plan(loop: ForOp, stages: int, accesses: Accesses, disjoint: bool) -> Plan | None:
    """How to pipeline a loop; None when nothing in it can be issued early."""
    if stages < 2:
        return None
    writes = LoopWrites(loop, disjoint)
    levels: list[Level] = []
    loads = tuple(load for load in candidates(loop) if _reaches(loop, load, writes, ()))
    while loads:
        found = slice_of(loop, [operand for load in loads for operand in load.operands])
        assert found is not None
        levels.append(Level(stages - 1 + len(levels), loads, found))
        loads = found.loads
    if not levels:
        return None
    ways = {load: _way(load, accesses) for load in levels[0].loads}
    slot = sum(accesses.bytes(load.result.type) for load, way in ways.items() if way == "ring")
    return Plan(tuple(levels), ways, compact=slot * stages > accesses.machine.chip.shared_bytes)


def _reaches(loop: ForOp, load: Load, writes: LoopWrites, above: tuple[Load, ...]) -> bool:
    """Whether a load may be issued early: its memory is not written in the loop, and its operands can be computed early.

    `above` are the loads whose addresses need it; a load that its own address needs (a list that is followed) cannot be early.
    """
    if load in above or load.volatile or writes.may_touch(load.pointer if isinstance(load, ops.LoadOp) else load.base):
        return False
    found = slice_of(loop, load.operands)
    return found is not None and all(_reaches(loop, inner, writes, (*above, load)) for inner in found.loads)


def _way(load: Load, accesses: Accesses) -> Way:
    """Copies fill with zeros and have their sizes; whatever is not of that form waits in registers."""
    chip = accesses.machine.chip
    if not chip.copy_bytes or not (load.other is None or _is_zero(load.other)):
        return "registers"
    width = accesses.best_width(load, accesses.coalesced(load))
    size = types.dtype_of(load.result.type).storage_bits // 8
    return "ring" if width * size >= max(_NARROWEST, min(chip.copy_bytes)) else "registers"


def _is_zero(value: SSAValue) -> bool:
    literal = constant_of(value)
    return literal is not None and literal == 0 and math.copysign(1, literal) > 0
