"""Matrix atoms and fragment loads as the kit describes them: the table of mma.sync (`meaning.fragments`) for a chip, and ldmatrix.

An atom's name is its opcode. Cost: issue cycles of one of a multiprocessor's matrix units, from the chip's rates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import Code, Const, Element, FragmentAccess, FragmentLoad, LinearLayout, MatrixAtom, Registers
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.isa.meaning.fragments import SHAPES, MatrixShape, fragments
from tilefw_nvidia.isa.model import Modifiers
from tilefw_nvidia.isa.set import instruction_set
from tilefw_nvidia.isa.types import FORMATS

# PTX's name of an element and of a sum to tile IR's.
_ELEMENTS: Mapping[str, str] = {
    **FORMATS, "f16": "f16", "bf16": "bf16", "tf32": "f32", "s8": "i8", "u8": "i8", "f64": "f64",
}
_SUMS: Mapping[str, str] = {"f16": "f16", "f32": "f32", "s32": "i32", "f64": "f64"}

# PTX ISA, "Warp-level matrix load instruction: ldmatrix", "Warp-level matrix store instruction: stmatrix".
FRAGMENT_STORES = (FragmentLoad("stmatrix", rows=8, row_bytes=16, cell_bits=16, most=4, transposed=True),)
FRAGMENT_LOADS = (FragmentLoad("ldmatrix", rows=8, row_bytes=16, cell_bits=16, most=4, transposed=True),)


def atoms(chip: Chip) -> tuple[MatrixAtom, ...]:
    """The atoms of a chip: the products of the table whose elements the language has and the chip has a rate for.

    All shapes of one choice of types stand together: the kit takes the first of equally cheap ones.
    """
    groups = ((types, list(shapes)) for types, shapes in groupby(SHAPES, key=lambda shape: shape.types))
    return tuple(
        atom for types, shapes in groups for choice in types.each() for shape in shapes if (atom := _atom(shape, choice, chip))
    )


def _atom(shape: MatrixShape, choice: Modifiers, chip: Chip) -> MatrixAtom | None:
    """One product of the table as an atom; None where the chip or the language does not have it."""
    a, b = choice.atype or shape.types.elements, choice.btype or shape.types.elements
    opcode = shape.opcode(choice)
    one_type = a == b or {a, b} <= FORMATS.keys()  # the language multiplies int8 by int8, never by uint8
    if not (one_type and a in _ELEMENTS and a in chip.matrix_rates and instruction_set(chip).opcode(opcode).exists):
        return None
    a_lies, b_lies, _, d_lies = fragments(shape, choice)
    return MatrixAtom(
        opcode, shape.m, shape.n, shape.k, _ELEMENTS[a], _ELEMENTS[b], _SUMS[opcode.rpartition(".")[2]],
        *(LinearLayout.of_matrix(lies.rows, lies.columns) for lies in (a_lies, b_lies, d_lies)),
        cost=shape.m * shape.n * shape.k / chip.matrix_rates[a], precision="tf32" if a == "tf32" else "", unsigned=a == "u8",
    )


def multiply(code: Code, atom: MatrixAtom, a: Registers, b: Registers, c: Registers, d: Sequence[Slice]) -> None:
    """mma.sync; a constant goes through a register first."""
    code.effect(atom.name, d, [_register(code, element) for element in (*a, *b, *c)])


def _register(code: Code, element: Element) -> Operand:
    if not isinstance(element, Const):
        return element
    wide = element.type in ("f64", "i64")
    return code.inst("mov.b64" if wide else "mov.b32", "w64" if wide else "w32", element.bits)


def load_fragment(code: Code, access: FragmentAccess) -> None:
    """ldmatrix of 1, 2 or 4 matrices of 8 rows of 16 bytes."""
    crosswise = ".trans" if access.transposed else ""
    opcode = f"ldmatrix.sync.aligned.m8n8.x{len(access.registers)}{crosswise}.shared.b16"
    code.effect(opcode, access.registers, [access.address, access.immediate], buffer=access.buffer)


def store_fragment(code: Code, access: FragmentAccess) -> None:
    """stmatrix of 1, 2 or 4 matrices of 8 rows of 16 bytes."""
    crosswise = ".trans" if access.transposed else ""
    opcode = f"stmatrix.sync.aligned.m8n8.x{len(access.registers)}{crosswise}.shared.b16"
    code.effect(opcode, (), [access.address, access.immediate, *access.registers], buffer=access.buffer)
