"""Conversions of 8-bit floats (CDNA3 ISA, "VOP1", "VOP3A": V_CVT_*_FP8, V_CVT_*_BF8).

fp8 is an E4M3 and bf8 an E5M2; which ones is the chip's (`Chip.float8`). The FNUZ formats have a bias that is one larger, no
infinities, no -0, and NaN as 0x80; of OCP's formats E5M2 has infinities and E4M3 has none. What overflows becomes infinite, NaN
where the format has no infinities, or the largest number where MODE.FP16_OVFL is set.
"""

from __future__ import annotations

from functools import partial

from tilefw.api.floats import float_bits
from tilefw_amd.isa.row import Chapter, RowFacts
from tilefw_amd.isa.rows.precision import nudged

CHAPTER = Chapter()
row = CHAPTER.row

MANTISSA = {"fp8": 3, "bf8": 2}
# One step further than the largest numbers, which are 240, 57344, 448 and 57344, as patterns of f32.
_ABOVE = {
    name: float_bits(value, "f32")
    for name, value in (("f8E4M3FNUZ", 256.0), ("f8E5M2FNUZ", 65536.0), ("f8E4M3FN", 480.0), ("f8E5M2", 65536.0))
}
VOP1: RowFacts = {"unit": "valu", "section": "VOP1"}
_NO_PART = "dst_sel dst_unused"  # SDWA selects of the source alone
VOP3: RowFacts = {"unit": "valu", "section": "VOP3A", "modifiers": "op_sel"}


def _one(name, m):
    """The low byte (SDWA: the selected one), exactly."""
    fmt = m.chip.float8[name]
    return lambda lanes, a: lanes.fconvert(lanes.truncate(a, 8), fmt, "f32")


def _pair(name, m):
    """The two low bytes (SDWA: those of the selected word), exactly."""
    fmt = m.chip.float8[name]
    return lambda lanes, a: lanes.join([lanes.fconvert(byte, fmt, "f32") for byte in lanes.split(a, 8)[:2]])


def byte_of_source(m):
    """The byte of a source that op_sel's first two bits name, the low bit first."""
    low, high = (*(m.op_sel or (0, 0)), 0)[:2]
    return low + 2 * high


def byte_of_destination(m):
    """The byte of the destination that op_sel's last two bits name, the low bit first."""
    low, high = destination(m)
    return low + 2 * high


def destination(m):
    """The last two bits of op_sel: (third, fourth or last)."""
    bits = m.op_sel or (0,)
    return (bits[2] if len(bits) > 3 else 0), bits[-1]


def limit(m):
    """How a conversion treats overflow, in the algebra's words."""
    return "finite" if m.mode.fp16_overflow else ""


def _to_pair(name, m):
    """a and b to nearest even, in the low half of d, or with op_sel's last bit in the high half; the other half stays."""
    fmt, (_, high) = m.chip.float8[name], destination(m)
    saturate = limit(m)

    def meaning(lanes, a, b, old):
        pair = lanes.join([lanes.fconvert(x, "f32", fmt, saturate=saturate) for x in (a, b)])
        low, top = lanes.split(old, 16)
        return lanes.join([low, pair] if high else [pair, top])

    return meaning


def _stochastic(name, m):
    """a rounded up or down by chance, in the byte of d that op_sel's last two bits name; the other bytes stay.

    The high bits of b, as many as are cut off the mantissa, are added below the last bit that is kept; the rest is cut off.
    """
    place = byte_of_destination(m)
    cut, saturate, fmt = 23 - MANTISSA[name], limit(m), m.chip.float8[name]

    def meaning(lanes, a, b, old):
        moved = nudged(lanes, a, b, cut)
        parts = list(lanes.split(old, 8))
        parts[place] = cut_off(lanes, moved, fmt, saturate)
        return lanes.join(parts)

    return meaning


def cut_off(lanes, a, fmt, saturate):
    """Toward zero; what lies beyond the largest number by a whole step overflows as in other roundings."""
    if saturate:
        return lanes.fconvert(a, "f32", fmt, "rz", saturate=saturate)
    overflows = lanes.fcompare(lanes.fabs(a, "f32"), lanes.const(_ABOVE[fmt], 32), "ge", "f32", True)
    return lanes.select(overflows, lanes.fconvert(a, "f32", fmt), lanes.fconvert(a, "f32", fmt, "rz"))


for _name, _single, _double, _packs, _chance in (("fp8", 84, 86, 0x2A2, 0x2A4), ("bf8", 85, 87, 0x2A3, 0x2A5)):
    row(f"v_cvt_f32_{_name} d:f32, a:b32", vop1=_single, without=_NO_PART, **VOP1)(partial(_one, _name))
    row(f"v_cvt_pk_f32_{_name} d:b64, a:b32", vop1=_double, modifiers="clamp omod", without=_NO_PART, **VOP1)(partial(_pair, _name))
    row(f"v_cvt_pk_{_name}_f32 +d:b32, a:f32, b:f32", vop3=_packs, **VOP3)(partial(_to_pair, _name))
    row(f"v_cvt_sr_{_name}_f32 +d:b32, a:f32, b:u32", vop3=_chance, facts="byte of destination", **VOP3)(
        partial(_stochastic, _name)
    )
