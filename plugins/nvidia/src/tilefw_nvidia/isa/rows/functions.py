"""Roots, reciprocals and transcendental functions (PTX ISA, "Floating-Point Instructions").

`.approx` leaves the result open within an error that the manual states; ours is within 1 ulp of the true one, inside
that bound except that the manual's absolute bounds for sin, cos (2**-20.5 in the quadrant 00) and lg2 are looser still.
"""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter
from tilefw_nvidia.isa.rows.packed import elementwise

CHAPTER = Chapter()
form = CHAPTER.form

ROUNDING = "rn rz rm rp"
SECTION = "Floating-Point"


def _approximate(function: str, packed: bool = False):
    def build(m):
        """The function, within 1 ulp (the manual's bound is stated in its section)."""
        kind = m.type_of()
        ftz = bool(m.ftz)
        return elementwise(lambda lanes, a: lanes.fapprox(a, function, kind.format, ftz), kind.lanes > 1)

    return build


for _name, _function in (
    ("rcp", "rcp"),
    ("rsqrt", "rsqrt"),
    ("sqrt", "sqrt"),
    ("sin", "sin"),
    ("cos", "cos"),
    ("lg2", "log2"),
    ("ex2", "exp2"),
):
    form(f"{_name}.approx{{.ftz}}.type d, a", type="f32", unit="sfu", section=f"{SECTION}: {_name}", ptx="1.4")(
        _approximate(_function)
    )

form("tanh.approx.type d, a", type="f32", unit="sfu", section=f"{SECTION}: tanh", ptx="7.0", since=75)(_approximate("tanh"))
for _name, _function in (("tanh", "tanh"), ("ex2", "exp2")):
    _section = f"Half Precision Floating-Point: {_name}"
    form(f"{_name}.approx.type d, a", type="f16 f16x2", unit="sfu", section=_section, ptx="7.0", since=75)(_approximate(_function))
form("tanh.approx.type d, a", type="bf16 bf16x2", unit="sfu", section="Half Precision Floating-Point: tanh", ptx="7.8", since=90)(
    _approximate("tanh")
)
form("ex2.approx.ftz.type d, a", type="bf16 bf16x2", unit="sfu", section="Half Precision Floating-Point: ex2", ptx="7.8", since=90)(
    _approximate("exp2")
)


@form("rcp.rnd{.ftz}.f32 d, a", rnd=ROUNDING, unit="sfu", section=f"{SECTION}: rcp", ptx="1.4", since=20)
def rcp_f32(m):
    """1 / a, rounded once."""
    return lambda lanes, a: lanes.fdiv(lanes.const(0x3F800000, 32), a, "f32", m.rnd, bool(m.ftz))


@form("rcp.rnd.f64 d, a", rnd=ROUNDING, unit="fp64", section=f"{SECTION}: rcp", ptx="1.4", since=20)
def rcp_f64(m):
    """1 / a, rounded once."""
    return lambda lanes, a: lanes.fdiv(lanes.const(0x3FF0000000000000, 64), a, "f64", m.rnd)


@form("sqrt.rnd{.ftz}.f32 d, a", rnd=ROUNDING, unit="sfu", section=f"{SECTION}: sqrt", ptx="1.4", since=20)
def sqrt_f32(m):
    """The square root, rounded once."""
    return lambda lanes, a: lanes.fsqrt(a, "f32", m.rnd, bool(m.ftz))


@form("sqrt.rnd.f64 d, a", rnd=ROUNDING, unit="fp64", section=f"{SECTION}: sqrt", ptx="1.4", since=20)
def sqrt_f64(m):
    """The square root, rounded once."""
    return lambda lanes, a: lanes.fsqrt(a, "f64", m.rnd)


def _upper_half(function: str):
    def build(m):
        """The function in f64 with the low 32 bits of the result zero, as the manual defines it."""
        ftz = bool(m.ftz)

        def meaning(lanes, a):
            result = lanes.fapprox(a, function, "f64", ftz)
            return lanes.and_(result, lanes.const(0xFFFFFFFF00000000, 64))

        return meaning

    return build


form("rcp.approx.ftz.f64 d, a", unit="sfu", section=f"{SECTION}: rcp.approx.ftz.f64", ptx="2.1", since=20)(_upper_half("rcp"))
form("rsqrt.approx.f64 d, a", unit="sfu", section=f"{SECTION}: rsqrt", ptx="1.4", since=13)(_upper_half("rsqrt"))
form("rsqrt.approx.ftz.f64 d, a", unit="sfu", section=f"{SECTION}: rsqrt.approx.ftz.f64", ptx="4.0", since=20)(_upper_half("rsqrt"))
