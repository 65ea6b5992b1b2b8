"""The integer rows of the elementwise table. Two's complement of the type's width; every op wraps, none traps.

i1 is the integer of one bit: 0 and 1 unsigned, 0 and -1 signed.
"""

from __future__ import annotations

import numpy as np

from tilefw.tile.elementwise import meaning as m
from tilefw.tile.elementwise.row import Row, Rows

_ONE = ("T:int",)
_TWO = ("T:int", "T:int")


def _by_zero(x: m.Array, y: m.Array) -> m.Array:
    return y == 0


_same = Rows(operands=_TWO, result="same")
_unary = Rows(operands=_ONE, result="same")
_compare = Rows(operands=_TWO, result="bool", group="int.cmp")
_shift = Rows(operands=_TWO, result="same", identity=0, wants_bits=True)

ROWS: tuple[Row, ...] = (
    _same("addi", np.add, "x + y, wrapping", group="int.add", commutative=True, identity=0),
    _same("subi", np.subtract, "x - y, wrapping", group="int.sub", identity=0, same_operands=0),
    _same("muli", np.multiply, "the low half of x * y", group="int.mul", commutative=True, identity=1, absorbing=0),
    _same("mulhs", m.multiply_high, "the high half of the signed product", group="int.mulhi", commutative=True, absorbing=0,
          wants_bits=True),
    _same("mulhu", m.multiply_high, "the high half of the unsigned product", group="int.mulhi", commutative=True, absorbing=0,
          wants_bits=True, unsigned=True),
    _same("divs", m.divide_truncating, "signed quotient, truncated towards zero; anything for y = 0", group="int.div",
          identity=1, undefined=_by_zero),
    _same("divu", m.divide_unsigned, "unsigned quotient; anything for y = 0", group="int.div", identity=1, undefined=_by_zero,
          unsigned=True),
    _same("rems", m.remainder_truncating, "signed remainder, with the sign of x; anything for y = 0", group="int.rem",
          undefined=_by_zero),
    _same("remu", m.remainder_unsigned, "unsigned remainder; anything for y = 0", group="int.rem", undefined=_by_zero,
          unsigned=True),
    _same("andi", np.bitwise_and, "bitwise and", group="int.and", commutative=True, identity=-1, absorbing=0, same_operands="x"),
    _same("ori", np.bitwise_or, "bitwise or", group="int.or", commutative=True, identity=0, absorbing=-1, same_operands="x"),
    _same("xori", np.bitwise_xor, "bitwise exclusive or", group="int.xor", commutative=True, identity=0, same_operands=0),
    _shift("shl", m.shift_left, "x shifted left by y bits; 0 when y, unsigned, is the width or more", group="int.shl",
           unsigned=True),
    _shift("shrs", m.shift_right_signed, "x shifted right, sign filled; all sign when y is the width or more", group="int.shr"),
    _shift("shru", m.shift_right_unsigned, "x shifted right, zero filled; 0 when y is the width or more", group="int.shr",
           unsigned=True),
    _unary("absi", np.abs, "|x|; the smallest integer is its own", group="int.abs"),
    _same("mins", np.minimum, "signed minimum", group="int.min", commutative=True, same_operands="x"),
    _same("maxs", np.maximum, "signed maximum", group="int.max", commutative=True, same_operands="x"),
    _same("minu", np.minimum, "unsigned minimum", group="int.min", commutative=True, same_operands="x", identity=-1, absorbing=0,
          unsigned=True),
    _same("maxu", np.maximum, "unsigned maximum", group="int.max", commutative=True, same_operands="x", identity=0, absorbing=-1,
          unsigned=True),
    _unary("clz", m.leading_zeros, "leading zero bits; the width for 0", group="int.clz", unsigned=True, wants_bits=True),
    _unary("popc", m.population_count, "one bits", group="int.popc", unsigned=True, wants_bits=True),
    _compare("eqi", np.equal, "x == y", commutative=True, same_operands=True),
    _compare("nei", np.not_equal, "x != y", commutative=True, same_operands=False),
    _compare("lts", np.less, "signed x < y", same_operands=False),
    _compare("les", np.less_equal, "signed x <= y", same_operands=True),
    _compare("gts", np.greater, "signed x > y", same_operands=False),
    _compare("ges", np.greater_equal, "signed x >= y", same_operands=True),
    _compare("ltu", np.less, "unsigned x < y", same_operands=False, unsigned=True),
    _compare("leu", np.less_equal, "unsigned x <= y", same_operands=True, unsigned=True),
    _compare("gtu", np.greater, "unsigned x > y", same_operands=False, unsigned=True),
    _compare("geu", np.greater_equal, "unsigned x >= y", same_operands=True, unsigned=True),
)
