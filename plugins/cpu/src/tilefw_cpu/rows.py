"""Rows of the elementwise table as LLVM IR: which there are, and the instruction or intrinsic of each.

LLVM's Language Reference says what each computes; what tile IR means beyond it (shifts by the width and more, quotients by zero) is
written out around it. Every other row is made of these by core.
"""

from __future__ import annotations

INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("f32", "f64")
SMALL = (
    "f16", "bf16", "f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "!tile.fp8e4b15", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN", "i4",
)
"""Types that are kept as their codes, or only converted."""

INSTRUCTIONS = {
    "addi": "add", "subi": "sub", "muli": "mul", "andi": "and", "ori": "or", "xori": "xor", "addf": "fadd", "subf": "fsub",
    "mulf": "fmul", "divf": "fdiv", "div_rn": "fdiv",
}
COMPARES = {
    "eqi": "icmp eq", "nei": "icmp ne", "lts": "icmp slt", "les": "icmp sle", "gts": "icmp sgt", "ges": "icmp sge",
    "ltu": "icmp ult", "leu": "icmp ule", "gtu": "icmp ugt", "geu": "icmp uge",
    "eqf": "fcmp oeq", "nef": "fcmp une", "ltf": "fcmp olt", "lef": "fcmp ole", "gtf": "fcmp ogt", "gef": "fcmp oge",
}
INTRINSICS = {
    "mins": "smin", "maxs": "smax", "minu": "umin", "maxu": "umax", "popc": "ctpop", "fma": "fma", "absf": "fabs",
    "minf": "minimumnum", "maxf": "maximumnum", "minf_nan": "minimum", "maxf_nan": "maximum", "sqrt": "sqrt", "sqrt_rn": "sqrt",
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round_even": "roundeven",
}
FLAGGED = {"absi": "abs", "clz": "ctlz"}
"""Intrinsics with a last operand that says whether some input is poison; it is false."""
CASTS = {
    "exts": "sext", "extu": "zext", "trunci": "trunc", "s2f": "sitofp", "u2f": "uitofp", "f2s": "fptosi",
    "f2u": "fptoui",
}
SHIFTS = {"shl": "shl", "shru": "lshr", "shrs": "ashr"}
QUOTIENTS = {"divs": "sdiv", "divu": "udiv", "rems": "srem", "remu": "urem"}

_INTEGER_ROWS = ("addi", "subi", "muli", "andi", "ori", "xori", "mins", "maxs", "minu", "maxu", "popc", *COMPARES, *FLAGGED)
_FLOAT_ROWS = (
    "addf", "subf", "mulf", "divf", "div_rn", "fma", "absf", "negf", "minf", "maxf", "minf_nan", "maxf_nan", "sqrt", "sqrt_rn",
    "floor", "ceil", "trunc", "round_even", "isnan", *COMPARES,
)


def rows(halves: bool) -> frozenset[str]:
    """The keys of all rows that are written; with `halves`, conversions from and to f16 too."""
    found = {f"select.{t}" for t in ("i1", *INTEGERS, *FLOATS, *SMALL)}
    found |= {f"{row}.i1" for row in ("andi", "ori", "xori", "eqi", "nei")}
    found |= {f"{row}.{t}" for t in INTEGERS for row in (*_INTEGER_ROWS, *SHIFTS, *QUOTIENTS) if not row.endswith("f")}
    found |= {f"mulh{sign}.{t}" for t in ("i8", "i16", "i32", "i64") for sign in "su"}
    found |= {f"{row}.{t}" for t in FLOATS for row in _FLOAT_ROWS if row not in COMPARES or row.endswith("f")}
    wider = [(a, b) for i, a in enumerate(INTEGERS) for b in INTEGERS[i + 1 :]]
    found |= {f"{row}.{a}.{b}" for a, b in (*wider, *(("i1", t) for t in INTEGERS)) for row in ("exts", "extu")}
    found |= {f"trunci.{b}.{a}" for a, b in (*wider, *(("i1", t) for t in INTEGERS))}
    found |= {f"{row}.{a}.{b}" for a in INTEGERS for b in FLOATS for row in ("s2f", "u2f")}
    found |= {f"{row}.{b}.{a}" for a in INTEGERS for b in FLOATS for row in ("f2s", "f2u")}
    found |= {"castf.f32.f64", "castf.f64.f32"}
    found |= {f"scalef.{t}" for t in FLOATS}
    return frozenset(found | ({"castf.f16.f32", "castf.f32.f16"} if halves else set()))
