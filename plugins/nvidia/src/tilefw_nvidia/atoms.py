"""Matrix atoms and fragment loads of sm_80 as the kit describes them, and their instructions: a table of mma.sync, and ldmatrix.

PTX ISA, "Warp Level Matrix Instructions". An atom's name is its opcode. Where operands lie follows from one rule for all shapes
here ("Matrix Fragments for mma.m16n8k16 with floating point type" and its neighbours): a register of an operand
holds, over the wave, 8 rows by 16 bytes (8 x 4 elements of f64), lane bits 0-1 choosing the word of the row and bits 2-4 the row;
larger matrices take further blocks in further registers, A first down the rows and then along k. B is the same with rows and
columns exchanged, D takes two columns a lane.

Costs: issue cycles of one of an SM's four tensor cores, at 256 f16 multiply-adds a cycle, half of that for tf32, twice for i8, and
16 for f64 ("NVIDIA A100 Tensor Core GPU Architecture", table of multiply-adds a clock).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import Code, Const, Element, FragmentAccess, FragmentLoad, LinearLayout, MatrixAtom, Registers

# PTX's name of a type, tile IR's, its bits in an operand, multiply-adds of a tensor core a cycle.
_OPERANDS = {
    "f16": ("f16", 16, 256), "bf16": ("bf16", 16, 256), "tf32": ("f32", 32, 128), "s8": ("i8", 8, 512), "u8": ("i8", 8, 512),
    "f64": ("f64", 64, 16),
}
_SUMS = {"f16": "f16", "f32": "f32", "s32": "i32", "f64": "f64"}

# PTX ISA, "Multiply-and-Accumulate Instruction: mma": shapes (m, n, k) with D's and the operands' types, as sm_80 has them.
_ROWS = (
    ((16, 8, 16), "f32", "f16"), ((16, 8, 8), "f32", "f16"),
    ((16, 8, 16), "f16", "f16"), ((16, 8, 8), "f16", "f16"),
    ((16, 8, 16), "f32", "bf16"), ((16, 8, 8), "f32", "bf16"),
    ((16, 8, 8), "f32", "tf32"), ((16, 8, 4), "f32", "tf32"),
    ((16, 8, 32), "s32", "s8"), ((16, 8, 16), "s32", "s8"), ((8, 8, 16), "s32", "s8"),
    ((16, 8, 32), "s32", "u8"), ((16, 8, 16), "s32", "u8"), ((8, 8, 16), "s32", "u8"),
    ((8, 8, 4), "f64", "f64"),
)


def _powers(first: int, end: int) -> list[int]:
    """first, 2·first, … below `end`."""
    found = []
    while first < end:
        found.append(first)
        first *= 2
    return found


def _along(bits: int, k: int) -> tuple[list[int], list[int], list[int]]:
    """The bits of k that the place in a register, the lowest two lane bits and further registers hold."""
    inner = max(1, 32 // bits)
    return _powers(1, inner), [inner, 2 * inner], _powers(4 * inner, k)


def operand_a(bits: int, m: int, k: int) -> LinearLayout:
    """A, m x k, of elements of `bits` bits."""
    within, words, further = _along(bits, k)
    rows = _powers(1, m)
    return LinearLayout((m, k), (*within, *(r * k for r in rows[3:]), *further), (*words, *(r * k for r in rows[:3])), ())


def operand_b(bits: int, k: int, n: int) -> LinearLayout:
    """B, k x n."""
    within, words, further = _along(bits, k)
    return LinearLayout((k, n), tuple(x * n for x in (*within, *further)), (*(x * n for x in words), *_powers(1, n)), ())


def accumulator(m: int, n: int) -> LinearLayout:
    """C and D, m x n; f16 has both columns of a lane in one register, which is the same layout."""
    rows = _powers(n, m * n)
    return LinearLayout((m, n), (1, *rows[3:]), (2, 4, *rows[:3]), ())


def _atom(shape: tuple[int, int, int], sums: str, operand: str) -> MatrixAtom:
    m, n, k = shape
    element, bits, rate = _OPERANDS[operand]
    return MatrixAtom(
        f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{sums}.{operand}.{operand}.{sums}", m, n, k, element, element, _SUMS[sums],
        operand_a(bits, m, k), operand_b(bits, k, n), accumulator(m, n), cost=m * n * k / rate,
        precision="tf32" if operand == "tf32" else "", unsigned=operand == "u8",
    )


ATOMS = tuple(_atom(*row) for row in _ROWS)

# PTX ISA, "Warp-level matrix load instruction: ldmatrix".
FRAGMENT_LOADS = (FragmentLoad("ldmatrix", rows=8, row_bytes=16, cell_bits=16, most=4, transposed=True),)


def _groups(operand: str, sums: str, layouts: Sequence[LinearLayout]) -> tuple[int, ...]:
    """How many registers each operand has: 64 bits wide for f64, else 32."""
    bits = [_OPERANDS[operand][1]] * 2 + [16 if sums == "f16" else 32]
    return tuple(layout.registers * min(32, b) // 32 for layout, b in zip(layouts, bits, strict=True))


# The registers of A, B and C of each atom: the text puts each operand's in braces.
GROUPS = {
    atom.name: _groups(operand, sums, (atom.a_layout, atom.b_layout, atom.d_layout))
    for atom, (_, sums, operand) in zip(ATOMS, _ROWS, strict=True)
}


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


def operands(opcode: str, defs: Sequence[str], uses: Sequence[str]) -> list[str]:
    """An mma's operands as they are written: the registers of D, A, B and C, each in braces."""
    found, at = ["{" + ", ".join(defs) + "}"], 0
    for count in GROUPS[opcode]:
        found.append("{" + ", ".join(uses[at : at + count]) + "}")
        at += count
    return found
