"""Moves between the lanes of a wave that go through the LDS crossbar, and counters of lanes (CDNA3 ISA, chapter "Data share").

Permutes and swizzles touch no memory. Lanes that EXEC turns off give 0 to those that ask for theirs, and get nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tilefw_amd.isa.row import Chapter, Modifiers
from tilefw_amd.isa.rows.accesses import further

CHAPTER = Chapter()
row = CHAPTER.row

if TYPE_CHECKING:
    from tilefw.api.sim import Algebra, Value

SECTION = "Data share"
_LANE_BITS = 6
# Bits of ds_swizzle's offset, from the highest mode down (LLVM `SIDefines.h`, namespace Swizzle).
_FFT, _ROTATE, _QUAD = 0xE000, 0xC000, 0x8000


def _word(lanes: Algebra, value: int) -> Value:
    return lanes.const(value, 32)


def _of_lane(lanes: Algebra, data: Value, lane: Value) -> Value:
    """What `lane` (0 to 63) holds in `data`, or 0 where that lane is off."""
    low, high = lanes.active()
    half = lanes.select(lanes.compare(lane, _word(lanes, 32), "lt", False), low, high)
    on = lanes.truncate(lanes.shr(half, lanes.and_(lane, _word(lanes, 31)), False), 1)
    return lanes.select(on, lanes.read_lane(data, lane), _word(lanes, 0))


def _lane_of(lanes: Algebra, at: Value) -> Value:
    """The lane that a byte address means: a dword each, modulo the wave."""
    return lanes.and_(lanes.shr(at, _word(lanes, 2), False), _word(lanes, 63))


@row("ds_bpermute_b32 d:b32, [addr], a:b32", ds=0x3F, unit="lds", section=SECTION, facts="crossbar, no gds")
def ds_bpermute_b32(m: Modifiers) -> Any:
    """d = a of the lane (addr + offset) / 4 modulo 64; 0 if that lane is off."""
    return lambda lanes, at, a: _of_lane(lanes, a, _lane_of(lanes, at))


@row("ds_permute_b32 d:b32, [addr], a:b32", ds=0x3E, unit="lds", section=SECTION, facts="crossbar, no gds")
def ds_permute_b32(m: Modifiers) -> Any:
    """a goes to d of the lane (addr + offset) / 4 modulo 64. Of several senders the highest lane wins; without one d is 0."""

    def run(lanes: Algebra, at: Value, a: Value) -> Value:
        senders = _senders(lanes, _lane_of(lanes, at))
        highest = lanes.sub(_word(lanes, 63), lanes.leading_zeros(senders))
        some = lanes.compare(senders, lanes.const(0, 64), "ne", False)
        return lanes.select(some, lanes.read_lane(a, lanes.and_(highest, _word(lanes, 63))), _word(lanes, 0))

    return run


def _senders(lanes: Algebra, target: Value) -> Value:
    """The mask of the active lanes whose `target` is this lane: those that agree with its number in every bit."""
    own, found = lanes.lane_id(), lanes.join(lanes.active())
    for bit in range(_LANE_BITS):
        sent = lanes.join(lanes.ballot(_bit(lanes, target, bit)))
        found = lanes.and_(found, lanes.select(_bit(lanes, own, bit), sent, lanes.not_(sent)))
    return found


def _bit(lanes: Algebra, value: Value, bit: int) -> Value:
    return lanes.truncate(lanes.shr(value, _word(lanes, bit), False), 1)


@row("ds_swizzle_b32 d:b32, [addr]", ds=0x3D, unit="lds", section=SECTION, facts="crossbar, swizzle")
def ds_swizzle_b32(m: Modifiers) -> Any:
    """d = the operand of the lane that the offset's pattern makes of this lane's number: and, or, xor of its low five bits; one of
    its quad; a rotation; or the FFT's reversal of bits. 0 if that lane is off."""
    offset = m.offset
    mode = next((source for least, source in _SWIZZLES if offset >= least))
    return lambda lanes, a: _of_lane(lanes, a, mode(lanes, offset))


def _low_and_group(lanes: Algebra) -> tuple[Value, Value]:
    """The lane's number as (its low five bits, 0 or 32)."""
    lane = lanes.lane_id()
    return lanes.and_(lane, _word(lanes, 31)), lanes.and_(lane, _word(lanes, 32))


def _bit_mask(lanes: Algebra, offset: int) -> Value:
    low, group = _low_and_group(lanes)
    kept = lanes.or_(lanes.and_(low, _word(lanes, offset & 31)), _word(lanes, offset >> 5 & 31))
    return lanes.or_(lanes.xor(kept, _word(lanes, offset >> 10 & 31)), group)


def _quad(lanes: Algebra, offset: int) -> Value:
    lane = lanes.lane_id()
    place = lanes.shl(lanes.and_(lane, _word(lanes, 3)), _word(lanes, 1))
    chosen = lanes.and_(lanes.shr(_word(lanes, offset & 0xFF), place, False), _word(lanes, 3))
    return lanes.or_(lanes.and_(lane, _word(lanes, ~3)), chosen)


def _rotate(lanes: Algebra, offset: int) -> Value:
    low, group = _low_and_group(lanes)
    mask, distance = offset & 31, offset >> 5 & 31
    moved = lanes.add(low, _word(lanes, -distance if offset >> 10 & 1 else distance))
    rest = lanes.and_(moved, _word(lanes, ~mask & 31))
    return lanes.or_(lanes.or_(lanes.and_(low, _word(lanes, mask)), rest), group)


def _fft(lanes: Algebra, offset: int) -> Value:
    low, group = _low_and_group(lanes)
    mask = offset & 31
    reversed_low = lanes.shr(lanes.reverse_bits(low), _word(lanes, 27 + mask.bit_count()), False)
    return lanes.or_(lanes.or_(reversed_low, lanes.and_(low, _word(lanes, mask))), group)


# The least offset of each mode, highest first.
_SWIZZLES = ((_FFT, _fft), (_ROTATE, _rotate), (_QUAD, _quad), (0, _bit_mask))


# --- counters of lanes ----------------------------------------------------------------------------------------------------


def _count_lanes(sign: int, m: Modifiers) -> Any:
    """d = the dword at M0[15:0] + offset; once a wave, the number of active lanes is taken from it (consume) or added (append)."""

    def run(lanes: Algebra, m0: Value) -> Value:
        low, high = lanes.active()
        mask = lanes.join((low, high))
        count = lanes.add(lanes.popcount(low), lanes.popcount(high))
        first = lanes.sub(_word(lanes, 63), lanes.leading_zeros(lanes.and_(mask, lanes.neg(mask))))
        leads = lanes.compare(lanes.lane_id(), first, "eq", False)
        place = further(lanes, lanes.and_(m0, _word(lanes, 0xFFFF)), 32, m.offset)
        change = count if sign > 0 else lanes.neg(count)
        old = lanes.atomic("shared", place, "add", (change,), scope="workgroup", where=leads)
        return lanes.read_lane(old, first)

    return run


row("ds_consume d:u32, <m0", ds=0xBD, unit="lds", section=SECTION, facts="load, store")(partial(_count_lanes, -1))
row("ds_append d:u32, <m0", ds=0xBE, unit="lds", section=SECTION, facts="load, store")(partial(_count_lanes, 1))
