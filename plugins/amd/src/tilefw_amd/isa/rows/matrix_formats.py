"""Matrix products of fp8, bf8, fp6, bf6 and fp4 in any pair, which cbsz and blgp name (CDNA4 ISA, "Matrix arithmetic").

How many registers an operand takes, and how many passes the product, depends on these modifiers: each pair of formats is a row
of its own, whose cbsz and blgp are fixed.
"""

from __future__ import annotations

import functools

from tilefw_amd.isa.meaning import formats
from tilefw_amd.isa.meaning.formats import FormatShape
from tilefw_amd.isa.row import Chapter, Modifiers

CHAPTER = Chapter()
row = CHAPTER.row

SECTION = "VOP3P-MAI"


def _need_modelled(m: Modifiers, shape: FormatShape) -> None:
    if m.mode.fp16_overflow:
        raise ValueError(f"{shape.name} while MODE.FP16_OVFL is set is not simulated")


def _multiply(m: Modifiers, shape: FormatShape):
    """D = A x B + C; A has the format that cbsz names, B that of blgp."""
    _need_modelled(m, shape)
    a_map, b_map = formats.operand_a(shape, m.chip), formats.operand_b(shape, m.chip)
    c_map, rule = formats.accumulator(shape), formats.accumulation(shape, m.chip)
    return lambda lanes, a, b, c: lanes.matrix_multiply(a, b, c, a_map, b_map, c_map, rule)


def _pattern(shape: FormatShape) -> str:
    held = formats.HELD
    return f"d:f32x{shape.sums}=va, a:{shape.a}x{held}=va, b:{shape.b}x{held}=va, c:f32x{shape.sums}=vac"


for _shape in formats.SHAPES:
    row(
        f"{_shape.name} {_pattern(_shape)}",
        mai=_shape.opcode,
        unit="matrix",
        section=SECTION,
        passes=_shape.passes,
        since=4,
        facts="ignores exec, xdl",
        mnemonic=_shape.mnemonic,
        fixed=dict(zip(("cbsz", "blgp"), _shape.codes, strict=True)),
    )(functools.partial(_multiply, shape=_shape))
