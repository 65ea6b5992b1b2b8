"""The integer rows of the elementwise table. Two's complement of the type's width; every op wraps, none traps.

i1 is the integer of one bit: 0 and 1 unsigned, 0 and -1 signed.
"""

from __future__ import annotations

import numpy as np

from tilefw.tile.elementwise import meaning as m
from tilefw.tile.elementwise.row import ElementwiseRow, ElementwiseRows

_ONE = ("T:int",)
_TWO = ("T:int", "T:int")


_plain = ElementwiseRows(operands=_TWO, result="same")
_commuting = ElementwiseRows(operands=_TWO, result="same", commutative=True)
_high = ElementwiseRows(operands=_TWO, result="same", commutative=True, absorbing=0, wants_bits=True)
_quotient = ElementwiseRows(operands=_TWO, result="same", identity=1)
_remainder = ElementwiseRows(operands=_TWO, result="same")
_shift = ElementwiseRows(operands=_TWO, result="same", identity=0, wants_bits=True)
_extreme = ElementwiseRows(operands=_TWO, result="same", commutative=True, same_operands="x")
_compare = ElementwiseRows(operands=_TWO, result="bool")
_unary = ElementwiseRows(operands=_ONE, result="same")
_count = ElementwiseRows(operands=_ONE, result="same", unsigned=True, wants_bits=True)

ROWS: tuple[ElementwiseRow, ...] = (
    # Sums and products: the low half has no sign.
    _commuting("addi",  "int.add",   "x + y, wrapping",                       np.add,          identity=0),
    _plain(    "subi",  "int.sub",   "x - y, wrapping",                       np.subtract,     identity=0, same_operands=0),
    _commuting("muli",  "int.mul",   "the low half of x * y",                 np.multiply,     identity=1, absorbing=0),
    _high(     "mulhs", "int.mulhi", "the high half of the signed product",   m.multiply_high),
    _high(     "mulhu", "int.mulhi", "the high half of the unsigned product", m.multiply_high, unsigned=True),

    # Quotients and remainders. Those by zero are RISC-V's ("M" extension, section 13.2), for which x = y * q + r holds too.
    _quotient( "divs", "int.div", "signed x / y, truncated; -1 for y = 0",         m.divide_truncating),
    _quotient( "divu", "int.div", "unsigned x / y; all ones for y = 0",            m.divide_unsigned,      unsigned=True),
    _remainder("rems", "int.rem", "signed x % y, with the sign of x; x for y = 0", m.remainder_truncating),
    _remainder("remu", "int.rem", "unsigned x % y; x for y = 0",                   m.remainder_unsigned,   unsigned=True),

    # Bits.
    _commuting("andi", "int.and", "bitwise and",          np.bitwise_and, identity=-1, absorbing=0, same_operands="x"),
    _commuting("ori",  "int.or",  "bitwise or",           np.bitwise_or,  identity=0, absorbing=-1, same_operands="x"),
    _commuting("xori", "int.xor", "bitwise exclusive or", np.bitwise_xor, identity=0, same_operands=0),

    # Shifts: y is unsigned.
    _shift("shl",  "int.shl", "x << y; 0 for y of the width or more",                     m.shift_left,           unsigned=True),
    _shift("shrs", "int.shr", "x >> y, sign filled; all sign for y of the width or more", m.shift_right_signed),
    _shift("shru", "int.shr", "x >> y, zero filled; 0 for y of the width or more",        m.shift_right_unsigned, unsigned=True),

    # Order.
    _unary(  "absi", "int.abs", "|x|; the smallest integer is its own", np.abs),
    _extreme("mins", "int.min", "signed minimum",                       np.minimum),
    _extreme("maxs", "int.max", "signed maximum",                       np.maximum),
    _extreme("minu", "int.min", "unsigned minimum",                     np.minimum, identity=-1, absorbing=0, unsigned=True),
    _extreme("maxu", "int.max", "unsigned maximum",                     np.maximum, identity=0, absorbing=-1, unsigned=True),

    # Counts.
    _count("clz",  "int.clz",  "leading zero bits; the width for 0", m.leading_zeros),
    _count("popc", "int.popc", "one bits",                           m.population_count),

    # Compares.
    _compare("eqi", "int.cmp", "x == y",          np.equal,         same_operands=True, commutative=True),
    _compare("nei", "int.cmp", "x != y",          np.not_equal,     same_operands=False, commutative=True),
    _compare("lts", "int.cmp", "signed x < y",    np.less,          same_operands=False),
    _compare("les", "int.cmp", "signed x <= y",   np.less_equal,    same_operands=True),
    _compare("gts", "int.cmp", "signed x > y",    np.greater,       same_operands=False),
    _compare("ges", "int.cmp", "signed x >= y",   np.greater_equal, same_operands=True),
    _compare("ltu", "int.cmp", "unsigned x < y",  np.less,          same_operands=False, unsigned=True),
    _compare("leu", "int.cmp", "unsigned x <= y", np.less_equal,    same_operands=True, unsigned=True),
    _compare("gtu", "int.cmp", "unsigned x > y",  np.greater,       same_operands=False, unsigned=True),
    _compare("geu", "int.cmp", "unsigned x >= y", np.greater_equal, same_operands=True, unsigned=True),
)
