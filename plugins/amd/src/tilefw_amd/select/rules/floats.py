"""Rows of floats: arithmetic, order, rounding to integers, compares, functions, of f16, f32, f64 and packed f16.

CDNA3 ISA, "VOP1", "VOP2", "VOP3A", "VOP3P". Kernels of ours run with MODE.IEEE off, where a number wins over any NaN in V_MIN and
V_MAX, and with subnormals of all formats. The functions of f32 flush theirs all the same (LLVM, SIISelLowering.cpp: "v_rcp_f32
and v_rsq_f32 do not support denormals"), as the table's error rules let approximations do. Their errors: 1 ulp in f32 (CDNA3 ISA,
"VOP1": V_RCP_F32, V_RSQ_F32, V_SQRT_F32, V_EXP_F32, V_LOG_F32), 0.51 ulp in f16 (LLVM, AMDGPUCodeGenPrepare.cpp, "v_rcp_f16").
Of bf16 the chip has no arithmetic: what gives back an operand, or an integer, is exact in f32 and only cut there; the rest is
core's, rounded once.
"""

from __future__ import annotations

import math
from functools import partial

from tilefw.api.floats import float_value
from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Const, Element, Rule
from tilefw_amd.isa.constants import is_inline
from tilefw_amd.select.operands import vector as emit
from tilefw_amd.select.rules.instruction import FORM, commuting, either_order, halves, i32, joined, real, vector

_WIDTH = {"f16": 16, "f32": 32, "f64": 64}
NAN = {"f16": 0x7E00, "f32": 0x7FC00000, "f64": 0x7FF8 << 48}
SIGN = {"f16": 0x8000, "bf16": 0x8000, "f32": 1 << 31, "f64": 1 << 63}
ONE = {"f16": 0x3C00, "f32": 0x3F800000, "f64": 0x3FF << 52}

_COMMUTING = {"addf": "v_add_{t}", "mulf": "v_mul_{t}", "minf": "v_min_{t}", "maxf": "v_max_{t}"}
# What has one instruction and one source.
_INTEGRAL = {"floor": "v_floor_{t}", "ceil": "v_ceil_{t}", "trunc": "v_trunc_{t}", "round_even": "v_rndne_{t}"}
_FUNCTIONS = {
    "f32": {"sqrt": "v_sqrt_f32", "rsqrt": "v_rsq_f32", "exp2": "v_exp_f32", "log2": "v_log_f32"},
    "f16": {"sqrt": "v_sqrt_f16", "rsqrt": "v_rsq_f16", "exp2": "v_exp_f16", "log2": "v_log_f16"},
}
# The comparison, and the one that holds with the sources exchanged; with a NaN only V_CMP_NEQ holds.
_COMPARES = {
    "eqf": ("eq", "eq"), "nef": ("neq", "neq"), "ltf": ("lt", "gt"), "lef": ("le", "ge"), "gtf": ("gt", "lt"), "gef": ("ge", "le"),
}
_NEGATED = "neg_lo:[0,1]", "neg_hi:[0,1]"
_PACKED = {
    "addf": ("v_pk_add_f16",), "subf": ("v_pk_add_f16", *_NEGATED), "mulf": ("v_pk_mul_f16",), "minf": ("v_pk_min_f16",),
    "maxf": ("v_pk_max_f16",), "fma": ("v_pk_fma_f16",),
}
# Rows of bf16 whose result is one, as f32 gives it: an operand, or an integer of no more bits than it.
_EXACT_IN_F32 = (
    "minf", "maxf", "minf_nan", "maxf_nan", "clampf", "clampf_nan", "floor", "ceil", "trunc", "round_even",
)


def rules() -> dict[str, Rule]:
    table: dict[str, Rule] = {}
    for t in _WIDTH:
        form = FORM[t]
        table |= {f"{row}.{t}": commuting(opcode.format(t=t), form) for row, opcode in _COMMUTING.items()}
        table |= {f"{row}.{t}": vector(opcode.format(t=t), form) for row, opcode in _INTEGRAL.items()}
        table |= {f"{row}.{t}": vector(opcode, form) for row, opcode in _FUNCTIONS.get(t, {}).items()}
        for row, (opcode, other) in _COMPARES.items():
            table[f"{row}.{t}"] = either_order(f"v_cmp_{opcode}_{t}", f"v_cmp_{other}_{t}", "i1")
        table[f"isnan.{t}"] = partial(_is_nan, t)
        table |= {f"{row}.{t}": partial(_nan_wins, row[:4], t) for row in ("minf_nan", "maxf_nan")}
    for t in ("f16", "f32"):
        table[f"subf.{t}"] = either_order(f"v_sub_{t}", f"v_subrev_{t}", FORM[t])
        table |= {f"clampf.{t}": partial(_clamp, t), f"clampf_nan.{t}": partial(_clamp_nan, t)}
    table |= {"fma.f16": vector("v_fma_f16", "e16"), "fma.f64": vector("v_fma_f64", "w64"), "fma.f32": _fused}
    table["subf.f64"] = vector("v_add_f64", "w64", "neg:[0,1]")
    table |= {f"{row}.f16x2": vector(opcode, "w32", *modifiers) for row, (opcode, *modifiers) in _PACKED.items()}
    table |= {"exp.f32": _exponential, "log.f32": _logarithm}
    table |= {f"{row}.bf16": partial(_exactly, row) for row in _EXACT_IN_F32}
    return table | _signs()


# --- signs -------------------------------------------------------------------------------------------------------------------


def _signs() -> dict[str, Rule]:
    """A sign is a bit, also of packed halves, and of the high word of f64."""
    table: dict[str, Rule] = {}
    for t, bits in (("f16", 1 << 15), ("bf16", 1 << 15), ("f32", 1 << 31), ("f16x2", 0x80008000), ("bf16x2", 0x80008000)):
        table |= {f"negf.{t}": partial(_sign, "xori.i32", bits), f"absf.{t}": partial(_sign, "andi.i32", ~bits)}
    table["negf.f64"] = partial(_sign_of_high_word, "xori.i32", 1 << 31)
    return table | {"absf.f64": partial(_sign_of_high_word, "andi.i32", ~(1 << 31))}


def _sign(key: str, mask: int, code: Code, x: Element) -> Element:
    return code(key, x, i32(mask))


def _sign_of_high_word(key: str, mask: int, code: Code, x: Element) -> Element:
    low, high = halves(x)
    return joined(code, low, code(key, high, i32(mask)), "f64")


# --- order -------------------------------------------------------------------------------------------------------------------


def _is_nan(t: str, code: Code, x: Element) -> Slice:
    return emit(code, f"v_cmp_u_{t}", "i1", x, x)


def _nan_wins(row: str, t: str, code: Code, x: Element, y: Element) -> Element:
    """V_MIN and V_MAX prefer the number; where either is a NaN, so is the result."""
    ordered = emit(code, f"v_cmp_o_{t}", "i1", x, y)
    return code(f"select.{t}", ordered, code(f"{row}.{t}", x, y), Const(t, NAN[t]))


def _clamp(t: str, code: Code, x: Element, low: Element, high: Element) -> Element:
    """V_MED3 of known bounds in order: of a NaN it is the smallest of the others, the lower bound."""
    if isinstance(low, Const) and isinstance(high, Const) and _number(t, low) <= _number(t, high):
        return emit(code, f"v_med3_{t}", FORM[t], x, low, high)
    return code(f"minf.{t}", code(f"maxf.{t}", x, low), high)


def _clamp_nan(t: str, code: Code, x: Element, low: Element, high: Element) -> Element:
    ordered = emit(code, f"v_cmp_o_{t}", "i1", x, x)
    return code(f"select.{t}", ordered, code(f"clampf.{t}", x, low, high), x)


def _number(t: str, const: Const) -> float:
    return float_value(const.bits, t)


def _exactly(row: str, code: Code, *operands: Element) -> Element:
    wide = code(f"{row}.f32", *(code("castf.bf16.f32", x) for x in operands))
    return code("trunci.i32.i16", code("shru.i32", wide, i32(16)))


# --- products and functions ----------------------------------------------------------------------------------------------------


def _fused(code: Code, x: Element, y: Element, z: Element) -> Slice:
    """V_FMA takes no literal. V_FMAAK has one as the addend, V_FMAMK as a factor, both with registers of lanes beside it."""
    x, y = (y, x) if isinstance(x, Const) else (x, y)
    for opcode, literal, others in (("v_fmaak_f32", z, (x, y)), ("v_fmamk_f32", y, (x, z))):
        in_lanes = not any(isinstance(e, Const) or code.uniform(e) for e in others)
        if in_lanes and isinstance(literal, Const) and not is_inline(literal.bits, 32):
            return code.inst(opcode, "w32", *(e.bits if isinstance(e, Const) else e for e in (x, y, z)))
    return emit(code, "v_fma_f32", "w32", x, y, z)


def _exponential(code: Code, x: Element) -> Element:
    """2**(x·log2 e): the product's rounding costs |x| ulp, within the row's 3 + 2|x|."""
    return code("exp2.f32", code("mulf.f32", x, real(1 / math.log(2))))


def _logarithm(code: Code, x: Element) -> Element:
    return code("mulf.f32", code("log2.f32", x), real(math.log(2)))
