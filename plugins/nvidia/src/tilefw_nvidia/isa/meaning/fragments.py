"""The one table of mma.sync: shapes and types with the chips that have them, where operands lie, and how sums are rounded.

Rows of the instruction table (`rows/matrix.py`), the kit's atoms (`select/matrix.py`) and the text of operands (`emit.py`) are
derived from it. Source: PTX ISA, "Warp Level Matrix Instructions: mma" and its figures.

One rule gives every figure but that of Volta's m8n8k4: registers are row-major blocks of 8 rows by 16 bytes (32 bytes for f64's 4
columns), interleaved. Within a block, lane bits 2-4 are the row and bits 0-1 the word of the row. A larger matrix takes
further blocks in further registers, A first down the rows, then along k. B is the same with rows and columns exchanged,
and so is C with words of two columns.

Numerics. `ieee` (the default): products are exact and summed in the format of D or wider. `hw`: blocks of k are added one after
the other; within a block the products and the running sum are aligned to the largest exponent, cut toward zero to some bits below
it and added exactly; the result is cut to f32 toward zero, or rounded to f16 to the nearest. How large a block is and how many
bits are kept is the chip's (`Chip.sums`; MMA-Sim, arXiv 2511.10909).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tilefw.api.sim import Accumulation, Fragment
from tilefw_nvidia.chips import Chip, SumPrecision
from tilefw_nvidia.isa.model import Modifiers
from tilefw_nvidia.isa.types import FORMATS

ROW_BITS = ("l2", "l3", "l4")
WORD_BITS = ("l0", "l1")
_OPTIONAL = re.compile(r"\{.*?\}")
_RESULTS: Mapping[str, Literal["f16", "f32", "f64"]] = {"b32": "f16", "f32": "f32", "f64": "f64"}  # by D's register type
_ELEMENT_BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "u8": 8, "s8": 8, "e4m3": 8, "e5m2": 8, "u4": 4, "s4": 4, "b1": 1,
}


@dataclass(frozen=True, slots=True)
class Types:
    """The types of a group of forms: modifiers in the manual's notation, the choices in them, the operands' register types."""

    elements: str
    modifiers: str
    register: str
    c_register: str
    d_register: str
    choices: dict[str, str] = field(default_factory=dict)

    def each(self) -> Iterator[Modifiers]:
        """Every way to choose the types."""
        for words in itertools.product(*(words.split() for words in self.choices.values())):
            yield Modifiers(zip(self.choices, words, strict=True))


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """m x n x k with the number of registers of each operand."""

    types: Types
    m: int
    n: int
    k: int
    d: int
    a: int
    b: int
    c: int
    version: str
    since: int

    @property
    def name(self) -> str:
        return f"m{self.m}n{self.n}k{self.k}"

    @property
    def pattern(self) -> str:
        """The opcode in the notation of rows, its types' choices unresolved."""
        return f"mma.sync.aligned.{self.name}.row.col{self.types.modifiers}"

    def opcode(self, choice: Modifiers) -> str:
        """The full opcode for one choice of types, without what may be left out."""
        opcode = _OPTIONAL.sub("", self.pattern)
        for name, word in choice.items():
            opcode = opcode.replace(f".{name}", f".{word}")
        return opcode


_HALF = [
    Types("f16", f".{d}.f16.f16.{c}", "b32", "b32" if c == "f16" else "f32", "b32" if d == "f16" else "f32", {})
    for d, c in (("f16", "f16"), ("f16", "f32"), ("f32", "f16"), ("f32", "f32"))
]
_BF16 = Types("bf16", ".f32.bf16.bf16.f32", "b32", "f32", "f32")
_TF32 = Types("tf32", ".f32.tf32.tf32.f32", "b32", "f32", "f32")
_F64 = Types("f64", ".f64.f64.f64.f64", "f64", "f64", "f64")
_BYTES = Types("s8", "{.satfinite}.s32.atype.btype.s32", "b32", "s32", "s32", {"atype": "s8 u8", "btype": "s8 u8"})
_FP8 = [
    Types("e4m3", f".{sums}.atype.btype.{sums}", "b32", register, register, {"atype": "e4m3 e5m2", "btype": "e4m3 e5m2"})
    for sums, register in (("f32", "f32"), ("f16", "b32"))
]
_NIBBLES = Types("s4", "{.satfinite}.s32.atype.btype.s32", "b32", "s32", "s32", {"atype": "u4 s4", "btype": "u4 s4"})
_XOR = Types("b1", ".s32.b1.b1.s32.op.popc", "b32", "s32", "s32", {"op": "xor"})
_AND = Types("b1", ".s32.b1.b1.s32.op.popc", "b32", "s32", "s32", {"op": "and"})


def _shape(types: Types, m: int, n: int, k: int, version: str, since: int) -> MatrixShape:
    """Registers follow from sizes: 32 lanes, of 32 bits each (64 for f64)."""
    width, element = (64, 64) if types.elements == "f64" else (32, _ELEMENT_BITS[types.elements])

    def count(elements: int, bits: int) -> int:
        return elements * bits // (32 * width)

    def accumulators(register: str) -> int:
        return count(m * n, {"b32": 16, "f32": 32, "s32": 32, "f64": 64}[register])

    return MatrixShape(
        types,
        m,
        n,
        k,
        accumulators(types.d_register),
        count(m * k, element),
        count(k * n, element),
        accumulators(types.c_register),
        version,
        since,
    )


# Within a group of types the largest come first: the kit's choice among equally cheap atoms is the first.
SHAPES: tuple[MatrixShape, ...] = (
    _shape(_HALF[3], 16, 8, 16, "7.0", 80),
    _shape(_HALF[3], 16, 8, 8, "6.5", 75),
    _shape(_HALF[0], 16, 8, 16, "7.0", 80),
    _shape(_HALF[0], 16, 8, 8, "6.5", 75),
    _shape(_BF16, 16, 8, 16, "7.0", 80),
    _shape(_BF16, 16, 8, 8, "7.0", 80),
    _shape(_TF32, 16, 8, 8, "7.0", 80),
    _shape(_TF32, 16, 8, 4, "7.0", 80),
    _shape(_FP8[0], 16, 8, 32, "8.4", 89),
    _shape(_FP8[0], 16, 8, 16, "8.7", 89),
    _shape(_FP8[1], 16, 8, 32, "8.7", 89),
    _shape(_FP8[1], 16, 8, 16, "8.7", 89),
    _shape(_BYTES, 16, 8, 32, "7.0", 80),
    _shape(_BYTES, 16, 8, 16, "7.0", 80),
    _shape(_BYTES, 8, 8, 16, "6.5", 75),
    _shape(_F64, 16, 8, 16, "7.8", 90),
    _shape(_F64, 16, 8, 8, "7.8", 90),
    _shape(_F64, 16, 8, 4, "7.8", 90),
    _shape(_F64, 8, 8, 4, "7.0", 80),
    _shape(_NIBBLES, 16, 8, 64, "7.0", 80),
    _shape(_NIBBLES, 16, 8, 32, "7.0", 80),
    _shape(_NIBBLES, 8, 8, 32, "6.5", 75),
    _shape(_XOR, 16, 8, 256, "7.0", 80),
    _shape(_XOR, 16, 8, 128, "7.0", 80),
    _shape(_XOR, 8, 8, 128, "7.0", 75),
    _shape(_AND, 16, 8, 256, "7.1", 80),
    _shape(_AND, 16, 8, 128, "7.1", 80),
    _shape(_AND, 8, 8, 128, "7.1", 80),
)

# The registers of A, B and C by full opcode: the text puts each operand's in braces.
OPERAND_COUNTS: Mapping[str, tuple[int, int, int]] = {
    shape.opcode(choice): (shape.a, shape.b, shape.c) for shape in SHAPES for choice in shape.types.each()
}


def _block(element_bits: int, k: int) -> tuple[tuple[str, ...], int]:
    """The index bits of k within one block of registers, and how many bits of k further registers hold."""
    inner = tuple(f"e{i}" for i in range((32 // min(32, element_bits)).bit_length() - 1)) + WORD_BITS
    return inner, k.bit_length() - 1 - len(inner)


def operand_a(fmt: str, bits: int, m: int, k: int) -> Fragment:
    """A, m x k: blocks go down the rows first, then along k."""
    inner, more = _block(bits, k)
    down = 1 if m == 16 else 0
    along = tuple(f"r{down + i}" for i in range(more))
    return Fragment(fmt, ROW_BITS + ("r0",) * down, inner + along, max(32, bits))


def operand_b(fmt: str, bits: int, k: int) -> Fragment:
    """B, k x 8: a column of B lies as a row of A does."""
    inner, more = _block(bits, k)
    return Fragment(fmt, inner + tuple(f"r{i}" for i in range(more)), ROW_BITS, max(32, bits))


def accumulator(fmt: str, m: int) -> Fragment:
    """C and D, m x 8: two columns to a lane, packed in one register for f16, else in two."""
    bits = {"f16": 16, "f64": 64}.get(fmt, 32)
    pair = "e0" if bits == 16 else "r0"
    down = ((f"r{0 if bits == 16 else 1}",)) if m == 16 else ()
    return Fragment(fmt, ROW_BITS + down, (pair, *WORD_BITS), max(32, bits))


def fragments(shape: MatrixShape, m: Modifiers) -> tuple[Fragment, Fragment, Fragment, Fragment]:
    """The fragments of A, B, C and D for the types that were written."""
    types = shape.types
    bits = _ELEMENT_BITS[types.elements]
    a_format, b_format = (FORMATS.get(name, name) for name in (m.atype or types.elements, m.btype or types.elements))
    formats = {"b32": "f16"}
    c, d = (accumulator(formats.get(r, r), shape.m) for r in (types.c_register, types.d_register))
    return operand_a(a_format, bits, shape.m, shape.k), operand_b(b_format, bits, shape.k), c, d


def accumulation(m: Modifiers, types: Types, chip: Chip) -> Accumulation:
    """The rounding of a warp's sums on a chip; that of products whose operands differ in type is the first's."""
    return _accumulation(m, types.elements, types.d_register, chip.sums, chip)


def group_accumulation(m: Modifiers, elements: str, register: str, chip: Chip) -> Accumulation:
    """The rounding of a warpgroup's sums."""
    return _accumulation(m, elements, register, chip.warpgroup_sums, chip)


def _accumulation(
    m: Modifiers, elements: str, register: str, precisions: Mapping[str, SumPrecision], chip: Chip
) -> Accumulation:
    if register == "s32":
        return Accumulation("s32", saturate=bool(m.satfinite))
    element = m.atype or elements
    sums = precisions.get(element)
    result = _RESULTS[register]
    if sums is None:
        return Accumulation(result, unknown=f"sums of {element} on {chip.name}")
    block = sums.bytes * 8 // _ELEMENT_BITS[element]
    if not sums.fraction_bits:
        return Accumulation(result, block=block, fraction_bits=0, result_rounding="rn")
    if result == "f16":
        return Accumulation("f16", block, sums.fraction_bits, "rz", "rn", zero_fraction_bits=sums.zero_fraction_bits)
    return Accumulation(
        "f32", block, sums.fraction_bits, "rz", "rz", result_fraction_bits=sums.result_fraction_bits,
        zero_fraction_bits=sums.zero_fraction_bits,
    )
