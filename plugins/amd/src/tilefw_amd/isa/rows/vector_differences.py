"""Sums of absolute differences and averages of bytes (CDNA3 ISA, "VOP3A": V_SAD_*, V_MSAD_*, V_QSAD_*, V_MQSAD_*, V_LERP_U8)."""

from __future__ import annotations

from functools import partial

from tilefw_amd.isa.row import Chapter, RowFacts

CHAPTER = Chapter()
row = CHAPTER.row

FACTS: RowFacts = {"unit": "valu", "section": "VOP3A"}
QUAD: RowFacts = {"unit": "valu64", "section": "VOP3A", "modifiers": "clamp"}


def _part(lanes, a, index, width):
    """Bits [index*width, +width) of a word."""
    moved = lanes.shr(a, lanes.const(index * width, 32), False) if index else a
    return lanes.and_(moved, lanes.const((1 << width) - 1, 32))


def _distance(lanes, a, b):
    return lanes.sub(lanes.max(a, b, False), lanes.min(a, b, False))


def _differences(lanes, a, b, width, masked=False):
    """The sum over the parts of a word; `masked` leaves out those where b is zero."""
    total = None
    for index in range(32 // width):
        x, y = _part(lanes, a, index, width), _part(lanes, b, index, width)
        difference = _distance(lanes, x, y)
        if masked:
            zero = lanes.const(0, 32)
            difference = lanes.select(lanes.compare(y, zero, "eq", False), zero, difference)
        total = difference if total is None else lanes.add(total, difference)
    return total


def _accumulate(lanes, total, c, clamp):
    return lanes.add_saturate(total, c, False) if clamp else lanes.add(total, c)


def _sum_of_differences(width, masked, m):
    """d = c + the sum of |a - b| over the parts of a word; clamp saturates."""
    return lambda lanes, a, b, c: _accumulate(lanes, _differences(lanes, a, b, width, masked), c, m.clamp)


for _name, _opcode, _width, _masked in (("sad_u8", 0x1D9, 8, False), ("sad_u16", 0x1DB, 16, False), ("msad_u8", 0x1E4, 8, True)):
    row(f"v_{_name} d:u32, a:u32, b:u32, c:u32", vop3=_opcode, modifiers="clamp", **FACTS)(
        partial(_sum_of_differences, _width, _masked)
    )


@row("v_sad_u32 d:u32, a:u32, b:u32, c:u32", vop3=0x1DC, modifiers="clamp", **FACTS)
def v_sad_u32(m):
    """d = c + |a - b|; clamp saturates."""
    return lambda lanes, a, b, c: _accumulate(lanes, _distance(lanes, a, b), c, m.clamp)


@row("v_sad_hi_u8 d:u32, a:u32, b:u32, c:u32", vop3=0x1DA, modifiers="clamp", **FACTS)
def v_sad_hi_u8(m):
    """d = c + 2**16 times the sum of |a - b| over the bytes; clamp saturates."""

    def meaning(lanes, a, b, c):
        total = lanes.shl(_differences(lanes, a, b, 8), lanes.const(16, 32))
        return _accumulate(lanes, total, c, m.clamp)

    return meaning


def _windows(lanes, a, b, masked):
    """The four sums for the words of a at bytes 0, 1, 2, 3."""
    words = (lanes.truncate(lanes.shr(a, lanes.const(8 * i, 32), False) if i else a, 32) for i in range(4))
    return [_differences(lanes, word, b, 8, masked) for word in words]


def _quad_of_halves(masked, m):
    """Four sums of |a - b| over bytes, of the words of a at bytes 0 to 3, each with a half of c added; clamp saturates each."""

    def meaning(lanes, a, b, c):
        totals = (lanes.truncate(total, 16) for total in _windows(lanes, a, b, masked))  # at most 4 * 255
        halves = zip(totals, lanes.split(c, 16), strict=True)
        return lanes.join([_accumulate(lanes, total, half, m.clamp) for total, half in halves])

    return meaning


row("v_qsad_pk_u16_u8 d:b64, a:b64, b:b32, c:b64", vop3=0x1E5, **QUAD)(partial(_quad_of_halves, False))
row("v_mqsad_pk_u16_u8 d:b64, a:b64, b:b32, c:b64", vop3=0x1E6, **QUAD)(partial(_quad_of_halves, True))


@row("v_mqsad_u32_u8 d:b128, a:b64, b:b32, c:b128=v", vop3=0x1E7, **QUAD)
def v_mqsad_u32_u8(m):
    """Four sums of |a - b| over bytes where b is not zero, of the words of a at bytes 0 to 3, each with a word of c added."""

    def meaning(lanes, a, b, c):
        words = zip(_windows(lanes, a, b, True), c, strict=True)
        return tuple(_accumulate(lanes, total, word, m.clamp) for total, word in words)

    return meaning


@row("v_lerp_u8 d:u32, a:u32, b:u32, c:u32", vop3=0x1CD, **FACTS)
def v_lerp_u8(m):
    """The average of each byte of a and b, rounded up where bit 0 of the byte of c is set."""

    def meaning(lanes, a, b, c):
        # Averages are taken without the bit that would be carried into the next byte: (a & b) + ((a ^ b) >> 1) rounds down.
        different = lanes.xor(a, b)
        halves = lanes.and_(lanes.shr(different, lanes.const(1, 32), False), lanes.const(0x7F7F7F7F, 32))
        up = lanes.and_(lanes.and_(different, c), lanes.const(0x01010101, 32))
        return lanes.add(lanes.add(lanes.and_(a, b), halves), up)

    return meaning
