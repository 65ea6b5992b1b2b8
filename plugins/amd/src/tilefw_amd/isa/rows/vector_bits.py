"""Logic, shifts, fields, counts and permutations of bits and bytes (CDNA3 ISA, "VOP1", "VOP2", "VOP3A")."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tilefw_amd.isa.row import Chapter, Opcodes, RowFacts
from tilefw_amd.isa.rows.precision import refuse
from tilefw_amd.isa.rows.scalar import said

CHAPTER = Chapter()
row = CHAPTER.row

VOP1: RowFacts = {"unit": "valu", "section": "VOP1"}
VOP2: RowFacts = {"unit": "valu", "section": "VOP2"}
VOP3: RowFacts = {"unit": "valu", "section": "VOP3A"}
WIDE: RowFacts = {"unit": "valu64", "section": "VOP3A"}


def _low(lanes, a, bits):
    """The low bits of a word: how instructions take amounts of shifts and widths of fields."""
    return lanes.and_(a, lanes.const((1 << bits) - 1, 32))


# --- logic ------------------------------------------------------------------------------------------------------------

_TERNARY = "d:b32, a:b32, b:b32, c:b32"
_LOGIC: tuple[tuple[str, Opcodes, str, Callable[..., Any]], ...] = (
    ("v_not_b32 d:b32, a:b32", {"vop1": 43}, "~a", lambda lanes, a: lanes.not_(a)),
    ("v_and_b32 d:b32, a:b32, b:b32", {"vop2": 19}, "a & b", lambda lanes, a, b: lanes.and_(a, b)),
    ("v_or_b32 d:b32, a:b32, b:b32", {"vop2": 20}, "a | b", lambda lanes, a, b: lanes.or_(a, b)),
    ("v_xor_b32 d:b32, a:b32, b:b32", {"vop2": 21}, "a ^ b", lambda lanes, a, b: lanes.xor(a, b)),
    ("v_xnor_b32 d:b32, a:b32, b:b32", {"vop2": 61}, "~(a ^ b)", lambda lanes, a, b: lanes.not_(lanes.xor(a, b))),
    (f"v_and_or_b32 {_TERNARY}", {"vop3": 0x201}, "(a & b) | c", lambda lanes, a, b, c: lanes.or_(lanes.and_(a, b), c)),
    (f"v_or3_b32 {_TERNARY}", {"vop3": 0x202}, "a | b | c", lambda lanes, a, b, c: lanes.or_(lanes.or_(a, b), c)),
    # 0xCA: a chooses between b and c (see `lookup3`).
    (f"v_bfi_b32 {_TERNARY}", {"vop3": 0x1CA}, "bits of b where a is set, else of c",
     lambda lanes, a, b, c: lanes.lookup3(a, b, c, 0xCA)),
    (f"v_xad_u32 {_TERNARY.replace('b32', 'u32')}", {"vop3": 0x1F3}, "(a ^ b) + c",
     lambda lanes, a, b, c: lanes.add(lanes.xor(a, b), c)),
)


def _truth_table(bits, m):
    """Bit by bit the bit 4*a + 2*b + c of the table `bitop3`."""
    table = m.bitop3
    if bits == 32:
        return lambda lanes, a, b, c: lanes.lookup3(a, b, c, table)

    def meaning(lanes, *sources):
        return lanes.truncate(lanes.lookup3(*(lanes.zero_extend(source, 32) for source in sources), table), 16)

    return meaning


row(f"v_bitop3_b32 {_TERNARY}", vop3=0x234, since=4, modifiers="bitop3", **VOP3)(partial(_truth_table, 32))
row(f"v_bitop3_b16 {_TERNARY.replace('b32', 'b16')}", vop3=0x233, since=4, modifiers="bitop3 op_sel", facts="keeps half", **VOP3)(
    partial(_truth_table, 16)
)


def next_random(lanes, a):
    """The next number of a linear feedback register: a << 1, xor 0xC5 where the bit that leaves is set."""
    left = lanes.compare(a, lanes.const(0, 32), "lt", True)
    moved = lanes.shl(a, lanes.const(1, 32))
    return lanes.select(left, lanes.xor(moved, lanes.const(0xC5, 32)), moved)


@row("v_prng_b32 d:b32, a:b32", vop1=88, since=4, **VOP1)
def v_prng_b32(m):
    """d = the number that follows a in a linear feedback register."""
    return next_random


for _pattern, _opcodes, _formula, _meaning in _LOGIC:
    row(_pattern, **_opcodes, **(VOP1 if "vop1" in _opcodes else VOP2 if "vop2" in _opcodes else VOP3))(
        said(f"d = {_formula}.", _meaning)
    )


# --- shifts -----------------------------------------------------------------------------------------------------------


def _shift_left(amount_bits, m):
    """d = b << a; only the low bits of a that count places of the width are looked at."""
    return lambda lanes, a, b: lanes.shl(b, _low(lanes, a, amount_bits))


def _shift_right(signed, amount_bits, m):
    """d = b >> a, filled with the sign for i types; only the low bits of a that count places of the width are looked at."""
    return lambda lanes, a, b: lanes.shr(b, _low(lanes, a, amount_bits), signed)


def _of_half(shift):
    """The shift of 16 bits, whose amount is an operand of 16 bits too."""

    def build(m):
        meaning = shift(m)
        return lambda lanes, a, b: meaning(lanes, lanes.zero_extend(a, 32), b)

    build.__doc__ = shift.func.__doc__
    return build


_LEFT, _LOGICAL, _ARITHMETIC = _shift_left, partial(_shift_right, False), partial(_shift_right, True)
row("v_lshlrev_b32 d:b32, a:u32, b:b32", vop2=18, **VOP2)(partial(_LEFT, 5))
row("v_lshrrev_b32 d:b32, a:u32, b:b32", vop2=16, **VOP2)(partial(_LOGICAL, 5))
row("v_ashrrev_i32 d:i32, a:u32, b:i32", vop2=17, **VOP2)(partial(_ARITHMETIC, 5))
row("v_lshlrev_b16 d:b16, a:u16, b:b16", vop2=42, **VOP2)(_of_half(partial(_LEFT, 4)))
row("v_lshrrev_b16 d:b16, a:u16, b:b16", vop2=43, **VOP2)(_of_half(partial(_shift_right, False, 4)))
row("v_ashrrev_i16 d:i16, a:u16, b:i16", vop2=44, **VOP2)(_of_half(partial(_shift_right, True, 4)))
row("v_lshlrev_b64 d:b64, a:u32, b:b64", vop3=0x28F, **WIDE)(partial(_LEFT, 6))
row("v_lshrrev_b64 d:b64, a:u32, b:b64", vop3=0x290, **WIDE)(partial(_LOGICAL, 6))
row("v_ashrrev_i64 d:i64, a:u32, b:i64", vop3=0x291, **WIDE)(partial(_ARITHMETIC, 6))


def _shifted_bytes(low, high, m):
    """a >> (c & 31) in the low byte and b >> (c & 31) in the high one, each limited to the byte's range."""

    def byte(lanes, a, amount):
        shifted = lanes.shr(a, amount, True)
        return lanes.truncate(lanes.max(lanes.min(shifted, lanes.const(high, 32), True), lanes.const(low, 32), True), 8)

    def meaning(lanes, a, b, c):
        amount = _low(lanes, c, 5)
        return lanes.join([byte(lanes, a, amount), byte(lanes, b, amount)])

    return meaning


for _name, _opcode, _range in (("i8", 0x265, (-128, 127)), ("u8", 0x266, (0, 255))):
    row(f"v_ashr_pk_{_name}_i32 d:b16, a:i32, b:i32, c:u32", vop3=_opcode, since=4, modifiers="op_sel", facts="keeps half", **VOP3)(
        partial(_shifted_bytes, *_range)
    )

_COMBINED = (
    ("v_lshl_add_u32 d:u32, a:u32, b:u32, c:u32", 0x1FD, "(a << (b & 31)) + c",
     lambda lanes, a, b, c: lanes.add(lanes.shl(a, _low(lanes, b, 5)), c)),
    ("v_add_lshl_u32 d:u32, a:u32, b:u32, c:u32", 0x1FE, "(a + b) << (c & 31)",
     lambda lanes, a, b, c: lanes.shl(lanes.add(a, b), _low(lanes, c, 5))),
    ("v_lshl_or_b32 d:b32, a:b32, b:u32, c:b32", 0x200, "(a << (b & 31)) | c",
     lambda lanes, a, b, c: lanes.or_(lanes.shl(a, _low(lanes, b, 5)), c)),
)
for _pattern, _opcode, _formula, _meaning in _COMBINED:
    row(_pattern, vop3=_opcode, **VOP3)(said(f"d = {_formula}.", _meaning))


@row("v_lshl_add_u64 d:u64, a:u64, b:u32, c:u64", vop3=0x208, **WIDE)
def v_lshl_add_u64(m):
    """d = (a << (b & 7)) + c, in 64 bits."""
    return lambda lanes, a, b, c: lanes.add(lanes.shl(a, _low(lanes, b, 3)), c)


def _align(unit_bits, amount_bits, m):
    """The low word of {a, b} >> c, by bits or bytes, with a the high word."""
    refuse(m, "op_sel", "clamp")

    def meaning(lanes, a, b, c):
        amount = _low(lanes, c, amount_bits)
        amount = amount if unit_bits == 1 else lanes.shl(amount, lanes.const(3, 32))
        return lanes.truncate(lanes.shr(lanes.join([b, a]), amount, False), 32)

    return meaning


row("v_alignbit_b32 d:b32, a:b32, b:b32, c:u32", vop3=0x1CE, modifiers="clamp op_sel", **VOP3)(partial(_align, 1, 5))
row("v_alignbyte_b32 d:b32, a:b32, b:b32, c:u32", vop3=0x1CF, modifiers="clamp op_sel", **VOP3)(partial(_align, 8, 2))


# --- fields -----------------------------------------------------------------------------------------------------------


def _ones(lanes, count):
    """The low `count` bits set, for counts below 32."""
    one = lanes.const(1, 32)
    return lanes.sub(lanes.shl(one, count), one)


@row("v_bfe_u32 d:u32, a:u32, b:u32, c:u32", vop3=0x1C8, **VOP3)
def v_bfe_u32(m):
    """c & 31 bits of a from bit b & 31 on."""
    return lambda lanes, a, b, c: lanes.and_(lanes.shr(a, _low(lanes, b, 5), False), _ones(lanes, _low(lanes, c, 5)))


@row("v_bfe_i32 d:i32, a:i32, b:u32, c:u32", vop3=0x1C9, **VOP3)
def v_bfe_i32(m):
    """c & 31 bits of a from bit b & 31 on, extended with the highest of them; bits above a are its sign."""

    def meaning(lanes, a, b, c):
        above = lanes.sub(lanes.const(32, 32), _low(lanes, c, 5))
        return lanes.shr(lanes.shl(lanes.shr(a, _low(lanes, b, 5), True), above), above, True)

    return meaning


@row("v_bfm_b32 d:b32, a:u32, b:u32", vop3=0x293, **VOP3)
def v_bfm_b32(m):
    """a & 31 ones, shifted left by b & 31."""
    return lambda lanes, a, b: lanes.shl(_ones(lanes, _low(lanes, a, 5)), _low(lanes, b, 5))


# --- counts -----------------------------------------------------------------------------------------------------------


def _none_if_zero(lanes, tested, found):
    return lanes.select(lanes.compare(tested, lanes.const(0, 32), "eq", False), lanes.const(-1, 32), found)


@row("v_ffbh_u32 d:u32, a:u32", vop1=45, **VOP1)
def v_ffbh_u32(m):
    """Zeros above the highest one; -1 for 0."""
    return lambda lanes, a: _none_if_zero(lanes, a, lanes.leading_zeros(a))


@row("v_ffbl_b32 d:u32, a:b32", vop1=46, **VOP1)
def v_ffbl_b32(m):
    """Zeros below the lowest one; -1 for 0."""
    return lambda lanes, a: _none_if_zero(lanes, a, lanes.leading_zeros(lanes.reverse_bits(a)))


@row("v_ffbh_i32 d:i32, a:i32", vop1=47, **VOP1)
def v_ffbh_i32(m):
    """Copies of the sign bit at the top; -1 where all bits are equal."""

    def meaning(lanes, a):
        changed = lanes.xor(a, lanes.shr(a, lanes.const(31, 32), True))
        return _none_if_zero(lanes, changed, lanes.leading_zeros(changed))

    return meaning


@row("v_bfrev_b32 d:b32, a:b32", vop1=44, **VOP1)
def v_bfrev_b32(m):
    """The bits in reverse order."""
    return lambda lanes, a: lanes.reverse_bits(a)


@row("v_bcnt_u32_b32 d:u32, a:b32, b:u32", vop3=0x28B, **VOP3)
def v_bcnt_u32_b32(m):
    """b plus the number of ones of a."""
    return lambda lanes, a, b: lanes.add(lanes.popcount(a), b)


def _lanes_below(first, m):
    """b plus the number of ones of a at the bits of lower lanes; a is the mask of lanes 0 to 31 (lo) or 32 to 63 (hi)."""

    def meaning(lanes, a, b):
        start = lanes.const(first, 32)
        lane = lanes.sub(lanes.max(lanes.lane_id(), start, False), start)  # 32 and more take all bits: the shift then gives 0
        one = lanes.const(1, 32)
        below = lanes.sub(lanes.shl(one, lane), one)
        return lanes.add(lanes.popcount(lanes.and_(a, below)), b)

    return meaning


row("v_mbcnt_lo_u32_b32 d:u32, a:b32, b:u32", vop3=0x28C, **VOP3)(partial(_lanes_below, 0))
row("v_mbcnt_hi_u32_b32 d:u32, a:b32, b:u32", vop3=0x28D, **VOP3)(partial(_lanes_below, 32))


# --- bytes ------------------------------------------------------------------------------------------------------------

_EACH = 0x01010101


@row("v_perm_b32 d:b32, a:b32, b:b32, c:b32", vop3=0x1ED, **VOP3)
def v_perm_b32(m):
    """Each byte of c chooses a byte: 0 to 7 of {a, b}, b lower; 8 to 11 the sign of byte 1, 3, 5, 7; 12 zero; above it 0xFF."""

    def meaning(lanes, a, b, c):
        shifted = [c, *(lanes.shr(c, lanes.const(place, 32), False) for place in (1, 2, 3))]
        bit = [lanes.and_(moved, lanes.const(_EACH, 32)) for moved in shifted]
        large = _any_high_bit(lanes, c)
        chosen = lanes.permute_bytes(b, a, _nibbles(lanes, c, bit))
        filled = lanes.or_(large, lanes.and_(bit[3], bit[2]))
        ones = lanes.or_(large, lanes.and_(filled, lanes.or_(bit[1], bit[0])))
        return lanes.or_(lanes.and_(chosen, lanes.not_(_bytes(lanes, filled))), _bytes(lanes, ones))

    return meaning


def _bytes(lanes, bits):
    """The lowest bit of each byte in all of its bits."""
    return lanes.mul(bits, lanes.const(0xFF, 32))


def _any_high_bit(lanes, c):
    """1 in each byte that is 16 or more."""
    high = lanes.shr(lanes.and_(c, lanes.const(0xF0F0F0F0, 32)), lanes.const(4, 32), False)  # 1 to 15, or 0
    return lanes.and_(lanes.shr(lanes.add(high, lanes.const(0x0F0F0F0F, 32)), lanes.const(4, 32), False), lanes.const(_EACH, 32))


def _nibbles(lanes, c, bit):
    """The selector of `permute_bytes`: a nibble a byte, 8 + n for the sign of byte n."""
    plain = lanes.and_(c, lanes.const(0x07070707, 32))
    pair = lanes.shl(lanes.and_(c, lanes.const(0x03030303, 32)), lanes.const(1, 32))
    sign = lanes.or_(pair, lanes.const(0x09090909, 32))
    wanted = lanes.lookup3(_bytes(lanes, bit[3]), sign, plain, 0xCA)
    paired = lanes.or_(wanted, lanes.shr(wanted, lanes.const(4, 32), False))  # nibbles 0 and 1 in byte 0, 2 and 3 in byte 2
    low = lanes.and_(paired, lanes.const(0xFF, 32))
    return lanes.or_(low, lanes.and_(lanes.shr(paired, lanes.const(8, 32), False), lanes.const(0xFF00, 32)))


@row("v_pack_b32_f16 d:b32, a:f16, b:f16", vop3=0x2A0, modifiers="clamp op_sel", **VOP3)
def v_pack_b32_f16(m):
    """a in the low half, b in the high half."""
    refuse(m, "clamp")
    return lambda lanes, a, b: lanes.join([a, b])
