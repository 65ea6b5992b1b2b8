"""Matrix atoms as the kit describes them, and their instructions: the rows of the instruction table (`isa.meaning.fragments`).

Each is used transposed: the instruction's A is our B and its B our A, so that it computes the transpose of the product. Then a lane
holds one row of D and in consecutive registers four of its columns, which a store takes at once; and D lies as A does
(32x32x8: k = 8 step + 4 (lane / 32) + register), so that the sums of one dot are the A of another without leaving their lanes.
Layouts, types and costs come from the one table that assembler, simulator and documentation read; an atom's name is its row's.

Costs are cycles of the matrix pipe.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api.machine import Slice
from tilefw.api.sim import Fragment
from tilefw.api.simt import Code, Const, LinearLayout, MatrixAtom, Registers
from tilefw_amd.chips import Chip
from tilefw_amd.isa.meaning import formats, fragments
from tilefw_amd.isa.meaning.formats import FormatShape
from tilefw_amd.isa.meaning.fragments import MatrixShape
from tilefw_amd.isa.set import InstructionSet

# Tile IR's name of an element type, and what f32 is taken for; fp8 and bf8 are the chip's.
_ELEMENTS = {
    "f16": ("f16", ""), "bf16": ("bf16", ""), "xf32": ("f32", "tf32"), "f32": ("f32", ""), "f64": ("f64", ""), "i8": ("i8", ""),
    "i32": ("i32", ""),
}

_OF_FORMATS = {shape.name: shape for shape in formats.SHAPES}


def _turned(fragment: Fragment) -> LinearLayout:
    return LinearLayout.of_matrix(fragment.rows, fragment.columns).before_trans((1, 0))[0]


def _atom(shape: MatrixShape, chip: Chip) -> MatrixAtom:
    (a, precision), (b, _), (d, _) = (_ELEMENTS.get(name) or (chip.float8[name], "") for name in (shape.b, shape.a, shape.d))
    operands = fragments.operand_b(shape, chip), fragments.operand_a(shape, chip), fragments.accumulator(shape, chip)
    return MatrixAtom(
        shape.name, shape.n, shape.m, shape.k, a, b, d, *map(_turned, operands), cost=shape.passes * chip.rates.pass_cycles,
        precision=precision,
    )


def _atom_of_formats(shape: FormatShape, chip: Chip) -> MatrixAtom:
    """A product whose formats are modifiers, of twice the k in as many cycles as the chip's others of 8 bits."""
    operands = formats.operand_b(shape, chip), formats.operand_a(shape, chip), formats.accumulator(shape)
    return MatrixAtom(
        shape.name, shape.m, shape.m, shape.k, chip.float8[shape.b], chip.float8[shape.a], shape.d, *map(_turned, operands),
        cost=shape.passes * chip.rates.pass_cycles,
    )


def atoms(isa: InstructionSet) -> tuple[MatrixAtom, ...]:
    """Those that dots may use: shapes of several blocks waste cycles on products of one matrix, and sparse ones multiply what no
    dot of the language has."""
    return isa.own(_served)


def _served(isa: InstructionSet) -> tuple[MatrixAtom, ...]:
    shapes = (shape for shape in fragments.SHAPES if shape.serves(isa.chip) and shape.blocks == 1 and not shape.sparse)
    of_formats = (
        shape for shape in formats.SHAPES if shape.serves(isa.chip) and {shape.a, shape.b} <= isa.chip.float8.keys()
    )
    return (*(_atom(shape, isa.chip) for shape in shapes), *(_atom_of_formats(shape, isa.chip) for shape in of_formats))


def of_rows(isa: InstructionSet, rows: int) -> tuple[MatrixAtom, ...]:
    """The atoms with so many rows, and those of the types for which there is no such one; all of them for 0."""
    if not rows:
        return atoms(isa)
    served = {_types(atom) for atom in atoms(isa) if atom.m == rows}
    return tuple(atom for atom in atoms(isa) if atom.m == rows or _types(atom) not in served)


def _types(atom: MatrixAtom) -> tuple[str, ...]:
    return atom.a, atom.b, atom.d, atom.precision


def multiply(code: Code, atom: MatrixAtom, a: Registers, b: Registers, c: Registers, d: Sequence[Slice]) -> None:
    """v_mfma of tuples; sums that begin at zero take the inline constant (CDNA3 ISA, "VOP3P-MAI": SRC2)."""
    zero = all(isinstance(element, Const) and element.bits == 0 for element in c)
    sums = 0 if zero else code.tuple(c, "v")
    shape = _OF_FORMATS.get(atom.name)
    opcode = atom.name if shape is None else shape.mnemonic
    code.effect(opcode, [code.tuple(d, "v")], [code.tuple(b, "v"), code.tuple(a, "v"), sums, *_format_modifiers(shape)])


def _format_modifiers(shape: FormatShape | None) -> list[str]:
    """The formats of the instruction's A and B; e4m3 is what it takes without."""
    if shape is None:
        return []
    return [f"{word}:{code}" for word, code in zip(("cbsz", "blgp"), shape.codes, strict=True) if code]
