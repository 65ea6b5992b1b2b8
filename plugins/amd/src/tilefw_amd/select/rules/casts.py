"""Casts and selections in vector registers: integers wider and narrower, integers to floats and back, floats to floats.

CDNA3 ISA, "VOP1", "VOP3A", "VOP3P". Conversions to integers truncate, clamp, and give 0 for NaN, as the rows want. An element
of a packed register is taken from where it stands, by a field of bits, a shift, or op_sel, so that nothing is taken apart for it.
Between f16 and f32 V_FMA_MIX converts, with the factor 1 and the addend -0: at the full rate, of which V_CVT has a quarter (LLVM,
SISchedule.td: WriteFloatCvt).
"""

from __future__ import annotations

from functools import partial

from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Const, Element, Rule, alias
from tilefw_amd.select.operands import legal
from tilefw_amd.select.operands import vector as emit
from tilefw_amd.select.rules.floats import NAN, ONE, SIGN
from tilefw_amd.select.rules.instruction import BITS, FORM, halves, i32, joined, vector

_INTEGERS = ("i8", "i16", "i32", "i64")
SMALL = ("f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "!tile.fp8e4b15", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN", "i4")


def rules() -> dict[str, Rule]:
    return {**_selects(), **_between_integers(), **_to_floats(), **_to_integers(), **_between_floats()}


def packed_position(code: Code, x: Element, bits: int) -> tuple[Element, int]:
    """Where an element of `bits` bits stands: a register, and its number there."""
    return code.parts.get((x, bits), (x, 0)) if isinstance(x, Slice) and not code.uniform(x) else (x, 0)


# --- selections --------------------------------------------------------------------------------------------------------------


def _selects() -> dict[str, Rule]:
    narrow = [t for t in (*FORM, *SMALL) if t not in ("i1", "i64", "f64")]
    table: dict[str, Rule] = {f"select.{t}": partial(_select, FORM.get(t, "e8")) for t in narrow}
    return table | {f"select.{t}": partial(_select_wide, t) for t in ("i64", "f64")}


def _select(form: str, code: Code, condition: Element, x: Element, y: Element) -> Element:
    if x == y:
        return x
    return emit(code, "v_cndmask_b32", form, y, x, condition)


def _select_wide(t: str, code: Code, condition: Element, x: Element, y: Element) -> Element:
    low, high = (code("select.i32", condition, a, b) for a, b in zip(halves(x), halves(y), strict=True))
    return joined(code, low, high, t)


# --- integers to integers ------------------------------------------------------------------------------------------------------


def _between_integers() -> dict[str, Rule]:
    table: dict[str, Rule] = {}
    for t in ("i8", "i16"):
        table |= {f"extu.{t}.i32": partial(_field, "u", BITS[t]), f"exts.{t}.i32": partial(_field, "i", BITS[t])}
    for row in ("extu", "exts"):
        table[f"{row}.i8.i16"] = partial(_through, f"{row}.i8.i32", "trunci.i32.i16")
        for t in ("i8", "i16"):
            table[f"{row}.{t}.i64"] = partial(_through, f"{row}.{t}.i32", f"{row}.i32.i64")
    table |= {"extu.i32.i64": lambda code, x: joined(code, x, i32(0)), "exts.i32.i64": _extend_sign}
    table |= {"trunci.i64.i32": lambda code, x: halves(x)[0], "trunci.i16.i8": alias}
    table |= {f"trunci.i64.{t}": lambda code, x: halves(x)[0] for t in ("i8", "i16")}
    table |= {f"trunci.i32.{t}": alias for t in ("i8", "i16")}
    for t in ("i8", "i16", "i32"):
        table |= {f"extu.i1.{t}": partial(_chosen, t, 1), f"exts.i1.{t}": partial(_chosen, t, (1 << BITS[t]) - 1)}
    return table


def _through(first: str, second: str, code: Code, x: Element) -> Element:
    return code(second, code(first, x))


def _chosen(t: str, bits: int, code: Code, x: Element) -> Element:
    """One of two constants by a mask."""
    return code(f"select.{t}", x, Const(t, bits), Const(t, 0))


def _extend_sign(code: Code, x: Element) -> Element:
    return joined(code, x, code("shrs.i32", x, i32(31)))


def _field(kind: str, bits: int, code: Code, x: Element) -> Element:
    """An element of 8 or 16 bits in a word of its own."""
    if isinstance(x, Const):
        signed = x.bits - (1 << bits) if kind == "i" and x.bits >> (bits - 1) & 1 else x.bits
        return i32(signed)
    register, index = packed_position(code, x, bits)
    first = bits * index
    if first + bits == 32:
        return emit(code, "v_lshrrev_b32" if kind == "u" else "v_ashrrev_i32", "w32", i32(first), register)
    if kind == "u" and first == 0:
        return emit(code, "v_and_b32", "w32", i32((1 << bits) - 1), register)
    return emit(code, f"v_bfe_{kind}32", "w32", register, i32(first), i32(bits))


# --- integers to floats --------------------------------------------------------------------------------------------------------


def _to_floats() -> dict[str, Rule]:
    table: dict[str, Rule] = {}
    for sign, letter in (("s", "i"), ("u", "u")):
        for t in ("f32", "f64"):
            table[f"{sign}2f.i32.{t}"] = vector(f"v_cvt_{t}_{letter}32", FORM[t])
        for i in ("i8", "i16"):
            table[f"{sign}2f.{i}.f32"] = partial(_element_to_single, sign, BITS[i])
            extend = "exts" if sign == "s" else "extu"
            table[f"{sign}2f.{i}.f64"] = partial(_through, f"{extend}.{i}.i32", f"{sign}2f.i32.f64")
        table[f"{sign}2f.i16.f16"] = vector(f"v_cvt_f16_{letter}16", "e16")
        table[f"{sign}2f.i8.f16"] = partial(_through, f"{sign}2f.i8.f32", "castf.f32.f16")
        # Beyond 2**24, where f32 rounds, f16 is infinite already.
        table[f"{sign}2f.i32.f16"] = partial(_through, f"{sign}2f.i32.f32", "castf.f32.f16")
        table[f"{sign}2f.i64.f64"] = partial(_wide_to_double, f"v_cvt_f64_{letter}32")
        for t in ("f16", "f32", "f64"):
            table[f"{sign}2f.i1.{t}"] = partial(_chosen, t, ONE[t] | (SIGN[t] if sign == "s" else 0))
    return table | {"u2f.i64.f32": _unsigned_to_single, "s2f.i64.f32": _signed_to_single}


def _element_to_single(sign: str, bits: int, code: Code, x: Element) -> Element:
    """From where the element stands, by SDWA's select; bytes without a sign have conversions of their own."""
    if isinstance(x, Const) or code.uniform(x):
        extend = "exts" if sign == "s" else "extu"
        return code(f"{sign}2f.i32.f32", code(f"{extend}.i{bits}.i32", x))
    register, index = packed_position(code, x, bits)
    if (sign, bits) == ("u", 8):
        return emit(code, f"v_cvt_f32_ubyte{index}", "w32", register)
    select = f"src0_sel:{'BYTE' if bits == 8 else 'WORD'}_{index}"
    if sign == "u":
        return emit(code, "v_cvt_f32_u32", "w32", register, select)
    return emit(code, "v_cvt_f32_i32", "w32", register, select, "sext:[1]")


def _wide_to_double(opcode: str, code: Code, x: Element) -> Element:
    """Both halves are exact; their sum is rounded."""
    low, high = halves(x)
    scaled = emit(code, "v_ldexp_f64", "w64", emit(code, opcode, "w64", high), i32(32))
    return code("addf.f64", scaled, emit(code, "v_cvt_f64_u32", "w64", low))


def _unsigned_to_single(code: Code, x: Element) -> Element:
    """Up to 32 leading zeros are shifted out."""
    leading = emit(code, "v_min_u32", "w32", i32(32), emit(code, "v_ffbh_u32", "w32", halves(x)[1]))
    return _rounded_word("v_cvt_f32_u32", code, x, leading)


def _signed_to_single(code: Code, x: Element) -> Element:
    """All copies of the sign but one are shifted out: 32 of them where the low word begins with it, else 31."""
    low, high = halves(x)
    most = code("addi.i32", code("shrs.i32", code("xori.i32", low, high), i32(31)), i32(32))
    copies = code("subi.i32", emit(code, "v_ffbh_i32", "w32", high), i32(1))
    return _rounded_word("v_cvt_f32_i32", code, x, code("minu.i32", copies, most))


def _rounded_word(opcode: str, code: Code, x: Element, leading: Element) -> Element:
    """The leading 32 bits, the last of them set where any bit below is, are rounded; the rest is a power of two."""
    low, high = halves(emit(code, "v_lshlrev_b64", "w64", leading, x))
    word = code("ori.i32", high, emit(code, "v_min_u32", "w32", i32(1), low))
    return emit(code, "v_ldexp_f32", "w32", emit(code, opcode, "w32", word), code("subi.i32", i32(32), leading))


# --- floats to integers --------------------------------------------------------------------------------------------------------


def _to_integers() -> dict[str, Rule]:
    table: dict[str, Rule] = {}
    for sign, letter in (("s", "i"), ("u", "u")):
        for t in ("f32", "f64"):
            word = f"f2{sign}.{t}.i32"
            table[word] = vector(f"v_cvt_{letter}32_{t}", "w32")
            table |= {f"f2{sign}.{t}.{i}": partial(_narrowed, sign, word, i) for i in ("i8", "i16")}
        table[f"f2{sign}.f16.i16"] = vector(f"v_cvt_{letter}16_f16", "e16")
        table[f"f2{sign}.f16.i32"] = partial(_through, "castf.f16.f32", f"f2{sign}.f32.i32")
        table[f"f2{sign}.f32.i64"] = partial(_through, "castf.f32.f64", f"f2{sign}.f64.i64")
        table[f"f2{sign}.f32.i16x2"] = partial(_pair_of_words, f"f2{sign}.f32.i32", f"v_cvt_pk_{letter}16_{letter}32")
    return table | {"f2s.f64.i64": _double_to_signed, "f2u.f64.i64": _double_to_unsigned}


def _narrowed(sign: str, word: str, to: str, code: Code, x: Element) -> Element:
    """Clamped once more to the narrower range."""
    bits = BITS[to]
    if sign == "u":
        return emit(code, "v_min_u32", FORM[to], i32((1 << bits) - 1), code(word, x))
    low, high = i32(-1 << (bits - 1)), i32((1 << (bits - 1)) - 1)
    return emit(code, "v_med3_i32", FORM[to], code(word, x), low, high)


def _pair_of_words(word: str, opcode: str, code: Code, x: Element, y: Element) -> Slice:
    """V_CVT_PK clamps both."""
    return emit(code, opcode, "w32", code(word, x), code(word, y))


def in_words(code: Code, x: Element) -> tuple[Element, Element]:
    """The integral value of x as high * 2**32 + low, 0 <= low < 2**32, both in f64."""
    whole = code("trunc.f64", x)
    high = code("floor.f64", code("mulf.f64", whole, Const("f64", (1023 - 32) << 52)))
    return emit(code, "v_fma_f64", "w64", high, Const("f64", 1 << 63 | (1023 + 32) << 52), whole), high


def _double_to_unsigned(code: Code, x: Element) -> Element:
    """V_MAX takes 0 for NaN and for what is below. The high word clamps by itself."""
    x = code("maxf.f64", x, Const("f64", 0))
    low, high = in_words(code, x)
    beyond = code("gef.f64", x, Const("f64", (1023 + 64) << 52))
    bits = code("select.i32", beyond, i32(-1), emit(code, "v_cvt_u32_f64", "w32", low))
    return joined(code, bits, emit(code, "v_cvt_u32_f64", "w32", high))


def _double_to_signed(code: Code, x: Element) -> Element:
    """The high word clamps by itself, and is 0 for NaN, as the low one is; beyond the range the low word has to follow."""
    low, high = in_words(code, x)
    limit = (1023 + 63) << 52
    bits = emit(code, "v_cvt_u32_f64", "w32", low)
    bits = code("select.i32", code("gef.f64", x, Const("f64", limit)), i32(-1), bits)
    bits = code("select.i32", code("lef.f64", x, Const("f64", 1 << 63 | limit)), i32(0), bits)
    return joined(code, bits, emit(code, "v_cvt_i32_f64", "w32", high))


# --- floats to floats ------------------------------------------------------------------------------------------------------------

# Operands of V_FMA_MIX that make it a conversion: x * 1 + -0; op_sel_hi says that the first is of f16, op_sel that it stands high.
_TIMES_ONE = (Const("f32", ONE["f32"]), Const("f32", 0))
_MINUS_ZERO = "neg:[0,0,1]"


def _between_floats() -> dict[str, Rule]:
    table: dict[str, Rule] = {"castf.f16.f32": _half_to_single, "castf.f32.f16": _single_to_half}
    table |= {"castf.f32.f16x2": _singles_to_halves, "castf_rtz.f32.f16": _cut_to_half, "castf_rtz.f32.f16x2": _cut_to_halves}
    table |= {"castf.bf16.f32": _bfloat_to_single}
    for row in ("castf", "castf_rtz"):
        table |= {f"{row}.f32.bf16": partial(_single_to_bfloat, row), f"{row}.f32.bf16x2": partial(_singles_to_bfloats, row)}
        table[f"{row}.f32.f64"] = vector("v_cvt_f64_f32", "w64")
    table |= {"castf.f64.f32": vector("v_cvt_f32_f64", "w32"), "castf_rtz.f64.f32": _cut_to_single}
    return table


def _half_to_single(code: Code, x: Element) -> Slice:
    register, index = packed_position(code, x, 16)
    high = ("op_sel:[1,0,0]",) if index else ()
    return emit(code, "v_fma_mix_f32", "w32", register, *_TIMES_ONE, *high, "op_sel_hi:[1,0,0]", _MINUS_ZERO)


def _single_to_half(code: Code, x: Element) -> Slice:
    return emit(code, "v_fma_mixlo_f16", "e16", x, *_TIMES_ONE, _MINUS_ZERO)


def _singles_to_halves(code: Code, x: Element, y: Element) -> Slice:
    """The second goes above the first, into the same register."""
    low = emit(code, "v_fma_mixlo_f16", "w32", x, *_TIMES_ONE, _MINUS_ZERO)
    sources = legal(code, "v_fma_mixhi_f16", (y, *_TIMES_ONE))
    return code.insts("v_fma_mixhi_f16", ("w32",), *sources, low, _MINUS_ZERO, tied=((0, len(sources)),))[0]


def _cut_to_half(code: Code, x: Element) -> Slice:
    return emit(code, "v_cvt_pkrtz_f16_f32", "e16", x, Const("f32", 0))


def _cut_to_halves(code: Code, x: Element, y: Element) -> Slice:
    return emit(code, "v_cvt_pkrtz_f16_f32", "w32", x, y)


def _bfloat_to_single(code: Code, x: Element) -> Element:
    """A bf16 is the upper half of an f32."""
    if isinstance(x, Const):
        return Const("f32", x.bits << 16)
    register, index = packed_position(code, x, 16)
    if index:
        return emit(code, "v_and_b32", "w32", i32(0xFFFF0000), register)
    return emit(code, "v_lshlrev_b32", "w32", i32(16), register)


def _rounded_to_upper_half(row: str, code: Code, x: Element) -> Element:
    """f32 rounded to its upper half: half a unit of that less one is added, one more where it is odd. A NaN may not carry over or
    lose all its bits, and becomes the one that has none below."""
    rounded = x
    if row == "castf":
        odd = emit(code, "v_bfe_u32", "w32", x, i32(16), i32(1))
        rounded = emit(code, "v_add3_u32", "w32", x, odd, i32(0x7FFF))
    ordered = emit(code, "v_cmp_o_f32", "i1", x, x)
    return code("select.f32", ordered, rounded, Const("f32", NAN["f32"]))


def _single_to_bfloat(row: str, code: Code, x: Element) -> Slice:
    return emit(code, "v_lshrrev_b32", "e16", i32(16), _rounded_to_upper_half(row, code, x))


def _singles_to_bfloats(row: str, code: Code, x: Element, y: Element) -> Slice:
    """V_PERM's selector names bytes of {first, second}, 0 to 3 of the second (CDNA3 ISA, V_PERM_B32)."""
    low, high = (_rounded_to_upper_half(row, code, e) for e in (x, y))
    return emit(code, "v_perm_b32", "w32", high, low, i32(0x07060302))


def _cut_to_single(code: Code, x: Element) -> Element:
    """Rounded to nearest, and one step back where that went outward; of an infinity that is the largest number."""
    nearest = emit(code, "v_cvt_f32_f64", "w32", x)
    back = emit(code, "v_cvt_f64_f32", "w64", nearest)
    outward = emit(code, "v_cmp_gt_f64", "i1", back, x, "abs:[1,1]")
    return code("select.i32", outward, code("addi.i32", nearest, i32(-1)), nearest)
