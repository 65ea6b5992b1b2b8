"""Matrix atoms as the kit describes them, and their instructions: the rows of the instruction table (`isa.meaning.fragments`).

Each is used transposed: the instruction's A is our B and its B our A, so that it computes the transpose of the product. Then a lane
holds one row of D and in consecutive registers four of its columns, which a store takes at once; and D lies as A does
(32x32x8: k = 8 step + 4 (lane / 32) + register), so that the sums of one dot are the A of another without leaving their lanes.
Layouts, types and costs come from the one table that assembler, simulator and documentation read; an atom's name is its row's.

Costs are cycles of the matrix pipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilefw.api.machine import Slice
from tilefw.api.sim import Fragment
from tilefw.api.simt import AtomScales, Code, Const, LinearLayout, MatrixAtom, Registers, Scale
from tilefw_amd.chips import Chip
from tilefw_amd.isa.meaning import formats, fragments
from tilefw_amd.isa.meaning.formats import FormatShape
from tilefw_amd.isa.meaning.fragments import MatrixShape
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.select import six_bits

# Tile IR's name of an element type, and what f32 is taken for; fp8 and bf8 are the chip's.
_ELEMENTS = {
    "f16": ("f16", ""), "bf16": ("bf16", ""), "xf32": ("f32", "tf32"), "f32": ("f32", ""), "f64": ("f64", ""), "i8": ("i8", ""),
    "i32": ("i32", ""),
}

_OF_FORMATS = {shape.name: shape for shape in (*formats.SHAPES, *formats.SCALED_SHAPES)}
_PACKED = "fp4"  # a byte of tile IR holds two
_SIX_BITS = ("fp6", "bf6")
_NIBBLE = "e0"  # the index bit that says which of the two


def _turned(fragment: Fragment) -> LinearLayout:
    return LinearLayout.of_matrix(fragment.rows, fragment.columns).before_trans((1, 0))[0]


def _atom(shape: MatrixShape, chip: Chip) -> MatrixAtom:
    (a, precision), (b, _), (d, _) = (_ELEMENTS.get(name) or (chip.float8[name], "") for name in (shape.b, shape.a, shape.d))
    factors = fragments.operand_b(shape, chip), fragments.operand_a(shape, chip)
    lie = (*factors, fragments.accumulator(shape, chip))
    return MatrixAtom(
        shape.name, shape.n, shape.m, shape.k, a, b, d, *map(_turned, lie), cost=shape.passes * chip.rates.pass_cycles,
        precision=precision,
    )


def _atom_of_formats(shape: FormatShape, chip: Chip) -> MatrixAtom:
    """A product whose formats are modifiers, of twice the k in as many cycles as the chip's others of 8 bits."""
    a, b = (formats.element(name, chip) for name in (shape.b, shape.a))
    fragments_of = formats.operand_b(shape, chip), formats.operand_a(shape, chip), formats.accumulator(shape)
    scales = None
    if shape.scaled:
        # Both as the language has them, [m, k / 32] and [n, k / 32]: of the instruction's B turned, of its A as they are.
        of_a = formats.scales_a(shape)
        scales = AtomScales(
            formats.HELD, _turned(formats.scales_b(shape)), LinearLayout.of_matrix(of_a.rows, of_a.columns)
        )
    return MatrixAtom(
        shape.name, shape.m, shape.m, shape.k, a, b, shape.d, *(_turned(_in_bytes(each)) for each in fragments_of),
        cost=shape.passes * chip.rates.pass_cycles, scales=scales,
    )


def _in_bytes(fragment: Fragment) -> Fragment:
    """An operand of two elements a byte by its bytes; any other as it is."""
    if fragment.fmt != formats.SMALL_FORMATS[_PACKED]:
        return fragment
    rows, columns = (tuple(name for name in names if name != _NIBBLE) for names in (fragment.rows, fragment.columns))
    return replace(fragment, rows=rows, columns=columns)


def atoms(isa: InstructionSet) -> tuple[MatrixAtom, ...]:
    """Those that dots may use: shapes of several blocks waste cycles on products of one matrix, and sparse ones multiply what no
    dot of the language has."""
    return isa.own(_served)


def _served(isa: InstructionSet) -> tuple[MatrixAtom, ...]:
    shapes = (shape for shape in fragments.SHAPES if shape.serves(isa.chip) and shape.blocks == 1 and not shape.sparse)
    tables = ((formats.SHAPES, {*isa.chip.float8}), (formats.SCALED_SHAPES, {*isa.chip.float8, *formats.SMALL_FORMATS}))
    of_formats = (
        shape for table, served in tables for shape in table if shape.serves(isa.chip) and {shape.a, shape.b} <= served
    )
    return (*(_atom(shape, isa.chip) for shape in shapes), *(_atom_of_formats(shape, isa.chip) for shape in of_formats))


def of_rows(isa: InstructionSet, rows: int) -> tuple[MatrixAtom, ...]:
    """The atoms with so many rows, and those of the types for which there is no such one; all of them for 0."""
    if not rows:
        return atoms(isa)
    served = {_types(atom) for atom in atoms(isa) if atom.m == rows}
    return tuple(atom for atom in atoms(isa) if atom.m == rows or _types(atom) not in served)


def _types(atom: MatrixAtom) -> tuple[str, ...]:
    return atom.a, atom.b, atom.d, atom.precision, "scales" if atom.scales else ""


def multiply(
    code: Code, atom: MatrixAtom, a: Registers, b: Registers, c: Registers, d: Sequence[Slice], scales: Sequence[Scale] = ()
) -> None:
    """v_mfma of tuples, with the scales of a and b where it has some; sums that begin at zero take the inline constant (CDNA3 ISA,
    "VOP3P-MAI": SRC2)."""
    zero = all(isinstance(element, Const) and element.bits == 0 for element in c)
    sums = 0 if zero else code.tuple(c, "v")
    shape = _OF_FORMATS.get(atom.name)
    opcode = atom.name if shape is None else shape.mnemonic
    of_a, of_b = ("", "") if shape is None else (shape.a, shape.b)
    factors = [code.tuple(_registers(code, *operand), "v") for operand in ((of_a, b), (of_b, a))]
    modifiers = _format_modifiers(shape)
    turned = tuple(reversed(scales))
    registers = [code.tuple([scale.register], "v") for scale in turned]
    code.effect(opcode, [code.tuple(d, "v")], [*factors, sums, *registers, *_bytes(turned), *modifiers])


def _registers(code: Code, format: str, registers: Registers) -> Registers:
    """An operand of a format as the instruction takes it: elements of six bits have no byte each."""
    return six_bits.packed(code, registers) if format in _SIX_BITS else registers


def _bytes(scales: Sequence[Scale]) -> list[str]:
    """Which bytes of their registers the scales are: op_sel + 2 op_sel_hi (CDNA4 ISA, "Matrix arithmetic")."""
    if not scales:
        return []
    words = {"op_sel": [scale.byte & 1 for scale in scales], "op_sel_hi": [scale.byte >> 1 for scale in scales]}
    return [f"{word}:[{','.join(map(str, bits))}]" for word, bits in words.items() if any(bits)]


def _format_modifiers(shape: FormatShape | None) -> list[str]:
    """The formats of the instruction's A and B; e4m3 is what it takes without."""
    if shape is None:
        return []
    return [f"{word}:{code}" for word, code in zip(("cbsz", "blgp"), shape.codes, strict=True) if code]
