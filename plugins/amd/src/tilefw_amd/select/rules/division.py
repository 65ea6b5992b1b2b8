"""Division and roots of floats by the chip's estimates: approximate, and exact where a row says so.

CDNA3 ISA, "VOP3A", "VOP3B": V_DIV_SCALE brings operands into a range where no step over- or underflows, V_DIV_FMAS is the last
step and scales back, V_DIV_FIXUP sees to zeros, infinities and NaN. The refinements are Markstein's ("IA-64 and Elementary
Functions", 2000, ch. 8, 9): a residual is exact as a fused product, so that the last step rounds once.
"""

from __future__ import annotations

from functools import partial

from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Const, Element, Rule
from tilefw_amd.isa.registers import VCC
from tilefw_amd.machine.traits import SCALARS
from tilefw_amd.select.operands import legal
from tilefw_amd.select.operands import vector as emit
from tilefw_amd.select.operands import vectors as emit_several
from tilefw_amd.select.rules.floats import ONE
from tilefw_amd.select.rules.instruction import FORM, i32, real


def rules() -> dict[str, Rule]:
    table: dict[str, Rule] = {"divf.f32": _by_reciprocal, "divf.f16": _by_reciprocal_of_half}
    table |= {"div_rn.f32": partial(_quotient, "f32"), "div_rn.f64": partial(_quotient, "f64"), "div_rn.f16": _quotient_of_halves}
    table |= {"divf.f64": lambda code, x, y: code("div_rn.f64", x, y), "sqrt.f64": lambda code, x: code("sqrt_rn.f64", x)}
    table |= {"sqrt_rn.f32": _root, "sqrt_rn.f64": _wide_root, "sqrt_rn.f16": _root_of_half, "rsqrt.f64": _wide_reciprocal_root}
    return table


def negated_fma(code: Code, t: str, x: Element, y: Element, z: Element) -> Slice:
    """z - x * y, rounded once."""
    return emit(code, f"v_fma_{t}", FORM[t], x, y, z, "neg:[1,0,0]")


def _class(code: Code, t: str, x: Element, classes: int) -> Slice:
    """Whether x is of one of the classes (CDNA3 ISA, V_CMP_CLASS: a bit each, from signaling NaN to +infinity)."""
    return emit(code, f"v_cmp_class_{t}", "i1", x, i32(classes))


_ZEROS, _POSITIVE_INFINITY = 1 << 5 | 1 << 6, 1 << 9

# Patterns of f32: all but the sign; 2**-126; 2**126, from which on reciprocals are subnormal.
_MAGNITUDE, _LEAST_NORMAL, _SUBNORMAL_RECIPROCAL = 0x7FFFFFFF, 0x00800000, 0x7E800000

# --- quotients ---------------------------------------------------------------------------------------------------------------


def _by_reciprocal(code: Code, x: Element, y: Element) -> Element:
    """Within 2.5 ulp wherever 1/y is normal: the reciprocal's ulp counts twice at most, and the product is rounded.

    V_RCP_F32 makes a subnormal reciprocal zero, which would make a large number's quotient by a larger one zero, and an infinity's
    NaN. So it gets the fraction of y, and the exponent comes back after it, as LLVM has it (AMDGPUCodeGenPrepare,
    emitRcpIEEE1ULP).
    """
    if isinstance(y, Const) and _LEAST_NORMAL <= y.bits & _MAGNITUDE < _SUBNORMAL_RECIPROCAL:
        return _times(code, "f32", x, emit(code, "v_rcp_f32", "w32", y))
    fraction, exponent = emit(code, "v_frexp_mant_f32", "w32", y), emit(code, "v_frexp_exp_i32_f32", "w32", y)
    of_fraction = emit(code, "v_rcp_f32", "w32", fraction)
    return _times(code, "f32", x, emit(code, "v_ldexp_f32", "w32", of_fraction, code("subi.i32", i32(0), exponent)))


def _by_reciprocal_of_half(code: Code, x: Element, y: Element) -> Element:
    """V_RCP_F16 knows subnormals."""
    return _times(code, "f16", x, emit(code, "v_rcp_f16", FORM["f16"], y))


def _times(code: Code, t: str, x: Element, reciprocal: Element) -> Element:
    return reciprocal if x == Const(t, ONE[t]) else code(f"mulf.{t}", x, reciprocal)


def _quotient(t: str, code: Code, x: Element, y: Element) -> Slice:
    """x / y, rounded once. V_RCP_F64 has about half of the bits, and takes two of Newton's steps; in f32 one is enough, with one
    for the quotient itself."""
    form, one = FORM[t], Const(t, ONE[t])
    divisor, _ = emit_several(code, f"v_div_scale_{t}", (form, "i1"), y, y, x)
    reciprocal: Element = emit(code, f"v_rcp_{t}", form, divisor)
    for _ in range(2 if t == "f64" else 1):
        error = negated_fma(code, t, divisor, reciprocal, one)
        reciprocal = emit(code, f"v_fma_{t}", form, error, reciprocal, reciprocal)
    vcc = code.function.file("s", SCALARS).slice(VCC.index, VCC.count)
    dividend = code.new_register(form)
    code.effect(f"v_div_scale_{t}", (dividend, vcc), legal(code, f"v_div_scale_{t}", (x, y, x)))
    quotient: Element = code(f"mulf.{t}", dividend, reciprocal)
    if t == "f32":
        quotient = emit(code, "v_fma_f32", form, negated_fma(code, t, divisor, quotient, dividend), reciprocal, quotient)
    rest = negated_fma(code, t, divisor, quotient, dividend)
    sources = legal(code, f"v_div_fmas_{t}", (rest, reciprocal, quotient))
    (fused,) = code.insts(f"v_div_fmas_{t}", (form,), *sources, implicit_uses=(vcc,))
    return emit(code, f"v_div_fixup_{t}", form, fused, y, x)


def _quotient_of_halves(code: Code, x: Element, y: Element) -> Slice:
    """In f32, where no quotient of halves is within an ulp of a tie but exactly: such ties, of subnormal results, the one step
    makes exact. V_DIV_FIXUP takes care of what the steps make NaN."""
    wide_x, wide_y = code("castf.f16.f32", x), code("castf.f16.f32", y)
    reciprocal = emit(code, "v_rcp_f32", "w32", wide_y)
    estimate = code("mulf.f32", wide_x, reciprocal)
    quotient = code("fma.f32", negated_fma(code, "f32", wide_y, estimate, wide_x), reciprocal, estimate)
    return emit(code, "v_div_fixup_f16", "e16", code("castf.f32.f16", quotient), y, x)


# --- roots -------------------------------------------------------------------------------------------------------------------


def _root(code: Code, x: Element) -> Element:
    """V_SQRT_F32 is within an ulp, but knows no subnormals: small numbers are lifted by 2**32. Tuckerman's test then chooses
    among the root and its neighbours: s is nearest where s * (s - ulp) < x <= s * (s + ulp) (Markstein, ch. 9)."""
    zero = real(0.0)
    small = code("ltf.f32", x, real(2.0**-96))
    lifted = code("select.f32", small, code("mulf.f32", x, real(2.0**32)), x)
    root = emit(code, "v_sqrt_f32", "w32", lifted)
    below, above = code("addi.i32", root, i32(-1)), code("addi.i32", root, i32(1))
    too_high = code("lef.f32", negated_fma(code, "f32", below, root, lifted), zero)
    too_low = code("gtf.f32", negated_fma(code, "f32", above, root, lifted), zero)
    nearest = code("select.f32", too_low, above, code("select.f32", too_high, below, root))
    nearest = code("select.f32", small, code("mulf.f32", nearest, real(2.0**-16)), nearest)
    return code("select.f32", _class(code, "f32", lifted, _ZEROS | _POSITIVE_INFINITY), lifted, nearest)


def _root_of_half(code: Code, x: Element) -> Element:
    """In f32: an ulp there moves no root of a half over a tie (all of them are tried in the tests)."""
    return code("castf.f32.f16", emit(code, "v_sqrt_f32", "w32", code("castf.f16.f32", x)))


def _wide_root(code: Code, x: Element) -> Element:
    """Goldschmidt's iteration on the root and half its reciprocal, from V_RSQ_F64, ended by two exact residuals (Markstein, ch. 9);
    numbers whose residuals would underflow are lifted by 2**256."""
    half = real(0.5, "f64")
    small = code("ltf.f64", x, real(2.0**-767, "f64"))
    lifted = emit(code, "v_ldexp_f64", "w64", x, code("select.i32", small, i32(256), i32(0)))
    estimate = emit(code, "v_rsq_f64", "w64", lifted)
    root, slope = code("mulf.f64", lifted, estimate), code("mulf.f64", estimate, half)
    error = negated_fma(code, "f64", slope, root, half)
    slope, root = code("fma.f64", slope, error, slope), code("fma.f64", root, error, root)
    for _ in range(2):
        root = code("fma.f64", negated_fma(code, "f64", root, root, lifted), slope, root)
    lowered = emit(code, "v_ldexp_f64", "w64", root, code("select.i32", small, i32(-128), i32(0)))
    return code("select.f64", _class(code, "f64", lifted, _ZEROS | _POSITIVE_INFINITY), lifted, lowered)


def _wide_reciprocal_root(code: Code, x: Element) -> Element:
    """One step of third order from V_RSQ_F64: y + y·e·(1/2 + 3e/8) with e = 1 - x·y²; of zeros and infinities the estimate."""
    estimate = emit(code, "v_rsq_f64", "w64", x)
    error = negated_fma(code, "f64", code("mulf.f64", x, estimate), estimate, real(1.0, "f64"))
    factor = code("fma.f64", error, real(0.375, "f64"), real(0.5, "f64"))
    refined = code("fma.f64", code("mulf.f64", estimate, error), factor, estimate)
    return code("select.f64", _class(code, "f64", x, _ZEROS | _POSITIVE_INFINITY), estimate, refined)
