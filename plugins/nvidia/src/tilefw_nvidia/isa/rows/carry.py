"""Extended-precision arithmetic through the condition code (PTX ISA, "Extended-Precision Integer Arithmetic Instructions").

The carry flag is a predicate register of its own, written by `.cc` forms and read by the forms that end in c.
"""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter

CHAPTER = Chapter()
form = CHAPTER.form

TYPES = "u32 s32 u64 s64"
# The 64-bit forms that write the flag came later (PTX ISA Notes: 4.3); ptxas takes those that only read it before.
WIDE = {"u64": ("4.3", 20), "s64": ("4.3", 20)}
SECTION = "Extended-Precision Integer Arithmetic"


@form("add.cc.type d, >carry, a, b", type=TYPES, unit="alu", section=f"{SECTION}: add.cc", ptx="1.2", needs=WIDE)
def add_cc(m):
    """d = a + b, carry out."""
    return lambda lanes, a, b: lanes.add_carry(a, b, lanes.const(0, 1))


@form("addc.type d, a, b, <carry", type=TYPES, unit="alu", section=f"{SECTION}: addc", ptx="1.2")
def addc(m):
    """d = a + b + carry."""
    return lambda lanes, a, b, carry: lanes.add_carry(a, b, carry)[0]


@form("addc.cc.type d, >carry, a, b, <carry", type=TYPES, unit="alu", section=f"{SECTION}: addc", ptx="1.2", needs=WIDE)
def addc_cc(m):
    """d = a + b + carry, carry out."""
    return lambda lanes, a, b, carry: lanes.add_carry(a, b, carry)


@form("sub.cc.type d, >carry, a, b", type=TYPES, unit="alu", section=f"{SECTION}: sub.cc", ptx="1.2", needs=WIDE)
def sub_cc(m):
    """d = a - b, borrow out."""
    return lambda lanes, a, b: lanes.sub_borrow(a, b, lanes.const(0, 1))


@form("subc.type d, a, b, <carry", type=TYPES, unit="alu", section=f"{SECTION}: subc", ptx="1.2")
def subc(m):
    """d = a - (b + borrow)."""
    return lambda lanes, a, b, carry: lanes.sub_borrow(a, b, carry)[0]


@form("subc.cc.type d, >carry, a, b, <carry", type=TYPES, unit="alu", section=f"{SECTION}: subc", ptx="1.2", needs=WIDE)
def subc_cc(m):
    """d = a - (b + borrow), borrow out."""
    return lambda lanes, a, b, carry: lanes.sub_borrow(a, b, carry)


def _half(m):
    signed = m.type_of().signed
    if m.half == "lo":
        return lambda lanes, a, b: lanes.mul(a, b)
    return lambda lanes, a, b: lanes.mul_high(a, b, signed)


@form("mad.half.cc.type d, >carry, a, b, c", half="lo hi", type=TYPES,
      unit="fma", section=f"{SECTION}: mad.cc", ptx="3.0", since=20, needs=WIDE)
def mad_cc(m):
    """Half of a * b, plus c, carry out."""
    half = _half(m)
    return lambda lanes, a, b, c: lanes.add_carry(half(lanes, a, b), c, lanes.const(0, 1))


@form("madc.half.type d, a, b, c, <carry", half="lo hi", type=TYPES, unit="fma", section=f"{SECTION}: madc", ptx="3.0", since=20)
def madc(m):
    """Half of a * b, plus c, plus carry."""
    half = _half(m)
    return lambda lanes, a, b, c, carry: lanes.add_carry(half(lanes, a, b), c, carry)[0]


@form("madc.half.cc.type d, >carry, a, b, c, <carry", half="lo hi", type=TYPES,
      unit="fma", section=f"{SECTION}: madc", ptx="3.0", since=20, needs=WIDE)
def madc_cc(m):
    """Half of a * b, plus c, plus carry, carry out."""
    half = _half(m)
    return lambda lanes, a, b, c, carry: lanes.add_carry(half(lanes, a, b), c, carry)
