"""The base set: the rows that every SIMT chip must have; all others can be made of them.

Beside these a chip has four ways to look at bits that cost at most a move (see `builder.Chip`), access to memory in 8,
16 and 32 bits, and a barrier: at most 40 rows in all.
"""

_INT32 = ("addi", "subi", "muli", "mulhu", "andi", "ori", "xori", "shl", "shrs", "shru", "eqi", "lts", "ltu", "select")
_BOOL = ("andi", "ori", "xori")
_FLOAT32 = ("addf", "subf", "mulf", "fma", "divf", "eqf", "ltf", "lef")

BASE_ROWS: frozenset[str] = frozenset(
    [f"{row}.i32" for row in _INT32]
    + [f"{row}.i1" for row in _BOOL]
    + [f"{row}.f32" for row in _FLOAT32]
    + ["s2f.i32.f32", "f2s.f32.i32"]
)
