"""Where the operands of matrix instructions lie, and how their sums are rounded (CDNA3 ISA, "Matrix arithmetic instructions").

One rule gives every layout of AMD's matrix instruction calculator (github.com/ROCm/amd_matrix_instruction_calculator). A lane holds
consecutive k of one row of A; rows run over the lowest lanes, then blocks, then further k. B is the same with columns. C and D
have columns along the lanes, four rows (one of f64) in consecutive registers, then further rows, or blocks when these are
small, in the remaining lanes, and the rest in further registers.

Where a lane holds 32 bytes of B (sparse products of generation 4), the second 16 have the second half of all k: measured on the
chip with single ones in A and B for 16x16x64_f16 and 16x16x128_fp8_fp8. Those of 32 columns are taken to follow the dense
products of 32 bytes (`formats`), which lie so for 16 and for 32.

Numerics. `ieee` (the default): products are exact and summed in the format of D. `hw`: the chip's own sums (`Chip.matrix_sums`), as
MMA-Sim (arXiv 2511.10909) found them. Narrow floats: so many products at once are cut 24 bits below the largest, toward zero, and
added; that joins the running sum, both cut downwards; one rounding to nearest. f32 and f64: a chain of fused multiply-adds in the
order of k. Integers are exact modulo 2**32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilefw.api.integers import log2
from tilefw.api.sim import Accumulation, Fragment, Stages
from tilefw_amd.chips import Chip
from tilefw_amd.chips.chip import LANE_BITS
from tilefw_amd.isa.row import serves
from tilefw_amd.isa.types import TYPES, Type

# The formats of fragments by element type, as the simulator kit calls them; fp8 and bf8 are the chip's.
_FORMATS = {"f16": "f16", "bf16": "bf16", "xf32": "tf32", "f32": "f32", "f64": "f64", "i8": "s8", "i32": "s32"}
_BITS = {"f16": 16, "bf16": 16, "xf32": 32, "f32": 32, "f64": 64, "i8": 8, "fp8": 8, "bf8": 8, "i32": 32}


def _names(kind: str, first: int, count: int) -> tuple[str, ...]:
    return tuple(f"{kind}{first + i}" for i in range(count))


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """`blocks` products of m x k by k x n, of elements `a` and `b`, into sums `d`; in `passes` of four cycles.

    With `sparse`, A has two of every four k. `swizzles`: blgp moves lanes of B, and cbsz and abid broadcast blocks of A where there
    are several (the calculator's tables). `since` and `until` are the first and the last generation that have it.
    """

    a: str
    b: str
    d: str
    m: int
    n: int
    k: int
    blocks: int
    opcode: int
    passes: int
    swizzles: bool = False
    sparse: bool = False
    since: int = 0
    until: int | None = None

    def serves(self, chip: Chip) -> bool:
        """Whether the chip has the instruction."""
        return serves(chip, self.name, self.since, self.until)

    @property
    def name(self) -> str:
        kind = "smfmac" if self.sparse else "mfma"
        blocks = f"_{self.blocks}b" if self.blocks > 1 else ""
        return f"v_{kind}_{self.d}_{self.m}x{self.n}x{self.k}{blocks}_{self._elements('_')}"

    @property
    def aliases(self) -> tuple[str, ...]:
        """The names of earlier chips that LLVM still takes: without underscores and blocks, bf16 also as bf16_1k."""
        kind = "smfmac" if self.sparse else "mfma"
        head = f"v_{kind}_{self.d}_{self.m}x{self.n}x{self.k}"
        if self.a in ("fp8", "bf8") and not self.sparse:
            return ()  # no earlier chip has them
        old = f"{head}{self._elements('')}"
        return (old, f"{old}_1k") if self.a == "bf16" and not self.sparse and not self.since else (old,)

    def _elements(self, between: str) -> str:
        return f"{self.a}{between}{self.b}" if self.a in ("fp8", "bf8") else self.a

    def _held(self, element: str, along: int) -> Type:
        """The type of what a lane holds of `along` k in all."""
        count = along * max(self.m, self.n) * self.blocks >> LANE_BITS
        return TYPES["f32" if element == "f32" and count == 1 else f"{element}x{count}"]

    @property
    def a_type(self) -> Type:
        return self._held(self.a, self.k // 2 if self.sparse else self.k)

    @property
    def b_type(self) -> Type:
        return self._held(self.b, self.k)

    @property
    def d_type(self) -> Type:
        count = self.m * self.n * self.blocks >> LANE_BITS
        return TYPES[f"{self.d}x{count}"]


def _f32(*shapes: tuple[int, int, int, int, int]) -> list[MatrixShape]:
    return [MatrixShape("f32", "f32", "f32", m, m, k, blocks, opcode, passes, True) for m, k, blocks, opcode, passes in shapes]


def _narrow(element: str, d: str, *shapes: tuple[int, int, int, int, int]) -> list[MatrixShape]:
    """Shapes of several blocks have the swizzles, those of one have not."""
    return [
        MatrixShape(element, element, d, m, m, k, blocks, opcode, passes, blocks > 1) for m, k, blocks, opcode, passes in shapes
    ]


def _wide(element: str, d: str, *shapes: tuple[int, int, int, int, int]) -> list[MatrixShape]:
    """Those with twice the k in as many passes as their narrow neighbours."""
    return [replace(shape, since=4) for shape in _narrow(element, d, *shapes)]


def _eighths() -> list[MatrixShape]:
    pairs = [(a, b) for a in ("bf8", "fp8") for b in ("bf8", "fp8")]
    return [
        MatrixShape(a, b, "f32", m, m, k, 1, first + i, passes, sparse=sparse)
        for first, m, k, passes, sparse in (
            (0x70, 16, 32, 4, False), (0x74, 32, 16, 8, False), (0x78, 16, 64, 4, True), (0x7C, 32, 32, 8, True)
        )
        for i, (a, b) in enumerate(pairs)
    ]


def _sparse(element: str, d: str, k: int, opcode: int) -> list[MatrixShape]:
    return [
        MatrixShape(element, element, d, 16, 16, k, 1, opcode, 4, sparse=True),
        MatrixShape(element, element, d, 32, 32, k // 2, 1, opcode + 2, 8, sparse=True),
    ]


def _wide_sparse(a: str, b: str, d: str, k: int, *opcodes: int) -> list[MatrixShape]:
    """Sparse ones with twice the k, of 16 x 16 and of 32 x 32."""
    return [
        MatrixShape(a, b, d, m, m, k * 16 // m, 1, opcode, m // 4, sparse=True, since=4)
        for m, opcode in zip((16, 32), opcodes, strict=True)
    ]


# Opcodes: LLVM's VOP3PInstructions.td, checked against its disassembler (the calculator has those of 32x32x16_i8 and 16x16x32_i8
# wrong). Passes: the calculator's cycles / 4, the same as in LLVM's SISchedule.td. (m = n, k, blocks, opcode, passes)
SHAPES: tuple[MatrixShape, ...] = (
    *(replace(shape, until=3) for shape in _narrow("xf32", "f32", (16, 8, 1, 0x3E, 4), (32, 4, 1, 0x3F, 8))),
    *_f32((32, 1, 2, 0x40, 16), (16, 1, 4, 0x41, 8), (4, 1, 16, 0x42, 2), (32, 2, 1, 0x44, 16), (16, 4, 1, 0x45, 8)),
    *_narrow("f16", "f32", (32, 4, 2, 0x48, 16), (16, 4, 4, 0x49, 8), (4, 4, 16, 0x4A, 2)),
    *_narrow("f16", "f32", (32, 8, 1, 0x4C, 8), (16, 16, 1, 0x4D, 4)),
    *_wide("f16", "f32", (16, 32, 1, 0x54, 4), (32, 16, 1, 0x55, 8)),
    *_wide("bf16", "f32", (16, 32, 1, 0x35, 4), (32, 16, 1, 0x37, 8)),
    *_wide("i8", "i32", (16, 64, 1, 0x36, 4), (32, 32, 1, 0x38, 8)),
    *_narrow("i8", "i32", (32, 4, 2, 0x50, 16), (16, 4, 4, 0x51, 8), (4, 4, 16, 0x52, 2)),
    *_narrow("i8", "i32", (32, 16, 1, 0x56, 8), (16, 32, 1, 0x57, 4)),
    *_narrow("bf16", "f32", (32, 4, 2, 0x5D, 16), (16, 4, 4, 0x5E, 8), (4, 4, 16, 0x5F, 2)),
    *_narrow("bf16", "f32", (32, 8, 1, 0x60, 8), (16, 16, 1, 0x61, 4)),
    *_sparse("f16", "f32", 32, 0x62),
    *_sparse("bf16", "f32", 32, 0x66),
    *_sparse("i8", "i32", 64, 0x6A),
    *_wide_sparse("f16", "f16", "f32", 64, 0x5A, 0x5B),
    *_wide_sparse("bf16", "bf16", "f32", 64, 0x39, 0x46),
    *_wide_sparse("i8", "i8", "i32", 128, 0x3A, 0x47),
    *_wide_sparse("bf8", "bf8", "f32", 128, 0x3B, 0x4B),
    *_wide_sparse("bf8", "fp8", "f32", 128, 0x3C, 0x4E),
    *_wide_sparse("fp8", "bf8", "f32", 128, 0x3D, 0x4F),
    *_wide_sparse("fp8", "fp8", "f32", 128, 0x43, 0x53),
    MatrixShape("f64", "f64", "f64", 16, 16, 4, 1, 0x6E, 8, until=3),
    MatrixShape("f64", "f64", "f64", 16, 16, 4, 1, 0x6E, 16, since=4),
    MatrixShape("f64", "f64", "f64", 4, 4, 4, 4, 0x6F, 4),
    *_eighths(),
)


_NEXT_TO = 2  # index bits of registers with consecutive k: 16 bytes


def _register_bits(element: str) -> int:
    return 64 if element == "f64" else 32


def _input(element: str, size: int, k: int, blocks: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Index bits of the row (A) or column (B), of k, and of the block."""
    along, several = log2(size), log2(blocks)
    further = LANE_BITS - along - several
    packed = log2(_register_bits(element) // _BITS[element])
    inner = log2(k) - further
    registers = _names("r", 0, max(0, inner - packed))
    place = _names("e", 0, min(packed, inner)) + registers[:_NEXT_TO]
    return _names("l", 0, along), place + _names("l", along + several, further) + registers[_NEXT_TO:], _names("l", along, several)


def _format(element: str, chip: Chip) -> str:
    return _FORMATS.get(element) or chip.float8[element]


def operand_a(shape: MatrixShape, chip: Chip) -> Fragment:
    """A, m x k (m x k/2 when sparse)."""
    rows, inner, blocks = _input(shape.a, shape.m, shape.k // 2 if shape.sparse else shape.k, shape.blocks)
    return Fragment(_format(shape.a, chip), rows, inner, _register_bits(shape.a), blocks)


def operand_b(shape: MatrixShape, chip: Chip) -> Fragment:
    """B, k x n: a column of B lies as a row of A does."""
    columns, inner, blocks = _input(shape.b, shape.n, shape.k, shape.blocks)
    return Fragment(_format(shape.b, chip), inner, columns, _register_bits(shape.b), blocks)


def sparse_index(shape: MatrixShape) -> Fragment:
    """The two bits that go with each element of A: one after the other in the low bits of a register, in A's lanes."""
    rows, inner, _ = _input(shape.a, shape.m, shape.k // 2, 1)
    places = [name for name in inner if name[0] != "l"]
    return Fragment("u2", rows, _names("e", 0, len(places)) + inner[len(places) :], 2 << len(places))


def accumulator(shape: MatrixShape, chip: Chip) -> Fragment:
    """C and D, m x n: columns along the lanes, groups of rows in registers, the rest where there is room."""
    columns, rows, several = log2(shape.n), log2(shape.m), log2(shape.blocks)
    wide = shape.d == "f64"
    group = 0 if wide else 2
    room = LANE_BITS - columns
    in_lanes = max(0, min(several, room - (rows - group)))  # blocks that share a register
    further = min(rows - group, room - in_lanes)
    row_names = _names("r", 0, group) + _names("l", columns + in_lanes, further) + _names("r", group, rows - group - further)
    blocks = _names("l", columns, in_lanes) + _names("r", rows - further, several - in_lanes)
    return Fragment(_format(shape.d, chip), row_names, _names("l", 0, columns), 64 if wide else 32, blocks)


def accumulation(shape: MatrixShape, chip: Chip) -> Accumulation:
    """The rounding of sums on the chip."""
    if shape.d == "i32":
        return Accumulation("s32")
    if shape.sparse:
        return Accumulation("f32", unknown=shape.name)
    if shape.a in ("f32", "f64"):
        return Accumulation(shape.d)  # type: ignore[arg-type]
    of = chip.matrix_sums[_BITS[shape.a]]
    stages = Stages(of.window, groups=of.groups, drops_far=of.drops_far)
    return Accumulation("f32", of.at_once, of.bits, "rz", "rn", stages=stages)
