"""The integer rows of the elementwise table. Two's complement of the type's width; every op wraps."""

from __future__ import annotations

from tilefw.tile.elementwise.row import Row

_I1 = ("T:int",)
_I2 = ("T:int", "T:int")

ROWS = (
    Row("addi", _I2, "same", "int.add", "x + y, wrapping"),
    Row("subi", _I2, "same", "int.sub", "x - y, wrapping"),
    Row("muli", _I2, "same", "int.mul", "the low half of x * y"),
    Row("mulhs", _I2, "same", "int.mulhi", "the high half of the signed product"),
    Row("mulhu", _I2, "same", "int.mulhi", "the high half of the unsigned product"),
    Row("divs", _I2, "same", "int.div", "signed quotient, truncated towards zero"),
    Row("divu", _I2, "same", "int.div", "unsigned quotient"),
    Row("rems", _I2, "same", "int.rem", "signed remainder, with the sign of x"),
    Row("remu", _I2, "same", "int.rem", "unsigned remainder"),
    Row("andi", _I2, "same", "int.and", "bitwise and"),
    Row("ori", _I2, "same", "int.or", "bitwise or"),
    Row("xori", _I2, "same", "int.xor", "bitwise exclusive or"),
    Row("shl", _I2, "same", "int.shl", "x shifted left by y bits (y unsigned); 0 when y is the width or more"),
    Row("shrs", _I2, "same", "int.shr", "x shifted right, sign filled; all sign when y is the width or more"),
    Row("shru", _I2, "same", "int.shr", "x shifted right, zero filled; 0 when y is the width or more"),
    Row("absi", _I1, "same", "int.abs", "|x|; the smallest integer is its own"),
    Row("mins", _I2, "same", "int.min", "signed minimum"),
    Row("maxs", _I2, "same", "int.max", "signed maximum"),
    Row("minu", _I2, "same", "int.min", "unsigned minimum"),
    Row("maxu", _I2, "same", "int.max", "unsigned maximum"),
    Row("clz", _I1, "same", "int.clz", "leading zero bits; the width for 0"),
    Row("popc", _I1, "same", "int.popc", "one bits"),
    Row("eqi", _I2, "bool", "int.cmp", "x == y"),
    Row("nei", _I2, "bool", "int.cmp", "x != y"),
    Row("lts", _I2, "bool", "int.cmp", "signed x < y"),
    Row("les", _I2, "bool", "int.cmp", "signed x <= y"),
    Row("gts", _I2, "bool", "int.cmp", "signed x > y"),
    Row("ges", _I2, "bool", "int.cmp", "signed x >= y"),
    Row("ltu", _I2, "bool", "int.cmp", "unsigned x < y"),
    Row("leu", _I2, "bool", "int.cmp", "unsigned x <= y"),
    Row("gtu", _I2, "bool", "int.cmp", "unsigned x > y"),
    Row("geu", _I2, "bool", "int.cmp", "unsigned x >= y"),
)
