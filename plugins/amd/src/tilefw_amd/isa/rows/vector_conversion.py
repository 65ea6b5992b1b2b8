"""Conversions between integers and floats of all widths, one by one and packed (CDNA3 ISA, "VOP1", "VOP3A": V_CVT_*).

A float result is rounded and flushed as MODE says for its own format; f16 sources keep their subnormals (CDNA3 ISA, V_CVT_F32_F16).
Integer results are clamped to their range, NaN gives 0; `clamp` and `omod`, which assemblers take there, change nothing.
"""

from __future__ import annotations

from functools import partial

from tilefw_amd.isa.row import Chapter, RowFacts
from tilefw_amd.isa.rows.precision import SHAPES, flush_of, flushed, nudged, refuse, rounding_of
from tilefw_amd.isa.types import TYPES

CHAPTER = Chapter()
row = CHAPTER.row

VOP1: RowFacts = {"unit": "valu", "section": "VOP1"}
VOP3: RowFacts = {"unit": "valu", "section": "VOP3A"}


def _facts(*formats: str) -> RowFacts:
    """64-bit operands go to the wide pipe, and have no SDWA."""
    wide = "f64" in formats
    return {"unit": "valu64" if wide else "valu", "section": "VOP1", "without": "sdwa" if wide else ""}


# --- one by one -------------------------------------------------------------------------------------------------------


def _integer_of(fmt, kind, m):
    """Toward zero, clamped to the range; NaN gives 0."""
    flush = flush_of(m, fmt)
    return lambda lanes, a: lanes.float_to_int(a, fmt, kind.bits, kind.signed, "rz", flush)


for _to, _from, _opcode in (
    ("i32", "f64", 3), ("u32", "f32", 7), ("i32", "f32", 8), ("u32", "f64", 21), ("u16", "f16", 59), ("i16", "f16", 60),
):
    row(f"v_cvt_{_to}_{_from} d:{_to}, a:{_from}", vop1=_opcode, modifiers="clamp omod", **_facts(_from))(
        partial(_integer_of, _from, TYPES[_to])
    )


def _float_of(kind, fmt, m):
    """Rounded once."""
    rounding = rounding_of(m, fmt)
    return lambda lanes, a: lanes.int_to_float(a, kind.signed, fmt, rounding)


for _to, _from, _opcode in (
    ("f64", "i32", 4), ("f32", "i32", 5), ("f32", "u32", 6), ("f64", "u32", 22), ("f16", "u16", 57), ("f16", "i16", 58),
):
    row(f"v_cvt_{_to}_{_from} d:{_to}, a:{_from}", vop1=_opcode, **_facts(_to))(partial(_float_of, TYPES[_from], _to))


def _float_of_byte(index, m):
    """A byte of a as a float."""

    def meaning(lanes, a):
        moved = lanes.shr(a, lanes.const(8 * index, 32), False) if index else a
        return lanes.int_to_float(lanes.and_(moved, lanes.const(255, 32)), False, "f32")

    return meaning


for _index in range(4):
    row(f"v_cvt_f32_ubyte{_index} d:f32, a:b32", vop1=17 + _index, **VOP1)(partial(_float_of_byte, _index))


def _between(source, to, m):
    """To another float format, rounded once."""
    rounding = rounding_of(m, to)
    if source == "f16":
        return lambda lanes, a: lanes.fconvert(a, source, to, rounding)
    flush32, flush = flush_of(m, "f32"), flush_of(m, to)
    return lambda lanes, a: flushed(lanes, lanes.fconvert(a, source, to, rounding, flush32), to, flush)


for _to, _from, _opcode in (("f16", "f32", 10), ("f32", "f16", 11), ("f32", "f64", 15), ("f64", "f32", 16)):
    row(f"v_cvt_{_to}_{_from} d:{_to}, a:{_from}", vop1=_opcode, **_facts(_to, _from))(partial(_between, _from, _to))


@row("v_cvt_rpi_i32_f32 d:i32, a:f32", vop1=12, modifiers="clamp", **VOP1)
def v_cvt_rpi_i32_f32(m):
    """floor(a + 0.5), the sum rounded to f32."""
    flush = flush_of(m, "f32")
    half = SHAPES["f32"].power(-1)
    return lambda lanes, a: lanes.float_to_int(lanes.fadd(a, lanes.const(half, 32), "f32", "rn", flush), "f32", 32, True, "rm")


@row("v_cvt_flr_i32_f32 d:i32, a:f32", vop1=13, modifiers="clamp", **VOP1)
def v_cvt_flr_i32_f32(m):
    """floor(a)."""
    flush = flush_of(m, "f32")
    return lambda lanes, a: lanes.float_to_int(a, "f32", 32, True, "rm", flush)


@row("v_cvt_off_f32_i4 d:f32, a:b32", vop1=14, **VOP1)
def v_cvt_off_f32_i4(m):
    """The low 4 bits, signed, over 16: -1/2 to 7/16."""

    def meaning(lanes, a):
        signed = lanes.shr(lanes.shl(a, lanes.const(28, 32)), lanes.const(28, 32), True)
        return lanes.fmul(lanes.int_to_float(signed, True, "f32"), lanes.const(SHAPES["f32"].power(-4), 32), "f32")

    return meaning


# --- normalised integers ----------------------------------------------------------------------------------------------

_TOP = {"i16": 32767, "u16": 65535}


def _normalised(lanes, a, fmt, name, rounding):
    """a times the largest number of the type, rounded, clamped to plus and minus that (unsigned: to 0); NaN gives 0."""
    top = _TOP[name]
    factor = lanes.int_to_float(lanes.const(top, 32), False, "f64")
    exact = lanes.fmul(lanes.fconvert(a, fmt, "f64"), factor, "f64")
    number = lanes.float_to_int(exact, "f64", 32, True, rounding)
    low = lanes.const(-top if TYPES[name].signed else 0, 32)
    return lanes.truncate(lanes.max(lanes.min(number, lanes.const(top, 32), True), low, True), 16)


def _norm(name, m):
    """a in [-1, 1] (u16: [0, 1]) as a normalised integer, rounded as MODE says."""
    rounding = rounding_of(m, "f16")
    return lambda lanes, a: _normalised(lanes, a, "f16", name, rounding)


def _packed_norm(name, fmt, m):
    """a and b in [-1, 1] (u16: [0, 1]) as normalised integers, to nearest even: a in the low half, b in the high half."""
    return lambda lanes, a, b: lanes.join([_normalised(lanes, x, fmt, name, "rn") for x in (a, b)])


for _name, _opcode, _f32, _f16 in (("i16", 77, 0x294, 0x299), ("u16", 78, 0x295, 0x29A)):
    row(f"v_cvt_norm_{_name}_f16 d:{_name}, a:f16", vop1=_opcode, modifiers="clamp omod", **VOP1)(partial(_norm, _name))
    row(f"v_cvt_pknorm_{_name}_f32 d:b32, a:f32, b:f32", vop3=_f32, modifiers="clamp", **VOP3)(partial(_packed_norm, _name, "f32"))
    row(f"v_cvt_pknorm_{_name}_f16 d:b32, a:f16, b:f16", vop3=_f16, modifiers="clamp op_sel", **VOP3)(
        partial(_packed_norm, _name, "f16")
    )


# --- packed -----------------------------------------------------------------------------------------------------------


@row("v_cvt_pkrtz_f16_f32 d:b32, a:f32, b:f32", vop3=0x296, modifiers="clamp omod", **VOP3)
def v_cvt_pkrtz_f16_f32(m):
    """a and b as f16, rounded toward zero: a in the low half, b in the high half."""
    refuse(m, "clamp", "omod")
    flush32, flush = flush_of(m, "f32"), flush_of(m, "f16")

    def meaning(lanes, a, b):
        return lanes.join([flushed(lanes, lanes.fconvert(x, "f32", "f16", "rz", flush32), "f16", flush) for x in (a, b)])

    return meaning


def _packed_nearest(fmt, m):
    """a in the low half, b in the high half, rounded to nearest even whatever MODE says."""
    refuse(m, "clamp", "omod")
    flush32 = flush_of(m, "f32")
    flush = fmt == "f16" and flush_of(m, fmt)

    def meaning(lanes, a, b):
        return lanes.join([flushed(lanes, lanes.fconvert(x, "f32", fmt, "rn", flush32), fmt, flush) for x in (a, b)])

    return meaning


for _fmt, _opcode in (("f16", 0x267), ("bf16", 0x268)):
    row(f"v_cvt_pk_{_fmt}_f32 d:b32, a:f32, b:f32", vop3=_opcode, since=4, modifiers="clamp omod", **VOP3)(
        partial(_packed_nearest, _fmt)
    )


@row("v_cvt_f32_bf16 d:f32, a:bf16", vop1=91, since=4, **VOP1)
def v_cvt_f32_bf16(m):
    """Exactly: a is the high half."""
    return lambda lanes, a: lanes.join([lanes.const(0, 16), a])


def _stochastic_half(fmt, m):
    """a rounded up or down by chance, in the half of d that op_sel's last bit names; the other half stays."""
    high, mantissa = (m.op_sel or (0,))[-1], {"f16": 10, "bf16": 7}[fmt]

    def meaning(lanes, a, b, old):
        moved = nudged(lanes, a, b, 23 - mantissa)
        half = lanes.fconvert(moved, "f32", fmt, "rz")
        if fmt == "f16":  # what lies a whole step beyond the largest number overflows as in other roundings
            above = lanes.fcompare(lanes.fabs(moved, "f32"), lanes.const(SHAPES["f32"].power(16), 32), "ge", "f32", True)
            half = lanes.select(above, lanes.fconvert(moved, "f32", fmt), half)
        low, top = lanes.split(old, 16)
        return lanes.join((low, half) if high else (half, top))

    return meaning


for _fmt, _opcode in (("f16", 0x2A6), ("bf16", 0x2A7)):
    row(f"v_cvt_sr_{_fmt}_f32 +d:b32, a:f32, b:u32", vop3=_opcode, since=4, modifiers="op_sel", **VOP3)(
        partial(_stochastic_half, _fmt)
    )


def _packed_clamped(kind, m):
    """a and b clamped to 16 bits: a in the low half, b in the high half."""
    top = (1 << (16 - kind.signed)) - 1

    def narrowed(lanes, a):
        a = lanes.min(a, lanes.const(top, 32), kind.signed)
        a = lanes.max(a, lanes.const(-top - 1, 32), True) if kind.signed else a
        return lanes.truncate(a, 16)

    return lambda lanes, a, b: lanes.join([narrowed(lanes, a), narrowed(lanes, b)])


row("v_cvt_pk_u16_u32 d:b32, a:u32, b:u32", vop3=0x297, **VOP3)(partial(_packed_clamped, TYPES["u32"]))
row("v_cvt_pk_i16_i32 d:b32, a:i32, b:i32", vop3=0x298, **VOP3)(partial(_packed_clamped, TYPES["i32"]))


@row("v_sat_pk_u8_i16 d:b16, a:b32", vop1=79, **VOP1)
def v_sat_pk_u8_i16(m):
    """Both signed halves of a, clamped to 0 to 255, as two bytes."""

    def meaning(lanes, a):
        halves = lanes.split(a, 16)
        zero, top = lanes.const(0, 16), lanes.const(255, 16)
        return lanes.join([lanes.truncate(lanes.max(lanes.min(half, top, True), zero, True), 8) for half in halves])

    return meaning


def _byte_into(lanes, a, index, word, rounding, flush):
    """a as a byte, rounded and clamped, in the place of byte `index & 3` of the word."""
    byte = lanes.zero_extend(lanes.float_to_int(a, "f32", 8, False, rounding, flush), 32)
    place = lanes.shl(lanes.and_(index, lanes.const(3, 32)), lanes.const(3, 32))
    mask = lanes.shl(lanes.const(255, 32), place)
    return lanes.or_(lanes.and_(word, lanes.not_(mask)), lanes.shl(byte, place))


# The two have one meaning: the word is c, or the destination's old value. MODE's rounding: CLRX documentation, "V_CVT_PK_U8_F32".
def _byte(m):
    """The word with byte b & 3 replaced by a, rounded as MODE says and clamped to 0 to 255."""
    rounding, flush = rounding_of(m, "f32"), flush_of(m, "f32")
    return lambda lanes, a, b, word: _byte_into(lanes, a, b, word, rounding, flush)


row("v_cvt_pk_u8_f32 d:b32, a:f32, b:u32, c:b32", vop3=0x1DD, modifiers="clamp", **VOP3)(_byte)
row("v_cvt_pkaccum_u8_f32 +d:b32, a:f32, b:u32", vop3=0x1F0, modifiers="clamp", **VOP3)(_byte)
