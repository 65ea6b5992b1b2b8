"""Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions")."""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter, Facts
from tilefw_nvidia.isa.rows.packed import elementwise

CHAPTER = Chapter()
form = CHAPTER.form

INTEGERS = "u16 u32 u64 s16 s32 s64"
SIGNED = "s16 s32 s64"
NARROW = "u16 u32 s16 s32"
DOUBLE = {"u16": "u32", "u32": "u64", "s16": "s32", "s32": "s64"}


@form("add.type d, a, b", type=INTEGERS, unit="alu", section="Integer Arithmetic: add")
def add(m):
    """d = a + b, modulo 2**bits."""
    return lambda lanes, a, b: lanes.add(a, b)


@form("add.sat.s32 d, a, b", unit="alu", section="Integer Arithmetic: add")
def add_saturating(m):
    """d = a + b, clamped to the range of s32."""
    return lambda lanes, a, b: lanes.add_saturate(a, b, True)


@form("add.type d, a, b", type="u16x2 s16x2", unit="alu", section="Integer Arithmetic: add", ptx="8.0", since=90)
def add_halves(m):
    """d = a + b in each half."""
    return elementwise(lambda lanes, a, b: lanes.add(a, b), packed=True)


@form("sub.type d, a, b", type=INTEGERS, unit="alu", section="Integer Arithmetic: sub")
def sub(m):
    """d = a - b, modulo 2**bits."""
    return lambda lanes, a, b: lanes.sub(a, b)


@form("sub.sat.s32 d, a, b", unit="alu", section="Integer Arithmetic: sub")
def sub_saturating(m):
    """d = a - b, clamped to the range of s32."""
    return lambda lanes, a, b: lanes.sub_saturate(a, b, True)


@form("mul.lo.type d, a, b", type=INTEGERS, unit="fma", section="Integer Arithmetic: mul")
def mul_lo(m):
    """The low half of a * b."""
    return lambda lanes, a, b: lanes.mul(a, b)


@form("mul.hi.type d, a, b", type=INTEGERS, unit="fma", section="Integer Arithmetic: mul")
def mul_hi(m):
    """The high half of a * b."""
    signed = m.type_of().signed
    return lambda lanes, a, b: lanes.mul_high(a, b, signed)


def _wide(source: str, wide: str):
    """mul.wide and mad.wide: one form for each type, for the destination's type is another."""
    signed = source[0] == "s"

    @form(f"mul.wide.{source} d:{wide}, a, b", unit="fma", section="Integer Arithmetic: mul")
    def mul_wide(m):
        """The whole product, twice as wide."""
        return lambda lanes, a, b: lanes.mul_wide(a, b, signed)

    @form(f"mad.wide.{source} d:{wide}, a, b, c:{wide}", unit="fma", section="Integer Arithmetic: mad")
    def mad_wide(m):
        """The whole product plus c, twice as wide."""
        return lambda lanes, a, b, c: lanes.add(lanes.mul_wide(a, b, signed), c)


for _source, _double in DOUBLE.items():
    _wide(_source, _double)


@form("mad.lo.type d, a, b, c", type=INTEGERS, unit="fma", section="Integer Arithmetic: mad")
def mad_lo(m):
    """The low half of a * b, plus c."""
    return lambda lanes, a, b, c: lanes.add(lanes.mul(a, b), c)


@form("mad.hi.type d, a, b, c", type=INTEGERS, unit="fma", section="Integer Arithmetic: mad")
def mad_hi(m):
    """The high half of a * b, plus c."""
    signed = m.type_of().signed
    return lambda lanes, a, b, c: lanes.add(lanes.mul_high(a, b, signed), c)


@form("mad.hi.sat.s32 d, a, b, c", unit="fma", section="Integer Arithmetic: mad")
def mad_hi_saturating(m):
    """The high half of a * b, plus c, clamped."""
    return lambda lanes, a, b, c: lanes.add_saturate(lanes.mul_high(a, b, True), c, True)


def _low24(lanes, a, signed):
    return lanes.shr(lanes.shl(a, lanes.const(8, 32)), lanes.const(8, 32), signed)


def _product24(lanes, a, b, half, signed):
    """Bits 0..31 ("lo") or 16..47 ("hi") of the 48-bit product of the low 24 bits."""
    wide = lanes.mul_wide(_low24(lanes, a, signed), _low24(lanes, b, signed), signed)
    return lanes.truncate(wide if half == "lo" else lanes.shr(wide, lanes.const(16, 32), signed), 32)


@form("mul24.half.type d, a, b", half="lo hi", type="u32 s32", unit="fma", section="Integer Arithmetic: mul24")
def mul24(m):
    """24-bit by 24-bit product: its low 32 bits, or bits 16 to 47."""
    signed = m.type_of().signed
    return lambda lanes, a, b: _product24(lanes, a, b, m.half, signed)


@form("mad24.half.type d, a, b, c", half="lo hi", type="u32 s32", unit="fma", section="Integer Arithmetic: mad24")
def mad24(m):
    """mul24, plus c."""
    signed = m.type_of().signed
    return lambda lanes, a, b, c: lanes.add(_product24(lanes, a, b, m.half, signed), c)


@form("mad24.hi.sat.s32 d, a, b, c", unit="fma", section="Integer Arithmetic: mad24")
def mad24_saturating(m):
    """mul24.hi, plus c, clamped."""
    return lambda lanes, a, b, c: lanes.add_saturate(_product24(lanes, a, b, "hi", True), c, True)


@form("div.type d, a, b", type=INTEGERS, unit="alu", section="Integer Arithmetic: div")
def div(m):
    """Quotient, truncating. By zero: an unspecified, machine-dependent value (the algebra's)."""
    signed = m.type_of().signed
    return lambda lanes, a, b: lanes.div(a, b, signed)


@form("rem.type d, a, b", type=INTEGERS, unit="alu", section="Integer Arithmetic: rem")
def rem(m):
    """Remainder of the truncating quotient. By zero: an unspecified, machine-dependent value (the algebra's)."""
    signed = m.type_of().signed
    return lambda lanes, a, b: lanes.rem(a, b, signed)


@form("abs.type d, a", type=SIGNED, unit="alu", section="Integer Arithmetic: abs")
def absolute(m):
    """|a|; of the smallest, itself."""
    return lambda lanes, a: lanes.abs(a)


@form("neg.type d, a", type=SIGNED, unit="alu", section="Integer Arithmetic: neg")
def neg(m):
    """0 - a."""
    return lambda lanes, a: lanes.neg(a)


def _extreme(name: str):
    def build(m):
        """The smaller or larger, in each element; `.relu` clamps negative results to 0."""
        kind = m.type_of()

        def one(lanes, a, b):
            result = getattr(lanes, name)(a, b, kind.signed)
            return lanes.max(result, lanes.const(0, kind.bits // kind.lanes), True) if m.relu else result

        return elementwise(one, kind.lanes > 1)

    return build


for _name in ("min", "max"):
    _facts: Facts = dict(unit="alu", section=f"Integer Arithmetic: {_name}")
    form(f"{_name}.type d, a, b", type=INTEGERS, **_facts)(_extreme(_name))
    form(f"{_name}.type d, a, b", type="u16x2 s16x2", ptx="8.0", since=90, **_facts)(_extreme(_name))
    form(f"{_name}.relu.type d, a, b", type="s16x2 s32", ptx="8.0", since=90, **_facts)(_extreme(_name))


@form("sad.type d, a, b, c", type=INTEGERS, unit="alu", section="Integer Arithmetic: sad")
def sad(m):
    """c + |a - b|; the difference is unsigned, hence max - min."""
    signed = m.type_of().signed
    return lambda lanes, a, b, c: lanes.add(c, lanes.sub(lanes.max(a, b, signed), lanes.min(a, b, signed)))


def _parts(lanes, a, bits, signed):
    extend = lanes.sign_extend if signed else lanes.zero_extend
    return [extend(part, 32) for part in lanes.split(a, bits)]


@form("dp4a.atype.btype d:b32, a:b32, b:b32, c:b32", atype="u32 s32", btype="u32 s32",
      unit="fma", section="Integer Arithmetic: dp4a", ptx="5.0", since=61)
def dp4a(m):
    """c plus the dot product of four bytes of a with four of b."""

    def meaning(lanes, a, b, c):
        for x, y in zip(_parts(lanes, a, 8, m.atype == "s32"), _parts(lanes, b, 8, m.btype == "s32"), strict=True):
            c = lanes.add(c, lanes.mul(x, y))
        return c

    return meaning


@form("dp2a.half.atype.btype d:b32, a:b32, b:b32, c:b32", half="lo hi", atype="u32 s32", btype="u32 s32",
      unit="fma", section="Integer Arithmetic: dp2a", ptx="5.0", since=61)
def dp2a(m):
    """c plus the dot product of two halves of a with two bytes of the low or high half of b."""
    first = 0 if m.half == "lo" else 2

    def meaning(lanes, a, b, c):
        few = _parts(lanes, b, 8, m.btype == "s32")[first : first + 2]
        for x, y in zip(_parts(lanes, a, 16, m.atype == "s32"), few, strict=True):
            c = lanes.add(c, lanes.mul(x, y))
        return c

    return meaning
