"""The Tarn N1: which rows of the elementwise table its vector unit has, and the instructions of DMA and of the matrix unit.

A register holds one element, or 64 of a vector.
"""

from __future__ import annotations

from tilefw.api.sim import ROW_MEANINGS, WORDS, TextTable, copy_shapes

LANES = 64
LOCAL_BYTES = 64 << 10
TAGS = 8  # of DMA
MATRIX = (16, 16, 16)
MATRIX_TYPES = frozenset({("f32", "f32"), ("f16", "f32"), ("bf16", "f32")})

_INTEGER = (
    "addi", "subi", "muli", "andi", "ori", "xori", "shl", "shru", "shrs", "eqi", "lts", "ltu", "mins", "maxs", "divs", "rems",
)
_FLOAT = ("addf", "subf", "mulf", "fma", "divf", "div_rn", "sqrt_rn", "sqrt", "exp2", "eqf", "ltf", "lef")
ROWS = {
    key: ROW_MEANINGS[key] for key in (
        *(f"select.{type_}" for type_ in WORDS), "andi.i1", "ori.i1", "xori.i1", "mulhu.i32",
        *(f"{row}.{type_}" for row in _INTEGER for type_ in ("i32", "i64")), *(f"{row}.f32" for row in _FLOAT),
        *(f"{row}.{type_}.f32" for row in ("s2f", "u2f") for type_ in ("i32", "i64")),
        *(f"{row}.f32.{type_}" for row in ("f2s", "f2u") for type_ in ("i32", "i64")),
        "exts.i32.i64", "extu.i32.i64", "trunci.i64.i32", "castf.f16.f32",
    )
}
"""The meaning of each row, by its key."""

TABLE = TextTable("the Tarn N1", ROWS, {
    **copy_shapes(2),
    **{f"mma.{operand}.{sums}.{'x'.join(map(str, MATRIX))}": "iiilll" for operand, sums in MATRIX_TYPES},
}, LANES, LOCAL_BYTES)
"""A product has the addresses of sums and operands, and the bytes between rows of each."""
