"""Scalar shifts, bit fields, counts and masks of quads (CDNA3 ISA, sections "SOP1", "SOP2", "SOPC": bits)."""

from __future__ import annotations

from collections.abc import Callable

from tilefw_amd.isa.row import Chapter
from tilefw_amd.isa.rows.scalar import Meaning, nonzero, said

CHAPTER = Chapter()
row = CHAPTER.row

# --- shifts -----------------------------------------------------------------------------------------------------------


def _amount(lanes, value, bits: int):
    """A shift amount or bit number: the low 5 or 6 bits."""
    return lanes.and_(value, lanes.const(bits - 1, 32))


def _shift(kind: str, bits: int) -> Meaning:
    def meaning(lanes, a, b):
        amount = _amount(lanes, b, bits)
        result = lanes.shl(a, amount) if kind == "lshl" else lanes.shr(a, amount, kind == "ashr")
        return result, nonzero(lanes, result, bits)

    return meaning


for _name, _letter, _opcode, _words in (
    ("lshl", "b", 28, "a << b"), ("lshr", "b", 30, "a >> b"), ("ashr", "i", 32, "a >> b, filled with the sign"),
):
    for _bits in (32, 64):
        row(f"s_{_name}_{_letter}{_bits} d:{_letter}{_bits}, a:{_letter}{_bits}, b:u32, >scc",
            sop2=_opcode + _bits // 64, unit="salu", section="SOP2", wave=True)(
            said(f"d = {_words} (b modulo {_bits}), SCC = d is not 0.", _shift(_name, _bits))
        )


# --- fields -----------------------------------------------------------------------------------------------------------


def _ones(lanes, length, bits: int):
    """The low `length` bits set; all of them from `bits` on, since shifting that far gives 0."""
    one = lanes.const(1, bits)
    return lanes.sub(lanes.shl(one, length), one)


def _field_mask(bits: int) -> Meaning:
    return lambda lanes, a, b: lanes.shl(_ones(lanes, _amount(lanes, a, bits), bits), _amount(lanes, b, bits))


def _field_size(lanes, b):
    return lanes.and_(lanes.shr(b, lanes.const(16, 32), False), lanes.const(0x7F, 32))


def _field_unsigned(bits: int) -> Meaning:
    def meaning(lanes, a, b):
        result = lanes.and_(lanes.shr(a, _amount(lanes, b, bits), False), _ones(lanes, _field_size(lanes, b), bits))
        return result, nonzero(lanes, result, bits)

    return meaning


def _field_signed(bits: int) -> Meaning:
    def meaning(lanes, a, b):
        width = lanes.const(bits, 32)
        above = lanes.sub(width, lanes.min(_field_size(lanes, b), width, False))
        result = lanes.shr(lanes.shl(lanes.shr(a, _amount(lanes, b, bits), True), above), above, True)
        return result, nonzero(lanes, result, bits)

    return meaning


for _bits in (32, 64):
    row(f"s_bfm_b{_bits} d:b{_bits}, a:b32, b:b32", sop2=34 + _bits // 64, unit="salu", section="SOP2", wave=True)(
        said(f"d = a ones from bit b on, both modulo {_bits}.", _field_mask(_bits))
    )
    for _letter, _opcode, _field in (("u", 37, _field_unsigned), ("i", 38, _field_signed)):
        row(f"s_bfe_{_letter}{_bits} d:{_letter}{_bits}, a:{_letter}{_bits}, b:u32, >scc",
            sop2=_opcode + _bits // 64 * 2, unit="salu", section="SOP2", wave=True)(
            said(
                f"d = b[22:16] bits of a from bit b modulo {_bits} on, extended with {'the sign' if _letter == 'i' else 'zeros'}; "
                "SCC = d is not 0.",
                _field(_bits),
            )
        )


def _half(lanes, value, high: bool):
    """Bits 15 to 0 of a word, or 31 to 16."""
    return lanes.split(value, 16)[int(high)]


def _pack(first_high: bool, second_high: bool) -> Meaning:
    return lambda lanes, a, b: lanes.join((_half(lanes, a, first_high), _half(lanes, b, second_high)))


for _name, _opcode, _first, _second in (("ll", 50, False, False), ("lh", 51, False, True), ("hh", 52, True, True)):
    row(f"s_pack_{_name}_b32_b16 d:b32, a:b32, b:b32", sop2=_opcode, unit="salu", section="SOP2", wave=True)(
        said(
            f"d = the {'high' if _first else 'low'} half of a, and above it the {'high' if _second else 'low'} half of b.",
            _pack(_first, _second),
        )
    )


@row("s_sext_i32_i8 d:i32, a:b32", sop1=22, unit="salu", section="SOP1", wave=True)
def s_sext_i32_i8(m):
    """d = the low byte of a, sign-extended."""
    return lambda lanes, a: lanes.sign_extend(lanes.truncate(a, 8), 32)


@row("s_sext_i32_i16 d:i32, a:b32", sop1=23, unit="salu", section="SOP1", wave=True)
def s_sext_i32_i16(m):
    """d = the low half of a, sign-extended."""
    return lambda lanes, a: lanes.sign_extend(lanes.truncate(a, 16), 32)


# --- single bits -----------------------------------------------------------------------------------------------------------


def _bit_set(value: int, bits: int) -> Meaning:
    def meaning(lanes, a, old):
        bit = lanes.shl(lanes.const(1, bits), _amount(lanes, a, bits))
        return lanes.or_(old, bit) if value else lanes.and_(old, lanes.not_(bit))

    return meaning


def _bit_test(value: int, bits: int) -> Meaning:
    def meaning(lanes, a, b):
        bit = lanes.truncate(lanes.shr(a, _amount(lanes, b, bits), False), 1)
        return bit if value else lanes.not_(bit)

    return meaning


for _bits in (32, 64):
    for _value in (0, 1):
        row(f"s_bitset{_value}_b{_bits} +d:b{_bits}, a:b32",
            sop1=24 + 2 * _value + _bits // 64, unit="salu", section="SOP1", wave=True)(
            said(f"Bit a modulo {_bits} of d = {_value}.", _bit_set(_value, _bits))
        )
        row(f"s_bitcmp{_value}_b{_bits} a:b{_bits}, b:u32, >scc",
            sopc=12 + _value + _bits // 64 * 2, unit="salu", section="SOPC", wave=True)(
            said(f"SCC = bit b modulo {_bits} of a is {_value}.", _bit_test(_value, _bits))
        )


# --- counting ------------------------------------------------------------------------------------------------------------


def _ones_counted(inverted: bool) -> Meaning:
    def meaning(lanes, a):
        count = lanes.popcount(lanes.not_(a) if inverted else a)
        return count, nonzero(lanes, count, 32)

    return meaning


def _or_none(lanes, zeros, bits: int):
    """A count of zeros, or -1 where all bits were zero."""
    none = lanes.compare(zeros, lanes.const(bits, 32), "eq", False)
    return lanes.select(none, lanes.const(-1, 32), zeros)


def _first_from_below(bits: int, inverted: bool) -> Meaning:
    return lambda lanes, a: _or_none(lanes, lanes.leading_zeros(lanes.reverse_bits(lanes.not_(a) if inverted else a)), bits)


def _first_from_above(bits: int) -> Meaning:
    return lambda lanes, a: _or_none(lanes, lanes.leading_zeros(a), bits)


def _first_unlike_sign(bits: int) -> Meaning:
    def meaning(lanes, a):
        sign = lanes.shr(a, lanes.const(bits - 1, 32), True)
        return _or_none(lanes, lanes.leading_zeros(lanes.xor(a, sign)), bits)

    return meaning


for _bits in (32, 64):
    _wide = _bits // 64
    row(f"s_brev_b{_bits} d:b{_bits}, a:b{_bits}", sop1=8 + _wide, unit="salu", section="SOP1", wave=True)(
        said("d = the bits of a in reverse order.", lambda lanes, a: lanes.reverse_bits(a))
    )
    for _value in (0, 1):
        row(f"s_bcnt{_value}_i32_b{_bits} d:i32, a:b{_bits}, >scc",
            sop1=10 + 2 * _value + _wide, unit="salu", section="SOP1", wave=True)(
            said(f"d = how many bits of a are {_value}, SCC = d is not 0.", _ones_counted(_value == 0))
        )
        row(f"s_ff{_value}_i32_b{_bits} d:i32, a:b{_bits}", sop1=14 + 2 * _value + _wide, unit="salu", section="SOP1", wave=True)(
            said(f"d = number of the lowest bit of a that is {_value}, or -1.", _first_from_below(_bits, _value == 0))
        )
    row(f"s_flbit_i32_b{_bits} d:i32, a:b{_bits}", sop1=18 + _wide, unit="salu", section="SOP1", wave=True)(
        said("d = zeros of a above its highest one, or -1.", _first_from_above(_bits))
    )

for _name, _type, _opcode in (("s_flbit_i32", "i32", 20), ("s_flbit_i32_i64", "i64", 21)):
    row(f"{_name} d:i32, a:{_type}", sop1=_opcode, unit="salu", section="SOP1", wave=True)(
        said("d = how many bits from the top are like the sign, or -1 if all are.", _first_unlike_sign(int(_type[1:])))
    )


# --- quads of lanes --------------------------------------------------------------------------------------------------------


def _ones_of_quads(lanes, a, bits: int):
    """Bit 4i is set where one of bits 4i to 4i+3 is."""
    halves = lanes.or_(a, lanes.shr(a, lanes.const(1, 32), False))
    quads = lanes.or_(halves, lanes.shr(halves, lanes.const(2, 32), False))
    return lanes.and_(quads, lanes.const(0x1111111111111111, bits))


def _whole_quads(bits: int) -> Meaning:
    def meaning(lanes, a):
        result = lanes.mul(_ones_of_quads(lanes, a, bits), lanes.const(15, bits))
        return result, nonzero(lanes, result, bits)

    return meaning


# Bits that lie 4 apart move together, in steps that halve the number of gaps: shift right, then keep these.
_GATHER = ((3, 0x0303030303030303), (6, 0x000F000F000F000F), (12, 0x000000FF000000FF), (24, 0x000000000000FFFF))
# Bits move apart, to even places: shift left, then keep these.
_SPREAD = (
    (16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F), (2, 0x3333333333333333), (1, 0x5555555555555555),
)


def _quad_mask(bits: int) -> Meaning:
    def meaning(lanes, a):
        result = _ones_of_quads(lanes, a, bits)
        for shift, kept in _GATHER[: 3 + bits // 64]:
            result = lanes.and_(lanes.or_(result, lanes.shr(result, lanes.const(shift, 32), False)), lanes.const(kept, bits))
        return result, nonzero(lanes, result, bits)

    return meaning


def _replicated(lanes, a):
    result = lanes.zero_extend(a, 64)
    for shift, kept in _SPREAD:
        result = lanes.and_(lanes.or_(result, lanes.shl(result, lanes.const(shift, 32))), lanes.const(kept, 64))
    return lanes.or_(result, lanes.shl(result, lanes.const(1, 32)))


_QUADS: tuple[tuple[str, int, str, Callable[[int], Meaning]], ...] = (
    ("wqm", 6, "bits 4i to 4i+3 of d are set where one of those of a is", _whole_quads),
    ("quadmask", 40, "bit i of d is set where one of bits 4i to 4i+3 of a is", _quad_mask),
)
for _name, _opcode, _words, _of_quads in _QUADS:
    for _bits in (32, 64):
        row(f"s_{_name}_b{_bits} d:b{_bits}, a:b{_bits}, >scc", sop1=_opcode + _bits // 64, unit="salu", section="SOP1", wave=True)(
            said(f"{_words[0].upper()}{_words[1:]}; SCC = d is not 0.", _of_quads(_bits))
        )

row("s_bitreplicate_b64_b32 d:b64, a:b32", sop1=55, unit="salu", section="SOP1", wave=True)(
    said("Bits 2i and 2i+1 of d = bit i of a.", _replicated)
)
