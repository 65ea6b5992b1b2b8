"""Matrix products of fp8, bf8, fp6, bf6 and fp4 in any pair, which cbsz and blgp name (CDNA4 ISA, "Matrix arithmetic").

How many registers an operand takes, and how many passes the product, depends on these modifiers: each pair of formats is a row
of its own, whose cbsz and blgp are fixed.
"""

from __future__ import annotations

import functools
from typing import Any

from tilefw_amd.isa.meaning import formats
from tilefw_amd.isa.meaning.formats import FormatShape
from tilefw_amd.isa.meaning.results import limited_sums
from tilefw_amd.isa.row import Chapter, Modifiers, RowFacts

CHAPTER = Chapter()
row = CHAPTER.row

SECTION = "VOP3P-MAI"


def _multiply(m: Modifiers, shape: FormatShape):
    """D = A x B + C; A has the format that cbsz names, B that of blgp."""
    a_map, b_map = formats.operand_a(shape, m.chip), formats.operand_b(shape, m.chip)
    c_map, rule = formats.accumulator(shape), formats.accumulation(shape, m.chip)
    return limited_sums(m.mode, shape.name, lambda lanes, a, b, c: lanes.matrix_multiply(a, b, c, a_map, b_map, c_map, rule))


def _multiply_scaled(m: Modifiers, shape: FormatShape):
    """D = A x B + C; each 32 k of a row of A and of a column of B are multiplied by a power of two. op_sel + 2 op_sel_hi is the
    number of its byte in the scale's register."""
    a_map, b_map = formats.operand_a(shape, m.chip), formats.operand_b(shape, m.chip)
    scale_maps, c_map = (formats.scales_a(shape), formats.scales_b(shape)), formats.accumulator(shape)
    rule = formats.accumulation(shape, m.chip)
    low, high = m.op_sel or (0, 0), m.op_sel_hi or (0, 0)
    byte_a, byte_b = (low[side] + 2 * high[side] for side in range(2))

    def meaning(lanes, a, b, c, scale_a, scale_b):
        rows, columns = _byte(lanes, scale_a, byte_a), _byte(lanes, scale_b, byte_b)
        return lanes.scaled_matrix_multiply(a, rows, b, columns, c, a_map, scale_maps[0], b_map, scale_maps[1], c_map, rule)

    return limited_sums(m.mode, shape.name, meaning)


def _byte(lanes: Any, word: Any, number: int) -> Any:
    return lanes.truncate(lanes.shr(word, lanes.const(8 * number, 32), False), 8)


def _pattern(shape: FormatShape) -> str:
    held = formats.HELD
    plain = f"d:f32x{shape.sums}=va, a:{shape.a}x{held}=va, b:{shape.b}x{held}=va, c:f32x{shape.sums}=vac"
    return f"{plain}, scale_a:b32=v, scale_b:b32=v" if shape.scaled else plain


_LOAD_SCALES = 0x2C
_PREFIX = 0b110100111 << 7  # of VOP3P, above an opcode of 7 bits

for _shape in (*formats.SHAPES, *formats.SCALED_SHAPES):
    _codes: dict[str, int] = dict(zip(("cbsz", "blgp"), _shape.codes, strict=True))
    _facts: RowFacts = {
        "unit": "matrix", "section": SECTION, "passes": _shape.passes, "since": 4, "facts": "ignores exec, xdl",
        "mnemonic": _shape.mnemonic,
    }
    if _shape.scaled:
        row(
            f"{_shape.name} {_pattern(_shape)}",
            mai_scaled=_LOAD_SCALES,
            modifiers="scale_op_sel scale_op_sel_hi",
            fixed=_codes | {"product": _PREFIX | _shape.opcode},
            **_facts,
        )(functools.partial(_multiply_scaled, shape=_shape))
    else:
        row(f"{_shape.name} {_pattern(_shape)}", mai=_shape.opcode, fixed=_codes, **_facts)(
            functools.partial(_multiply, shape=_shape)
        )


@row(
    "v_mfma_ld_scale_b32 a:b32=vsc, b:b32=vsc", vop3p=_LOAD_SCALES, unit="valu", section=SECTION, since=4,
    modifiers="op_sel op_sel_hi", fixed={"clamp": 0},
)
def v_mfma_ld_scale_b32(m):
    """The scales of the product behind it, with which it is one instruction; alone it is not executed."""
    raise ValueError("v_mfma_ld_scale_b32 is the first half of v_mfma_scale_…: no product with scales is behind it")
