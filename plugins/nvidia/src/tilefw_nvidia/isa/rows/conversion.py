"""Conversions (PTX ISA, "Data Movement and Conversion: cvt"): integers, floats, packs of two, and the 8-bit floats."""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter, Facts
from tilefw_nvidia.isa.types import TYPES

CHAPTER = Chapter()
form = CHAPTER.form

INTEGERS = "u8 u16 u32 u64 s8 s16 s32 s64"
FLOATS = "f16 f32 f64"
ROUNDING = "rn rz rm rp"
INTEGRAL = "rni rzi rmi rpi"
SECTION = "Data Movement and Conversion: cvt"
FACTS: Facts = dict(unit="convert", section=SECTION)


def _saturation_rule(m):
    """.sat clamps integers: it stands only where the destination cannot hold every source value."""
    d, a = TYPES[m.dtype], TYPES[m.atype]
    if not m.sat:
        return ""
    low = a.signed and not d.signed
    high = a.bits - a.signed > d.bits - d.signed
    return "" if low or high else "the destination holds every value of the source: .sat is not allowed"


@form("cvt{.sat}.dtype.atype d:dtype^, a:atype^", dtype=INTEGERS, atype=INTEGERS, refuse=_saturation_rule, **FACTS)
def integer_to_integer(m):
    """Truncated, extended by the source's sign, or clamped with .sat."""
    d, a = TYPES[m.dtype], TYPES[m.atype]

    def resize(lanes, x):
        if d.bits <= a.bits:
            return lanes.truncate(x, d.bits)
        return lanes.sign_extend(x, d.bits) if a.signed else lanes.zero_extend(x, d.bits)

    if not m.sat:
        return resize

    def clamp(lanes, x):
        # Bounds of the destination that lie inside the source's range; each is compared in the source's type.
        top = (1 << (d.bits - d.signed)) - 1
        if top < (1 << (a.bits - a.signed)) - 1:
            x = lanes.min(x, lanes.const(top, a.bits), a.signed)
        if a.signed and not d.signed:
            x = lanes.max(x, lanes.const(0, a.bits), True)
        if a.signed and d.signed and d.bits < a.bits:
            x = lanes.max(x, lanes.const(-top - 1, a.bits), True)
        return resize(lanes, x)

    return clamp


def _flushes_f32(m):
    return "" if not m.ftz or "f32" in (m.dtype, m.atype) else ".ftz needs an f32 on one side"


@form(
    "cvt.irnd{.ftz}{.sat}.dtype.atype d:dtype^, a:atype^", irnd=INTEGRAL, dtype=INTEGERS, atype=FLOATS, refuse=_flushes_f32, **FACTS
)
def float_to_integer(m):
    """Rounded to an integer and clamped to the destination's range; NaN gives 0."""
    d, a = TYPES[m.dtype], TYPES[m.atype]
    return lambda lanes, x: lanes.float_to_int(x, a.format, d.bits, d.signed, m.irnd[:2], bool(m.ftz))


@form("cvt.irnd.dtype.bf16 d:dtype^, a:bf16^", irnd=INTEGRAL, dtype=INTEGERS, ptx="7.8", since=90, **FACTS)
def bf16_to_integer(m):
    """Rounded to an integer and clamped to the destination's range; NaN gives 0."""
    d = TYPES[m.dtype]
    return lambda lanes, x: lanes.float_to_int(x, "bf16", d.bits, d.signed, m.irnd[:2])


def _saturated(lanes, x, fmt, sat):
    return lanes.fconvert(x, fmt, fmt, "rn", False, "unit") if sat else x


@form(
    "cvt.rnd{.ftz}{.sat}.dtype.atype d:dtype^, a:atype^", rnd=ROUNDING, dtype=FLOATS, atype=INTEGERS, refuse=_flushes_f32, **FACTS
)
def integer_to_float(m):
    """Rounded once; .sat clamps to [0, 1]."""
    d, a = TYPES[m.dtype], TYPES[m.atype]
    return lambda lanes, x: _saturated(lanes, lanes.int_to_float(x, a.signed, d.format, m.rnd), d.format, m.sat)


@form("cvt.rnd.bf16.atype d:bf16^, a:atype^", rnd=ROUNDING, atype=INTEGERS, ptx="7.8", since=90, **FACTS)
def integer_to_bf16(m):
    """Rounded once."""
    a = TYPES[m.atype]
    return lambda lanes, x: lanes.int_to_float(x, a.signed, "bf16", m.rnd)


def _convert(m):
    d, a = TYPES[m.dtype], TYPES[m.atype]
    saturate = "unit" if m.sat else ""
    return lambda lanes, x: lanes.fconvert(x, a.format, d.format, m.rnd or "rn", bool(m.ftz), saturate)


def _narrows(m):
    if TYPES[m.dtype].bits >= TYPES[m.atype].bits:
        return "a rounding mode is allowed only where precision is lost"
    return _flushes_f32(m)


@form(
    "cvt.rnd{.ftz}{.sat}.dtype.atype d:dtype^, a:atype^", rnd=ROUNDING, dtype="f16 f32", atype="f32 f64", refuse=_narrows, **FACTS
)
def float_narrowing(m):
    """To a narrower float, rounded once."""
    return _convert(m)


def _widens(m):
    return _flushes_f32(m) if TYPES[m.dtype].bits > TYPES[m.atype].bits else "narrowing needs a rounding mode"


@form("cvt{.ftz}{.sat}.dtype.atype d:dtype^, a:atype^", dtype="f32 f64", atype="f16 f32", refuse=_widens, **FACTS)
def float_widening(m):
    """To a wider float, exactly."""
    return _convert(m)


def _same_float(m):
    return _flushes_f32(m) if m.dtype == m.atype else "the types differ"


@form(
    "cvt{.irnd}{.ftz}{.sat}.dtype.atype d:dtype^, a:atype^", irnd=INTEGRAL, dtype=FLOATS, atype=FLOATS, refuse=_same_float, **FACTS
)
def float_to_integral(m):
    """Rounded to an integral value in the same type, or only flushed and clamped."""
    fmt = TYPES[m.dtype].format

    def meaning(lanes, x):
        x = lanes.fround(x, fmt, m.irnd[:2], bool(m.ftz)) if m.irnd else x
        return lanes.fconvert(x, fmt, fmt, "rn", bool(m.ftz), "unit" if m.sat else "") if m.sat or not m.irnd else x

    return meaning


# --- bf16, relu, satfinite --------------------------------------------------------------------------------------------


def _finite(m):
    return "finite" if m.satfinite else ""


@form("cvt.rnd{.relu}{.satfinite}.dtype.f32 d:dtype^, a:f32^", rnd="rn rz", dtype="bf16", **FACTS,
      ptx="7.0", since=80, needs={"satfinite": ("8.1", 80)})
def f32_to_bf16(m):
    """To bf16, rounded once; .relu clamps negative results to 0."""
    return lambda lanes, x: lanes.fconvert(x, "f32", "bf16", m.rnd, False, _finite(m), bool(m.relu))


@form(
    "cvt.rnd{.relu}{.satfinite}.f16.f32 d:f16^, a:f32^",
    rnd="rn rz",
    ptx="7.0",
    since=80,
    needs={"satfinite": ("8.1", 80)},
    refuse=lambda m: "" if m.relu or m.satfinite else "this is the plain form",
    **FACTS,
)
def f32_to_f16_relu(m):
    """To f16, rounded once; .relu clamps negative results to 0, .satfinite overflow to the largest finite value."""
    return lambda lanes, x: lanes.fconvert(x, "f32", "f16", m.rnd, False, _finite(m), bool(m.relu))


@form("cvt{.ftz}.f32.bf16 d:f32^, a:bf16^", ptx="7.1", since=80, **FACTS)
def bf16_to_f32(m):
    """To f32, exactly."""
    return lambda lanes, x: lanes.fconvert(x, "bf16", "f32", "rn", bool(m.ftz))


@form("cvt.rnd{.relu}{.satfinite}.dtype.f32 d:dtype, a:f32, b:f32", rnd="rn rz", dtype="f16x2 bf16x2", **FACTS,
      ptx="7.0", since=80, needs={"satfinite": ("8.1", 80)})
def f32_pair_to_halves(m):
    """Two conversions: a to the high half, b to the low half."""
    fmt = TYPES[m.dtype].format

    def meaning(lanes, a, b):
        return lanes.join([lanes.fconvert(x, "f32", fmt, m.rnd, False, _finite(m), bool(m.relu)) for x in (b, a)])

    return meaning


@form("cvt.rna{.satfinite}.tf32.f32 d:b32, a:f32", ptx="7.0", since=80, needs={"satfinite": ("8.1", 80)}, **FACTS)
def f32_to_tf32(m):
    """To tf32, nearest with ties away."""
    return lambda lanes, x: lanes.fconvert(x, "f32", "tf32", "rna", False, _finite(m))


@form(
    "cvt.rnd{.relu}{.satfinite}.tf32.f32 d:b32, a:f32", rnd="rn rz", ptx="7.8", since=90, needs={"satfinite": ("8.6", 100)}, **FACTS
)
def f32_to_tf32_rounded(m):
    """To tf32, rounded once."""
    return lambda lanes, x: lanes.fconvert(x, "f32", "tf32", m.rnd, False, _finite(m), bool(m.relu))


# --- 8-bit floats -----------------------------------------------------------------------------------------------------


@form("cvt.rn.satfinite{.relu}.dtype.f32 d:dtype, a:f32, b:f32", dtype="e4m3x2 e5m2x2", ptx="8.1", since=89, **FACTS)
def f32_pair_to_bytes(m):
    """Two conversions, clamped to the largest finite value: a to the high byte, b to the low byte."""
    fmt = TYPES[m.dtype].format
    return lambda lanes, a, b: lanes.join([lanes.fconvert(x, "f32", fmt, "rn", False, "finite", bool(m.relu)) for x in (b, a)])


@form("cvt.rn.satfinite{.relu}.dtype.f16x2 d:dtype, a:f16x2", dtype="e4m3x2 e5m2x2", ptx="8.1", since=89, **FACTS)
def halves_to_bytes(m):
    """Each half to a byte, clamped to the largest finite value."""
    fmt = TYPES[m.dtype].format

    def meaning(lanes, a):
        return lanes.join([lanes.fconvert(x, "f16", fmt, "rn", False, "finite", bool(m.relu)) for x in lanes.split(a, 16)])

    return meaning


@form("cvt.rn{.relu}.f16x2.atype d:f16x2, a:atype", atype="e4m3x2 e5m2x2", ptx="8.1", since=89, **FACTS)
def bytes_to_halves(m):
    """Each byte to a half, exactly."""
    fmt = TYPES[m.atype].format
    return lambda lanes, a: lanes.join([lanes.fconvert(x, fmt, "f16", "rn", False, "", bool(m.relu)) for x in lanes.split(a, 8)])


def _between_halves(m):
    if m.dtype == m.atype:
        return "the types are equal"
    if "bf16" not in (m.dtype, m.atype):
        return "another form has this"
    return "" if m.rnd or m.atype != "f64" else "narrowing needs a rounding mode"


@form("cvt{.rnd}.dtype.atype d:dtype^, a:atype^", rnd=ROUNDING, dtype="bf16 f16", atype="bf16 f16 f64", **FACTS,
      ptx="7.8", since=90, refuse=_between_halves)
def bf16_and_others(m):
    """Between bf16 and f16 or f64, rounded once: between the two halves to nearest where no mode is written, as ptxas has it."""
    return _convert(m)


@form("cvt{.irnd}.bf16.bf16 d:bf16^, a:bf16^", irnd=INTEGRAL, ptx="7.8", since=90, **FACTS)
def bf16_to_integral(m):
    """Rounded to an integral value, or the same."""
    return lambda lanes, x: lanes.fround(x, "bf16", m.irnd[:2]) if m.irnd else x


@form("cvt.f64.bf16 d:f64^, a:bf16^", ptx="7.8", since=90, **FACTS)
def bf16_to_f64(m):
    """To f64, exactly."""
    return lambda lanes, x: lanes.fconvert(x, "bf16", "f64")
