"""Conversions of fp4, fp6 and bf6 with a scale: two fp4 in a byte, or 32 numbers of 6 bits in six registers (CDNA4 ISA, "VOP3A").

    v_cvt_scalef32_pk32_fp6_f16 d, a, scale: element i of d, at bit 6 * i, is half i of a over the scale, to nearest even

The scale counts as in `vector_scaled`. The formats have neither NaN nor infinities: what overflows, and infinity, becomes the
largest number of its sign. NaN, and everything under a scale that is NaN, becomes the largest positive number: OCP MX 1.0 leaves
that open, and AMD's manual does not say. Stochastic rounding takes a new random number for each element after the first, the one
that V_PRNG_B32 makes of the number before (CDNA4 ISA, conversions of "multiple passes").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tilefw.api.floats import float_bits
from tilefw_amd.isa.meaning.formats import SMALL_FORMATS
from tilefw_amd.isa.row import Chapter, Modifiers, RowFacts
from tilefw_amd.isa.rows.mixed import no_signs
from tilefw_amd.isa.rows.precision import is_nan, nudged
from tilefw_amd.isa.rows.vector_bits import next_random
from tilefw_amd.isa.rows.vector_fp8 import byte_of_destination, byte_of_source
from tilefw_amd.isa.rows.vector_scaled import VOP3, power_of, rescaled, widened

if TYPE_CHECKING:
    from tilefw.api.sim import Value

CHAPTER = Chapter()
row = CHAPTER.row

WHOLE: RowFacts = {"unit": "valu", "section": "VOP3A", "since": 4}
_HELD, _BITS = 32, 6
_MANTISSA = {"fp4": 1, "fp6": 3, "bf6": 2}
_WIDTH = {"fp4": 4, "fp6": 6, "bf6": 6}
_LARGEST = {"fp4": 0x7, "fp6": 0x1F, "bf6": 0x1F}
_LEAST_NORMAL = {"fp4": 1.0, "fp6": 1.0, "bf6": 0.25}


# --- one element ------------------------------------------------------------------------------------------------------


def _narrowed(lanes: Any, a: Value, scale: Value, source: str, name: str) -> Value:
    """`a` over the scale, rounded to nearest even."""
    power, lost = power_of(lanes, scale, up=False)
    code = lanes.fconvert(rescaled(lanes, a, source, power), "f64", SMALL_FORMATS[name])
    return lanes.select(lost, lanes.const(_LARGEST[name], 8), code)


def _by_chance(lanes: Any, a: Value, chance: Value, scale: Value, source: str, name: str) -> Value:
    """`a` over the scale, rounded up as often as the part that is cut off says.

    Below the least normal number all steps have one size, that of the numbers above it: the magnitude is lifted by the least
    normal number, rounded there, and lowered again.
    """
    power, lost = power_of(lanes, scale, up=False)
    value = lanes.fconvert(rescaled(lanes, a, source, power), "f64", "f32")
    magnitude, least = lanes.fabs(value, "f32"), lanes.const(float_bits(_LEAST_NORMAL[name], "f32"), 32)
    small = lanes.fcompare(magnitude, least, "lt", "f32")
    lifted = lanes.select(small, lanes.fadd(magnitude, least, "f32", "rz"), magnitude)
    moved = nudged(lanes, lifted, chance, 23 - _MANTISSA[name])
    code = lanes.fconvert(moved, "f32", SMALL_FORMATS[name], "rz", saturate="finite")
    code = lanes.select(small, lanes.sub(code, lanes.const(1 << _MANTISSA[name], 8)), code)
    sign = lanes.shl(lanes.truncate(lanes.shr(value, lanes.const(31, 32), False), 8), lanes.const(_WIDTH[name] - 1, 32))
    none = is_nan(lanes, value, "f32")
    lost = lanes.or_(lost, none)
    return lanes.select(lost, lanes.const(_LARGEST[name], 8), lanes.or_(code, sign))


# --- two fp4 in a byte ------------------------------------------------------------------------------------------------


def _nibbles(lanes: Any, byte: Value) -> tuple[Value, Value]:
    return byte, lanes.shr(byte, lanes.const(4, 32), False)


def _fp4_widened(to: str, m: Modifiers) -> Any:
    """The two fp4 of the byte of a that op_sel's first two bits name, times the scale; the low one first."""
    index = byte_of_source(m)

    def meaning(lanes: Any, a: Value, scale: Value) -> Value:
        pair = _nibbles(lanes, lanes.split(a, 8)[index])
        return lanes.join([widened(lanes, x, scale, SMALL_FORMATS["fp4"], to) for x in pair])

    return meaning


def _byte_replaced(lanes: Any, old: Value, codes: Sequence[Value], place: int) -> Value:
    low, high = codes
    parts = list(lanes.split(old, 8))
    parts[place] = lanes.or_(low, lanes.shl(high, lanes.const(4, 32)))
    return lanes.join(parts)


def _two_to_fp4(m: Modifiers) -> Any:
    """a and b over the scale, in the byte of d that op_sel's last two bits name; the other bytes stay."""
    place = byte_of_destination(m)

    def meaning(lanes: Any, a: Value, b: Value, scale: Value, old: Value) -> Value:
        return _byte_replaced(lanes, old, [_narrowed(lanes, x, scale, "f32", "fp4") for x in (a, b)], place)

    return meaning


def _halves_to_fp4(source: str, m: Modifiers) -> Any:
    """Both halves of a over the scale, in the byte of d that op_sel's last two bits name; the other bytes stay."""
    no_signs(m, f"v_cvt_scalef32_pk_fp4_{source}")
    place = byte_of_destination(m)

    def meaning(lanes: Any, a: Value, scale: Value, old: Value) -> Value:
        return _byte_replaced(lanes, old, [_narrowed(lanes, x, scale, source, "fp4") for x in lanes.split(a, 16)], place)

    return meaning


def _fp4_by_chance(source: str, m: Modifiers) -> Any:
    """Both elements of a over the scale, each rounded by chance, in the byte of d that op_sel's last two bits name; the other
    bytes stay. The second element's random number is the one that v_prng_b32 makes of b, the first one's."""
    no_signs(m, f"v_cvt_scalef32_sr_pk_fp4_{source}")
    place, width = byte_of_destination(m), 32 if source == "f32" else 16

    def meaning(lanes: Any, a: Value, b: Value, scale: Value, old: Value) -> Value:
        return _byte_replaced(lanes, old, _each_by_chance(lanes, lanes.split(a, width), b, scale, source, "fp4"), place)

    return meaning


def _each_by_chance(lanes: Any, elements: Sequence[Value], chance: Value, scale: Value, source: str, name: str) -> list[Value]:
    codes = []
    for element in elements:
        codes.append(_by_chance(lanes, element, chance, scale, source, name))
        chance = next_random(lanes, chance)
    return codes


# --- 32 numbers of 6 bits in six registers ----------------------------------------------------------------------------


def _unpacked(lanes: Any, words: Sequence[Value]) -> list[Value]:
    """The numbers of 6 bits, each in the low bits of 8."""
    found = []
    for i in range(_HELD):
        word, place = divmod(_BITS * i, 32)
        part = lanes.shr(words[word], lanes.const(place, 32), False)
        if place + _BITS > 32:
            part = lanes.or_(part, lanes.shl(words[word + 1], lanes.const(32 - place, 32)))
        found.append(lanes.truncate(part, 8))
    return found


def _packed(lanes: Any, codes: Sequence[Value]) -> tuple[Value, ...]:
    """The inverse of `_unpacked`; the codes have no bits above their six."""
    words = [lanes.const(0, 32)] * (_HELD * _BITS // 32)
    for i, code in enumerate(codes):
        word, place = divmod(_BITS * i, 32)
        whole = lanes.zero_extend(code, 32)
        words[word] = lanes.or_(words[word], lanes.shl(whole, lanes.const(place, 32)))
        if place + _BITS > 32:
            words[word + 1] = lanes.or_(words[word + 1], lanes.shr(whole, lanes.const(32 - place, 32), False))
    return tuple(words)


def _elements(lanes: Any, words: Sequence[Value], source: str) -> list[Value]:
    return list(words) if source == "f32" else [half for word in words for half in lanes.split(word, 16)]


def _all_widened(name: str, to: str, m: Modifiers) -> Any:
    """The 32 numbers of a, times the scale; two halves in a register."""

    def meaning(lanes: Any, a: Sequence[Value], scale: Value) -> tuple[Value, ...]:
        found = [widened(lanes, x, scale, SMALL_FORMATS[name], to) for x in _unpacked(lanes, a)]
        return tuple(found if to == "f32" else (lanes.join(found[i : i + 2]) for i in range(0, _HELD, 2)))

    return meaning


def _all_narrowed(name: str, source: str, m: Modifiers) -> Any:
    """The 32 elements of a over the scale."""

    def meaning(lanes: Any, a: Sequence[Value], scale: Value) -> tuple[Value, ...]:
        return _packed(lanes, [_narrowed(lanes, x, scale, source, name) for x in _elements(lanes, a, source)])

    return meaning


def _two_narrowed(name: str, m: Modifiers) -> Any:
    """The 16 elements of a and the 16 of b over the scale: of a those with even numbers in d, of b those with odd ones."""

    def meaning(lanes: Any, a: Sequence[Value], b: Sequence[Value], scale: Value) -> tuple[Value, ...]:
        return _packed(lanes, [_narrowed(lanes, x, scale, "f32", name) for pair in zip(a, b, strict=True) for x in pair])

    return meaning


def _all_by_chance(name: str, source: str, m: Modifiers) -> Any:
    """The 32 elements of a over the scale, each rounded by chance. The first random number is b, each further one what v_prng_b32
    makes of the one before."""

    def meaning(lanes: Any, a: Sequence[Value], b: Value, scale: Value) -> tuple[Value, ...]:
        return _packed(lanes, _each_by_chance(lanes, _elements(lanes, a, source), b, scale, source, name))

    return meaning


# --- rows -------------------------------------------------------------------------------------------------------------

_HEAD = "v_cvt_scalef32"
_BYTE: RowFacts = {**VOP3, "facts": "byte of destination"}
for _to, _type, _opcode in (("f32", "b64", 0x23F), ("f16", "b32", 0x250), ("bf16", "b32", 0x251)):
    row(f"{_HEAD}_pk_{_to}_fp4 d:{_type}, a:b32, b:f32", vop3=_opcode, **VOP3)(partial(_fp4_widened, _to))
row(f"{_HEAD}_pk_fp4_f32 +d:b32, a:f32, b:f32, c:f32", vop3=0x23D, **_BYTE)(_two_to_fp4)
for _source, _opcode in (("f16", 0x24C), ("bf16", 0x24D)):
    row(f"{_HEAD}_pk_fp4_{_source} +d:b32, a:{_source}x2, b:f32", vop3=_opcode, **_BYTE)(partial(_halves_to_fp4, _source))
for _source, _type, _opcode in (("f32", "f32x2=v", 0x23E), ("f16", "f16x2", 0x24E), ("bf16", "bf16x2", 0x24F)):
    row(f"{_HEAD}_sr_pk_fp4_{_source} +d:b32, a:{_type}, b:u32, c:f32", vop3=_opcode, **_BYTE)(partial(_fp4_by_chance, _source))

for _place, _name in enumerate(("fp6", "bf6")):
    row(f"{_HEAD}_pk32_f32_{_name} d:b1024, a:b192=v, b:b32", vop3=0x256 + _place, **WHOLE)(partial(_all_widened, _name, "f32"))
    row(f"{_HEAD}_2xpk16_{_name}_f32 d:b192, a:b512=v, b:b512=v, c:b32", vop3=0x252 + _place, **WHOLE)(
        partial(_two_narrowed, _name)
    )
    row(f"{_HEAD}_sr_pk32_{_name}_f32 d:b192, a:b1024=v, b:u32, c:b32", vop3=0x254 + _place, **WHOLE)(
        partial(_all_by_chance, _name, "f32")
    )
    for _further, _half in enumerate(("f16", "bf16"), 2 * _place):
        row(f"{_HEAD}_pk32_{_half}_{_name} d:b512, a:b192=v, b:b32", vop3=0x260 + _further, **WHOLE)(
            partial(_all_widened, _name, _half)
        )
        row(f"{_HEAD}_pk32_{_name}_{_half} d:b192, a:b512=v, b:b32", vop3=0x258 + _further, **WHOLE)(
            partial(_all_narrowed, _name, _half)
        )
        row(f"{_HEAD}_sr_pk32_{_name}_{_half} d:b192, a:b512=v, b:u32, c:b32", vop3=0x25C + _further, **WHOLE)(
            partial(_all_by_chance, _name, _half)
        )
