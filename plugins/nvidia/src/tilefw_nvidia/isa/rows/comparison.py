"""Comparison and selection (PTX ISA, "Comparison and Selection Instructions", "Half Precision Comparison Instructions")."""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter, Facts
from tilefw_nvidia.isa.types import TYPES

CHAPTER = Chapter()
form = CHAPTER.form

EQUAL = "eq ne"
SIGNED_OPS = "eq ne lt le gt ge"
UNSIGNED_OPS = "eq ne lt le gt ge lo ls hi hs"
FLOAT_OPS = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"
COMBINE = "and or xor"
BITS = "b16 b32 b64"
UNSIGNED = "u16 u32 u64"
SIGNED = "s16 s32 s64"
# lo, ls, hi, hs are the unsigned orders under other names ("Comparisons": Operators for Unsigned Integer).
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def comparison(op: str, type_name: str, ftz: bool = False):
    """The meaning (lanes, a, b) -> predicate of a comparison operator on one element of a type."""
    kind = TYPES[type_name]
    if kind.kind != "float":
        name, signed = _UNSIGNED_NAMES.get(op, op), kind.signed
        return lambda lanes, a, b: lanes.compare(a, b, name, signed)
    unordered = op.endswith("u") and op not in ("num",)
    name, fmt = (op[:-1] if unordered else op), kind.format
    return lambda lanes, a, b: lanes.fcompare(a, b, name, fmt, unordered, ftz)


def combine(lanes, op: str, p, c):
    return {"and": lanes.and_, "or": lanes.or_, "xor": lanes.xor}[op](p, c)


def _setp_plain(m):
    """p = a op b; q = not (a op b)."""
    compare = comparison(m.op, m.type, m.ftz)
    if not m.two:
        return lambda lanes, a, b: compare(lanes, a, b)

    def both(lanes, a, b):
        p = compare(lanes, a, b)
        return p, lanes.not_(p)

    return both


def _setp_combined(m):
    """p = (a op b) bool c; q = (not (a op b)) bool c."""
    compare = comparison(m.op, m.type, m.ftz)
    if not m.two:
        return lambda lanes, a, b, c: combine(lanes, m.bool, compare(lanes, a, b), c)

    def both(lanes, a, b, c):
        p = compare(lanes, a, b)
        return combine(lanes, m.bool, p, c), combine(lanes, m.bool, lanes.not_(p), c)

    return both


def _setp(ops: str, types: str, ftz: str = "", ptx: str = "1.0", since: int = 10, needs=None):
    """The two forms of setp, plain and combined, for types that share their operators."""
    facts: Facts = dict(type=types, op=ops, unit="alu", ptx=ptx, since=since, needs=needs)
    form(f"setp.op{ftz}.type d:pred|q, a, b", section="Comparison and Selection: setp", **facts)(_setp_plain)
    form(f"setp.op.bool{ftz}.type d:pred|q, a, b, c:pred", bool=COMBINE, section="Comparison and Selection: setp", **facts)(
        _setp_combined
    )


_setp(EQUAL, BITS)
_setp(UNSIGNED_OPS, UNSIGNED)
_setp(SIGNED_OPS, SIGNED)
_setp(FLOAT_OPS, "f32", "{.ftz}")
_setp(FLOAT_OPS, "f64", since=13)
_setp(FLOAT_OPS, "f16", "{.ftz}", ptx="4.2", since=53)
_setp(FLOAT_OPS, "bf16", ptx="7.8", since=90)


def _setp_halves(m):
    """p compares the low halves, q the high ones."""
    compare = comparison(m.op, m.type, m.ftz)

    def meaning(lanes, a, b, *c):
        pairs = zip(lanes.split(a, 16), lanes.split(b, 16), strict=True)
        results = [compare(lanes, x, y) for x, y in pairs]
        return tuple(combine(lanes, m.bool, p, c[0]) for p in results) if c else tuple(results)

    return meaning


for _type, _ftz, _ptx, _since in (("f16x2", "{.ftz}", "4.2", 53), ("bf16x2", "", "7.8", 90)):
    _facts: Facts = dict(type=_type, op=FLOAT_OPS, unit="alu", ptx=_ptx, since=_since, section="Half Precision Comparison: setp")
    form(f"setp.op{_ftz}.type d:pred|both, a, b", **_facts)(_setp_halves)
    form(f"setp.op.bool{_ftz}.type d:pred|both, a, b, c:pred", bool=COMBINE, **_facts)(_setp_halves)


# What set writes for true: all ones, or the format's 1.0.
_TRUE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


def _set(m):
    """d = (a op b [bool c]) ? true : 0, where true is all ones, or 1.0 in a float type."""
    compare, kind = comparison(m.op, m.stype, m.ftz), TYPES[m.dtype]
    true = _TRUE.get(kind.name, -1)

    def meaning(lanes, a, b, *c):
        p = compare(lanes, a, b)
        p = combine(lanes, m.bool, p, c[0]) if c else p
        return lanes.select(p, lanes.const(true, kind.bits), lanes.const(0, kind.bits))

    return meaning


def _set_halves(m):
    """set in each half; with an integer destination of 32 bits, all ones in the half."""
    compare = comparison(m.op, m.stype, m.ftz)
    true = _TRUE[TYPES[m.dtype].format] if TYPES[m.dtype].kind == "float" else -1

    def meaning(lanes, a, b, *c):
        halves = []
        for x, y in zip(lanes.split(a, 16), lanes.split(b, 16), strict=True):
            p = compare(lanes, x, y)
            p = combine(lanes, m.bool, p, c[0]) if c else p
            halves.append(lanes.select(p, lanes.const(true, 16), lanes.const(0, 16)))
        return lanes.join(halves)

    return meaning


def _set_forms(ops, stypes, dtypes, ftz="", ptx="1.0", since=10, needs=None, build=_set):
    facts: Facts = dict(
        op=ops, stype=stypes, dtype=dtypes, unit="alu", ptx=ptx, since=since, needs=needs, section="Comparison and Selection: set"
    )
    form(f"set.op{ftz}.dtype.stype d:dtype, a:stype, b:stype", **facts)(build)
    form(f"set.op.bool{ftz}.dtype.stype d:dtype, a:stype, b:stype, c:pred", bool=COMBINE, **facts)(build)


_set_forms(EQUAL, BITS, "u32 s32 f32")
_set_forms(UNSIGNED_OPS, UNSIGNED, "u32 s32 f32")
_set_forms(SIGNED_OPS, SIGNED, "u32 s32 f32")
_set_forms(FLOAT_OPS, "f32", "u32 s32 f32", "{.ftz}")
_set_forms(FLOAT_OPS, "f64", "u32 s32 f32", since=13)
# Integer results of half comparisons came with 6.5.
_INTEGER_RESULT = dict.fromkeys(("u16", "s16", "u32", "s32"), ("6.5", 53))
_set_forms(FLOAT_OPS, "f16", "f16 u16 s16 u32 s32", "{.ftz}", ptx="4.2", since=53, needs=_INTEGER_RESULT)
_set_forms(FLOAT_OPS, "bf16", "bf16 u16 s16 u32 s32", ptx="7.8", since=90)
_set_forms(FLOAT_OPS, "f16x2", "f16x2 u32 s32", "{.ftz}", ptx="4.2", since=53, needs=_INTEGER_RESULT, build=_set_halves)
_set_forms(FLOAT_OPS, "bf16x2", "bf16x2 u32 s32", ptx="7.8", since=90, build=_set_halves)


@form("selp.type d, a, b, c:pred", type="b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
      unit="alu", section="Comparison and Selection: selp")
def selp(m):
    """d = c ? a : b."""
    return lambda lanes, a, b, c: lanes.select(c, a, b)


@form("slct.type.s32 d:type, a:type, b:type, c:s32", type="b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
      unit="alu", section="Comparison and Selection: slct")
def slct_integer(m):
    """d = (c >= 0) ? a : b."""
    return lambda lanes, a, b, c: lanes.select(lanes.compare(c, lanes.const(0, 32), "ge", True), a, b)


@form("slct{.ftz}.type.f32 d:type, a:type, b:type, c:f32", type="b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
      unit="alu", section="Comparison and Selection: slct")
def slct_float(m):
    """d = (c >= 0) ? a : b; NaN takes b, -0 takes a."""
    return lambda lanes, a, b, c: lanes.select(lanes.fcompare(c, lanes.const(0, 32), "ge", "f32", False, m.ftz), a, b)
