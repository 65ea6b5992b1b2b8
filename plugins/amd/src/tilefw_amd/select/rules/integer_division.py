"""Quotients and remainders of integers: an estimate of the reciprocal in floats, mended in integers.

The estimate is from below, so that the quotient is never too large; how far it is short says how many comparisons mend it (Granlund
and Möller, "Improved division by invariant integers", 2011; Warren, "Hacker's Delight", ch. 9). The mending leaves the dividend as
remainder of a division by zero; its quotient, all ones, is selected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tilefw.api.simt import Code, Const, Element, Rule
from tilefw_amd.select.operands import scalar as emit_scalar
from tilefw_amd.select.operands import vector as emit
from tilefw_amd.select.operands import vectors as emit_several
from tilefw_amd.select.rules import by_constant
from tilefw_amd.select.rules.casts import in_words
from tilefw_amd.select.rules.division import negated_fma
from tilefw_amd.select.rules.instruction import BITS, MASK, i32, joined, real


def rules() -> dict[str, Rule]:
    table: dict[str, Rule] = {}
    for row, part in (("div", 0), ("rem", 1)):
        table |= {f"{row}u.{t}": partial(_unsigned, part, t) for t in _ESTIMATES}
        table |= {f"{row}s.{t}": partial(_signed, part, t) for t in _ESTIMATES}
        table |= {f"{row}{sign}.{t}": partial(_narrow, sign, part, t) for sign in "su" for t in ("i8", "i16")}
    of_zero = [f"div{sign}.{t}" for sign in "su" for t in _ESTIMATES] + ["divs.i8", "divs.i16"]
    return table | {row: partial(_or_all_ones, row.partition(".")[2], table[row]) for row in of_zero}


def _or_all_ones(t: str, divide: Rule, code: Code, n: Element, d: Element) -> Element:
    """The quotient; all ones for a divisor of zero. (Unsigned narrow ones are by themselves: the infinite quotient saturates.)"""
    quotient = divide(code, n, d)
    if isinstance(d, Const) and d.bits:
        return quotient
    return code(f"select.{t}", code(f"eqi.{t}", d, Const(t, 0)), Const(t, (1 << BITS[t]) - 1), quotient)


def _unsigned(part: int, t: str, code: Code, n: Element, d: Element) -> Element:
    """From an estimate of 2**width / d. After one of Newton's steps in integers its shortfall is below 1.5, so that the quotient is
    short by 2 at most."""
    if isinstance(d, Const) and d.bits:
        return by_constant.remainder(code, t, n, d.bits, False) if part else by_constant.unsigned_quotient(code, t, n, d.bits)
    zero = Const(t, 0)
    y = _ESTIMATES[t](code, n, d)
    shortfall = code(f"muli.{t}", code(f"subi.{t}", zero, d), y)
    y = code(f"addi.{t}", y, code(f"mulhu.{t}", y, shortfall))
    quotient = code(f"mulhu.{t}", n, y)
    rest = code(f"subi.{t}", n, code(f"muli.{t}", quotient, d))
    for _ in range(2):
        quotient, rest = _mended(code, t, quotient, rest, d)
    return (quotient, rest)[part]


def _mended(code: Code, t: str, quotient: Element, rest: Element, d: Element) -> tuple[Element, Element]:
    """The quotient and one more, the rest and one divisor less, where the rest is not below the divisor. A word's rest is the
    lesser of both: what is taken from too little wraps to more. Few ask for both, and dead code goes."""
    less = code(f"subi.{t}", rest, d)
    if t == "i32" and code.uniform(rest, d):
        return emit_scalar(code, "carry.s_cmp_ge_u32", "uw32", rest, d, quotient, i32(0)), code("minu.i32", rest, less)
    enough = code(f"geu.{t}", rest, d)
    if t == "i32":
        with_carry, _ = emit_several(code, "v_addc_co_u32", ("w32", "i1"), i32(0), quotient, enough)
        return with_carry, code("minu.i32", rest, less)
    more = code(f"select.{t}", enough, code(f"addi.{t}", quotient, Const(t, 1)), quotient)
    return more, code(f"select.{t}", enough, less, rest)


def _estimate_of_word(code: Code, n: Element, d: Element) -> Element:
    """V_RCP_F32, its operand and the product are off by less than the factor 1 - 2**-23 takes away. Where all is uniform, so is the
    estimate."""
    reciprocal = emit(code, "v_rcp_iflag_f32", "w32", emit(code, "v_cvt_f32_u32", "w32", d))
    estimate = emit(code, "v_cvt_u32_f32", "w32", code("mulf.f32", reciprocal, real(2.0**32 - 512)))
    return code.inst("v_readfirstlane_b32", "uw32", estimate) if code.uniform(n, d) else estimate


def _estimate_of_pair(code: Code, n: Element, d: Element) -> Element:
    """In f64, where two of Newton's steps leave an error of 2**-50, less than the factor takes away."""
    divisor = code("u2f.i64.f64", d)
    reciprocal: Element = emit(code, "v_rcp_f64", "w64", divisor)
    for _ in range(2):
        error = negated_fma(code, "f64", divisor, reciprocal, real(1.0, "f64"))
        reciprocal = code("fma.f64", error, reciprocal, reciprocal)
    scaled = in_words(code, code("mulf.f64", reciprocal, real(2.0**64 * (1 - 2.0**-48), "f64")))
    low, high = (emit(code, "v_cvt_u32_f64", "w32", word) for word in scaled)
    return joined(code, low, high)


_ESTIMATES: dict[str, Callable[[Code, Element, Element], Element]] = {"i32": _estimate_of_word, "i64": _estimate_of_pair}


def _signed(part: int, t: str, code: Code, n: Element, d: Element) -> Element:
    """Of the magnitudes; the quotient takes the sign of both, the remainder that of the dividend."""
    bits = BITS[t]
    if isinstance(d, Const) and d.bits:
        divisor = d.bits - (d.bits >> (bits - 1) << bits)
        return by_constant.remainder(code, t, n, divisor, True) if part else by_constant.signed_quotient(code, t, n, divisor)
    quotient = code.known(f"divs.{t}", n, d) if part else None
    if quotient is not None:
        return code(f"subi.{t}", n, code(f"muli.{t}", quotient, d))
    sign = code(f"shrs.{t}", n if part else code(f"xori.{t}", n, d), Const(t, bits - 1))
    result = _unsigned(part, t, code, code(f"absi.{t}", n), code(f"absi.{t}", d))
    return code(f"subi.{t}", code(f"xori.{t}", result, sign), sign)


def _narrow(sign: str, part: int, t: str, code: Code, n: Element, d: Element) -> Element:
    """Of 8 and 16 bits in f32: (|n| + 1/2) / d is at least 1/2d away from any integer, a relative 2**-17 of it, and V_RCP_F32 with
    the product is within 2**-22."""
    convert = "s2f" if sign == "s" else "u2f"
    x = code(f"{convert}.{t}.f32", n)
    half: Element = real(0.5)
    if sign == "s":
        half = emit(code, "v_bfi_b32", "w32", i32(MASK >> 1), half, x)
    quotient = code("mulf.f32", code("addf.f32", x, half), _reciprocal(sign, t, code, d))
    whole = code(f"f2{sign}.f32.i32", quotient)
    if not part:
        return code(f"trunci.i32.{t}", whole)
    # The low bits of the remainder are those of the low bits.
    product = code(f"muli.{t}", code(f"trunci.i32.{t}", whole), d)
    return code(f"subi.{t}", n, product)


def _reciprocal(sign: str, t: str, code: Code, d: Element) -> Element:
    if isinstance(d, Const) and d.bits:
        bits = BITS[t]
        return real(1 / (d.bits - (d.bits >> (bits - 1) << bits if sign == "s" else 0)))
    return emit(code, "v_rcp_f32", "w32", code(f"{sign}2f.{t}.f32", d))
