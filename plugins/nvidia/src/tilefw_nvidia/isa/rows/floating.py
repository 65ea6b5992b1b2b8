"""Arithmetic of f32 and f64 (PTX ISA, "Floating-Point Instructions"). Results are IEEE 754's, rounded once."""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter, Facts

CHAPTER = Chapter()
form = CHAPTER.form

ROUNDING = "rn rz rm rp"
DIRECTED = {"rm": ("1.0", 20), "rp": ("1.0", 20)}  # the first to round f32 towards infinities: "Target ISA Notes"
SECTION = "Floating-Point"


@form("add{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=ROUNDING, unit="fma", section=f"{SECTION}: add", needs=DIRECTED)
def add_f32(m):
    """d = a + b. Without a rounding the assembler may contract it with a product; we do not."""
    return lambda lanes, a, b: lanes.fadd(a, b, "f32", m.rnd or "rn", bool(m.ftz), bool(m.sat))


@form("sub{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=ROUNDING, unit="fma", section=f"{SECTION}: sub", needs=DIRECTED)
def sub_f32(m):
    """d = a - b. Without a rounding the assembler may contract it with a product; we do not."""
    return lambda lanes, a, b: lanes.fsub(a, b, "f32", m.rnd or "rn", bool(m.ftz), bool(m.sat))


@form("mul{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=ROUNDING, unit="fma", section=f"{SECTION}: mul", needs=DIRECTED)
def mul_f32(m):
    """d = a * b. Without a rounding the assembler may contract it with a sum; we do not."""
    return lambda lanes, a, b: lanes.fmul(a, b, "f32", m.rnd or "rn", bool(m.ftz), bool(m.sat))


@form("add{.rnd}.f64 d, a, b", rnd=ROUNDING, unit="fp64", section=f"{SECTION}: add", since=13)
def add_f64(m):
    """d = a + b."""
    return lambda lanes, a, b: lanes.fadd(a, b, "f64", m.rnd or "rn")


@form("sub{.rnd}.f64 d, a, b", rnd=ROUNDING, unit="fp64", section=f"{SECTION}: sub", since=13)
def sub_f64(m):
    """d = a - b."""
    return lambda lanes, a, b: lanes.fsub(a, b, "f64", m.rnd or "rn")


@form("mul{.rnd}.f64 d, a, b", rnd=ROUNDING, unit="fp64", section=f"{SECTION}: mul", since=13)
def mul_f64(m):
    """d = a * b."""
    return lambda lanes, a, b: lanes.fmul(a, b, "f64", m.rnd or "rn")


def _fused_f32(m):
    """d = a * b + c, rounded once."""
    return lambda lanes, a, b, c: lanes.ffma(a, b, c, "f32", m.rnd, bool(m.ftz), bool(m.sat))


def _fused_f64(m):
    """d = a * b + c, rounded once."""
    return lambda lanes, a, b, c: lanes.ffma(a, b, c, "f64", m.rnd)


form("fma.rnd{.ftz}{.sat}.f32 d, a, b, c", rnd=ROUNDING, unit="fma", section=f"{SECTION}: fma", ptx="2.0", since=20)(_fused_f32)
form("mad.rnd{.ftz}{.sat}.f32 d, a, b, c", rnd=ROUNDING, unit="fma", section=f"{SECTION}: mad", ptx="2.0", since=20)(_fused_f32)
form("fma.rnd.f64 d, a, b, c", rnd=ROUNDING, unit="fp64", section=f"{SECTION}: fma", ptx="1.4", since=13)(_fused_f64)
form("mad.rnd.f64 d, a, b, c", rnd=ROUNDING, unit="fp64", section=f"{SECTION}: mad", since=13)(_fused_f64)


@form("div.rnd{.ftz}.f32 d, a, b", rnd=ROUNDING, unit="sfu", section=f"{SECTION}: div", ptx="1.4", since=20)
def div_f32(m):
    """d = a / b, rounded once."""
    return lambda lanes, a, b: lanes.fdiv(a, b, "f32", m.rnd, bool(m.ftz))


@form("div.how{.ftz}.f32 d, a, b", how="approx full", unit="sfu", section=f"{SECTION}: div", ptx="1.4")
def div_f32_approximate(m):
    """d = a / b, correctly rounded here. The manual allows 2 ulp (div.approx only for |b| in [2**-126, 2**126])."""
    return lambda lanes, a, b: lanes.fdiv(a, b, "f32", "rn", bool(m.ftz))


@form("div.rnd.f64 d, a, b", rnd=ROUNDING, unit="fp64", section=f"{SECTION}: div", ptx="1.4", since=20)
def div_f64(m):
    """d = a / b, rounded once."""
    return lambda lanes, a, b: lanes.fdiv(a, b, "f64", m.rnd)


@form("abs{.ftz}.f32 d, a", unit="alu", section=f"{SECTION}: abs")
def abs_f32(m):
    """|a|."""
    return lambda lanes, a: lanes.fabs(a, "f32", bool(m.ftz))


@form("abs.f64 d, a", unit="alu", section=f"{SECTION}: abs", since=13)
def abs_f64(m):
    """|a|."""
    return lambda lanes, a: lanes.fabs(a, "f64")


@form("neg{.ftz}.f32 d, a", unit="alu", section=f"{SECTION}: neg")
def neg_f32(m):
    """-a."""
    return lambda lanes, a: lanes.fneg(a, "f32", bool(m.ftz))


@form("neg.f64 d, a", unit="alu", section=f"{SECTION}: neg", since=13)
def neg_f64(m):
    """-a."""
    return lambda lanes, a: lanes.fneg(a, "f64")


def extreme(primitive: str, kind: str, nan: bool, ftz: bool, xorsign: bool):
    """The smaller or larger of two numbers of a format, by the name of the lanes' primitive; with `.xorsign.abs` that of the
    magnitudes, with the product's sign unless it is NaN."""
    bits = 64 if kind == "f64" else 32 if kind == "f32" else 16
    sign = 1 << (bits - 1)

    def plain(lanes, a, b):
        return getattr(lanes, primitive)(a, b, kind, nan, ftz)

    def signed(lanes, a, b):
        size = plain(lanes, lanes.fabs(a, kind), lanes.fabs(b, kind))
        result = lanes.or_(size, lanes.and_(lanes.xor(a, b), lanes.const(sign, bits)))
        return lanes.select(lanes.fclass(size, "notanumber", kind), size, result)

    return signed if xorsign else plain


def signs_and_magnitudes(m):
    """Neither stands alone."""
    return "" if bool(m.xorsign) == bool(m.abs) else ".xorsign and .abs stand together"


def _extreme(primitive: str):
    def build(m):
        """The smaller or larger; the number wins over NaN, or NaN with .NaN."""
        return extreme(primitive, m.type_of().format, bool(m.NaN), bool(m.ftz), bool(m.xorsign))

    return build


EXTREMES: Facts = dict(needs={"NaN": ("7.0", 80), "xorsign": ("7.2", 86)}, refuse=signs_and_magnitudes)
for _name in ("min", "max"):
    _section = f"{SECTION}: {_name}"
    form(f"{_name}{{.ftz}}{{.NaN}}{{.xorsign}}{{.abs}}.type d, a, b", type="f32", unit="alu", section=_section, **EXTREMES)(
        _extreme(f"f{_name}")
    )
    form(f"{_name}.type d, a, b", type="f64", unit="fp64", section=_section, since=13)(_extreme(f"f{_name}"))


@form("copysign.type d, a, b", type="f32 f64", unit="alu", section=f"{SECTION}: copysign", ptx="2.0", since=20)
def copysign(m):
    """b with the sign of a."""
    bits = m.type_of().bits
    sign = 1 << (bits - 1)

    def meaning(lanes, a, b):
        return lanes.or_(lanes.and_(a, lanes.const(sign, bits)), lanes.and_(b, lanes.const(sign - 1, bits)))

    return meaning


@form("testp.kind.type d:pred, a", kind="finite infinite number notanumber normal subnormal", type="f32 f64",
      unit="alu", section=f"{SECTION}: testp", ptx="2.0", since=20)
def testp(m):
    """Whether a is of the class."""
    fmt = m.type_of().format
    return lambda lanes, a: lanes.fclass(a, m.kind, fmt)
