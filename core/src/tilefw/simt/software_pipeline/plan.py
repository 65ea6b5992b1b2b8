"""What a loop's pipeline is made of: which loads are issued early, how far, and whether into shared memory or registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.scf import ForOp, WhileOp
from xdsl.ir import Block, Operation

from tilefw.simt.assign.accesses import Accesses
from tilefw.simt.description import LaneMachine
from tilefw.simt.software_pipeline.address_slice import AddressSlice, Load, slice_of
from tilefw.simt.software_pipeline.alias import LoopWrites
from tilefw.simt.software_pipeline.copied import copied
from tilefw.simt.software_pipeline.invariants_to_shared import bytes_wanted
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.nested_ops import nested_ops

STAGES = "tile.num_stages"  # the author's wish for one loop, `tl.range(…, num_stages=n)`
# What a loop's carried tiles may take of a lane's registers where loads wait there too: narrow loads need an address an element.
# (128x128x32 blocks of f16 on 4 waves with 255 registers a lane carry half of them; two tiles more spilled.)
_CARRIED_SHARE = 0.5


@dataclass(frozen=True)
class Level:
    """Loads that are issued `distance` iterations early, and the slice that computes their operands.

    Level 0 holds what the loop's work reads; level n + 1 what the addresses of level n are computed from, one iteration earlier.
    """

    distance: int
    loads: tuple[Load, ...]
    slice: AddressSlice


class PrefetchStorage(Enum):
    """Where prefetched values wait: in rings of shared slots that asynchronous copies fill (COPIES); in registers until the
    iteration before theirs is over, and then in such a ring (STORES); or in registers all the time (REGISTERS)."""

    COPIES = auto()
    STORES = auto()
    REGISTERS = auto()


@dataclass(frozen=True)
class LoadChain:
    """The levels of some loads of a loop, which all wait in one kind of storage.

    A ring has one slot more than there are iterations ahead, so that the slot to fill is not the one being read. Where that
    is more shared memory than the chip has, or keeps another workgroup from running beside, a slot less will do (`compact`), for a
    second barrier: what fills it then follows the reads. The other workgroup hides what the copies then no longer do.
    """

    levels: tuple[Level, ...]
    storage: PrefetchStorage
    compact: bool = False

    @property
    def loads(self) -> tuple[Load, ...]:
        """The loads that the loop's work reads."""
        return self.levels[0].loads

    @property
    def distance(self) -> int:
        """How many iterations early they are issued."""
        return self.levels[0].distance

    @property
    def slots(self) -> int:
        """The slots of each ring."""
        return self.distance if self.compact else self.distance + 1


Plan = Sequence[LoadChain]


def stages_of(loop: ForOp, default: int) -> int:
    """The stages of a loop: its author's, or those of the launch."""
    wish = loop.attributes.get(STAGES)
    return wish.value.data if isinstance(wish, IntegerAttr) else default


def candidates(loop: ForOp) -> list[Load]:
    """The loads of an innermost loop that are worth issuing early: what dots read or, without any, what a marked loop reads."""
    body = loop.body.block
    if not types.is_int(loop.lb.type) or any(isinstance(op, ForOp | WhileOp) for op in nested_ops(loop)[1:]):
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
    """Tiles of whole bytes, which may be fetched at any time."""
    type = load.result.type
    if not types.is_tile(type) or types.is_pointer(type) or types.dtype_of(type).bits < 8:
        return False
    return not load.fetches_anew


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


def plan(loop: ForOp, stages: int, accesses: Accesses, disjoint: bool) -> Plan:
    """How to pipeline a loop: copies first; empty when nothing in it can be issued early."""
    if stages < 2:
        return ()
    writes = LoopWrites(nested_ops(loop), disjoint)
    loads = [load for load in candidates(loop) if _reaches(loop, load, writes, ())]
    ringed = copied(loads, accesses)
    chains: list[LoadChain] = []
    if ringed:
        distance, compact = _ring(loop, stages, _size(ringed, accesses), accesses.machine)
        chains.append(LoadChain(_levels(loop, ringed, distance), PrefetchStorage.COPIES, compact))
    through = stored([load for load in loads if load not in ringed], accesses)
    if through:
        # Further iterations ahead would have to wait in registers: a store is not in flight.
        compact = stages == 2 or 2 * _size(through, accesses) > accesses.machine.chip.shared_bytes
        chains.append(LoadChain(_levels(loop, through, 1), PrefetchStorage.STORES, compact))
    held, distance = _held([load for load in loads if load not in ringed and load not in through], accesses, loop)
    if held:
        chains.append(LoadChain(_levels(loop, held, distance), PrefetchStorage.REGISTERS))
    return chains


def _ring(loop: ForOp, stages: int, size: int, machine: LaneMachine) -> tuple[int, bool]:
    """(How many iterations early, whether with a slot less than that takes) for slots of `size` bytes: the wanted stages, or as
    many as there is room for, two at least. A slot is saved where it is needed, or makes room for a workgroup more."""
    room, others = machine.chip.shared_bytes, bytes_wanted(loop, machine)
    slots = max(2, min(stages, room // max(size, 1) + 1))
    more = machine.side_by_side((slots - 1) * size + others) > machine.side_by_side(slots * size + others)
    return slots - 1, slots * size > room or more


def _size(loads: Sequence[Load], accesses: Accesses) -> int:
    return sum(accesses.bytes(load.result.type) for load in loads)


def stored(loads: Sequence[Load], accesses: Accesses) -> list[Load]:
    """The loads that are stored to shared memory an iteration early on a chip without asynchronous copies, or without copies for
    these."""
    chip = accesses.machine.chip
    return matrices(loads, accesses) if chip.copies_consecutive or not chip.copy_bytes else []


def matrices(loads: Sequence[Load], accesses: Accesses) -> list[Load]:
    """The matrices among loads, which dots read from shared memory in any case; none where it does not hold them."""
    found = [load for load in loads if len(types.shape_of(load.result.type)) > 1]
    return found if _size(found, accesses) <= accesses.machine.chip.shared_bytes else []


def _levels(loop: ForOp, first: Sequence[Load], distance: int) -> tuple[Level, ...]:
    """The loads, those that their addresses are computed from, and so on."""
    levels: list[Level] = []
    loads = tuple(first)
    while loads:
        found = slice_of(loop, [operand for load in loads for operand in load.operands])
        assert found is not None
        levels.append(Level(distance + len(levels), loads, found))
        loads = found.loads
    return tuple(levels)


def _held(loads: Sequence[Load], accesses: Accesses, loop: ForOp) -> tuple[list[Load], int]:
    """Of loads that can wait in registers only, those that there is room for, and how many iterations early.

    One iteration hides the latency of a load; each further one would take all its registers again, and move them all each time.
    """
    room = _room(loop, accesses)
    if room is None or not loads:
        return list(loads), 1
    held: list[Load] = []
    used = 0
    for load in loads:
        size = max(1, accesses.bytes(load.result.type) // accesses.machine.threads)
        if used + size <= room:
            held.append(load)
            used += size
    return held, 1


def _room(loop: ForOp, accesses: Accesses) -> int | None:
    """The bytes of a lane in which loads may wait, half of what the loop's own tiles leave; None where the chip does not say."""
    machine = accesses.machine
    if not machine.chip.registers:
        return None
    tiles = [v.type for v in loop.iter_args if types.is_tile(v.type) and not types.is_pointer(v.type)]
    carried = sum(accesses.bytes(type) // machine.threads for type in tiles)
    return max(0, int(_CARRIED_SHARE * machine.chip.registers * 4) - carried) // 2


def _reaches(loop: ForOp, load: Load, writes: LoopWrites, above: tuple[Load, ...]) -> bool:
    """Whether a load may be issued early: its memory is not written in the loop, and its operands can be computed early.

    `above` are the loads whose addresses need it; a load that its own address needs (a list that is followed) cannot be early.
    """
    if load in above or load.volatile or writes.may_write(load.pointer if isinstance(load, ops.LoadOp) else load.base):
        return False
    found = slice_of(loop, load.operands)
    return found is not None and all(_reaches(loop, inner, writes, (*above, load)) for inner in found.loads)
