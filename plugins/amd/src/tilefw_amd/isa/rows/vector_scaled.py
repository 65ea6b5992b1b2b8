"""Conversions of 8-bit floats with a scale (V_CVT_SCALEF32_*), which came with the fourth generation.

The scale is the power of two of an f32: its exponent field alone counts, and 255 there makes every result NaN, as in E8M0. What
becomes wider is multiplied by it, what becomes an 8-bit float is divided by it, and rounded once, to nearest even or by chance.
(AMD's `amd_hip_ocp_fp.hpp` scales so on other chips; the CDNA4 ISA document has the pseudocode of operands and halves.)
"""

from __future__ import annotations

from functools import partial

from tilefw_amd.isa.row import Chapter, RowFacts
from tilefw_amd.isa.rows.mixed import no_signs
from tilefw_amd.isa.rows.precision import exponent, nudged, scaled
from tilefw_amd.isa.rows.vector_fp8 import MANTISSA, byte_of_destination, byte_of_source, cut_off, destination, limit

CHAPTER = Chapter()
row = CHAPTER.row

VOP3: RowFacts = {"unit": "valu", "section": "VOP3A", "modifiers": "op_sel", "since": 4}
_BIAS, _NOT_A_NUMBER = 127, 255
_QUIET = {"f32": 0x7FC00000, "f16": 0x7E00, "bf16": 0x7FC0}


def power_of(lanes, scale, up):
    """(The power of two to multiply with, as a signed number; whether the scale is NaN)."""
    field = exponent(lanes, scale, "f32")
    bias = lanes.const(_BIAS, 32)
    power = lanes.sub(field, bias) if up else lanes.sub(bias, field)
    return power, lanes.compare(field, lanes.const(_NOT_A_NUMBER, 32), "eq", False)


def rescaled(lanes, a, source, power):
    """a * 2**power in f64, which holds it exactly."""
    return scaled(lanes, lanes.fconvert(a, source, "f64"), power, "f64", "rn", False)


def widened(lanes, code, scale, source, to):
    """A float of at most 8 bits times the scale, rounded once."""
    power, lost = power_of(lanes, scale, up=True)
    found = lanes.fconvert(rescaled(lanes, code, source, power), "f64", to)
    return lanes.select(lost, lanes.const(_QUIET[to], 32 if to == "f32" else 16), found)


def _narrowed(lanes, a, scale, source, to, saturate):
    """`a` over the scale as an 8-bit float, rounded to nearest even."""
    power, lost = power_of(lanes, scale, up=False)
    found = lanes.fconvert(rescaled(lanes, a, source, power), "f64", to, saturate=saturate)
    return lanes.select(lost, lanes.fconvert(lanes.const(_QUIET["f32"], 32), "f32", to), found)


def _one(name, to, m):
    """The byte of a that op_sel's first two bits name, times the scale; f16 goes to the half of d that the last bit names."""
    fmt = m.chip.float8[name]
    index, high = byte_of_source(m), (*(m.op_sel or ()), 0, 0, 0)[2]

    def one(lanes, a, scale):
        return widened(lanes, lanes.split(a, 8)[index], scale, fmt, to)

    if to == "f32":
        return one

    def into_half(lanes, a, scale, old):
        bottom, top = lanes.split(old, 16)
        value = one(lanes, a, scale)
        return lanes.join((bottom, value) if high else (value, top))

    return into_half


def _pair(name, to, m):
    """The bytes of the half of a that op_sel's first bit names, times the scale."""
    fmt, first = m.chip.float8[name], 2 * (m.op_sel or (0,))[0]

    def meaning(lanes, a, scale):
        return lanes.join([widened(lanes, byte, scale, fmt, to) for byte in lanes.split(a, 8)[first : first + 2]])

    return meaning


def _halves_replaced(lanes, old, pair, high):
    low, top = lanes.split(old, 16)
    return lanes.join([low, pair] if high else [pair, top])


def _to_pair(name, m):
    """a and b over the scale, in the low half of d, or with op_sel's last bit in the high half; the other half stays."""
    fmt, (_, high), saturate = m.chip.float8[name], destination(m), limit(m)

    def meaning(lanes, a, b, scale, old):
        pair = lanes.join([_narrowed(lanes, x, scale, "f32", fmt, saturate) for x in (a, b)])
        return _halves_replaced(lanes, old, pair, high)

    return meaning


def _halves_to_pair(name, source, m):
    """Both halves of a over the scale, in the half of d that op_sel's last bit names; the other half stays."""
    no_signs(m, f"v_cvt_scalef32_pk_{name}_{source}")
    fmt, (_, high), saturate = m.chip.float8[name], destination(m), limit(m)

    def meaning(lanes, a, scale, old):
        pair = lanes.join([_narrowed(lanes, x, scale, source, fmt, saturate) for x in lanes.split(a, 16)])
        return _halves_replaced(lanes, old, pair, high)

    return meaning


def _stochastic(name, source, m):
    """a over the scale, rounded up or down by chance, in the byte of d that op_sel's last two bits name; the other bytes stay."""
    place = byte_of_destination(m)
    fmt, saturate, cut = m.chip.float8[name], limit(m), 23 - MANTISSA[name]

    def meaning(lanes, a, b, scale, old):
        power, lost = power_of(lanes, scale, up=False)
        value = lanes.fconvert(rescaled(lanes, a, source, power), "f64", "f32")
        byte = cut_off(lanes, nudged(lanes, value, b, cut), fmt, saturate)
        parts = list(lanes.split(old, 8))
        parts[place] = lanes.select(lost, lanes.fconvert(lanes.const(_QUIET["f32"], 32), "f32", fmt), byte)
        return lanes.join(parts)

    return meaning


# Opcodes of fp8; those of bf8 are one further.
for _further, _name in enumerate(("fp8", "bf8")):
    _head = "v_cvt_scalef32"
    row(f"{_head}_f32_{_name} d:b32, a:b32, b:f32", vop3=0x23B + _further, **VOP3)(partial(_one, _name, "f32"))
    row(f"{_head}_f16_{_name} +d:b32, a:b32, b:f32", vop3=0x24A + _further, **VOP3)(partial(_one, _name, "f16"))
    for _to, _type, _opcode in (("f32", "b64", 0x239), ("f16", "b32", 0x248), ("bf16", "b32", 0x269)):
        row(f"{_head}_pk_{_to}_{_name} d:{_type}, a:b32, b:f32", vop3=_opcode + _further, **VOP3)(partial(_pair, _name, _to))
    row(f"{_head}_pk_{_name}_f32 +d:b32, a:f32, b:f32, c:f32", vop3=0x235 + _further, **VOP3)(partial(_to_pair, _name))
    for _source, _opcode in (("f16", 0x240), ("bf16", 0x244)):
        row(f"{_head}_pk_{_name}_{_source} +d:b32, a:{_source}x2, b:f32", vop3=_opcode + _further, **VOP3)(
            partial(_halves_to_pair, _name, _source)
        )
    for _source, _opcode in (("f32", 0x237), ("f16", 0x242), ("bf16", 0x246)):
        row(f"{_head}_sr_{_name}_{_source} +d:b32, a:{_source}, b:u32, c:f32", vop3=_opcode + _further, facts="byte of destination",
            **VOP3)(partial(_stochastic, _name, _source))
