"""Products whose operands have the formats that modifiers name (V_MFMA_…_F8F6F4): shapes, where operands and scales lie, passes.

Sources: `test/mx_mfma_op` of ROCm's composable_kernel, which has run on the chip and prints which lane's scale an element
takes, and AMD's "Matrix Core Programming on AMD CDNA3 and CDNA4". Of fp6, bf6 and fp4 a lane holds 32 consecutive k. Of fp8 and
bf8 it holds two runs of 16, the second half of all k behind the first. A scale is for 32 consecutive k, in the lane whose
number has their block where that of an fp4 operand has it.

Numerics. `ieee`: products are exact, summed in f64 and rounded once. `hw`: products of 8 bits by 8 bits without scales are summed
as the chip's others of 8 bits are; of the others nobody has published a model.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.integers import log2
from tilefw.api.sim import Accumulation, Fragment, Stages
from tilefw_amd.chips import Chip
from tilefw_amd.chips.chip import LANE_BITS
from tilefw_amd.isa.row import serves
from tilefw_amd.isa.types import MATRIX_FORMATS

HELD = 32
"""Elements of an operand in a lane, and elements that share a scale."""
SCALE = "f8E8M0FNU"
SMALL_FORMATS = {"fp6": "f6E2M3FN", "bf6": "f6E3M2FN", "fp4": "f4E2M1FN"}
"""Formats of fewer than 8 bits, which have no NaN and no infinities (OCP MX 1.0). Which fp8 and bf8 are is the chip's."""
_BITS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}


@dataclass(frozen=True, slots=True)
class FormatShape:
    """m x k by k x m of elements `a` and `b` into sums of f32; `scaled`: with a power of two for each 32 k of a row or column."""

    a: str
    b: str
    m: int
    k: int
    opcode: int
    scaled: bool = False

    @property
    def mnemonic(self) -> str:
        return f"v_mfma_{'scale_' if self.scaled else ''}f32_{self.m}x{self.m}x{self.k}_f8f6f4"

    @property
    def name(self) -> str:
        return f"{self.mnemonic}_{self.a}_{self.b}"

    @property
    def d(self) -> str:
        """The type of the sums."""
        return "f32"

    def serves(self, chip: Chip) -> bool:
        """Whether the chip has the instruction."""
        return serves(chip, self.name, 4, None)

    @property
    def codes(self) -> tuple[int, int]:
        """What cbsz and blgp hold."""
        return MATRIX_FORMATS.index(self.a), MATRIX_FORMATS.index(self.b)

    @property
    def passes(self) -> int:
        """LLVM, GCNHazardRecognizer.cpp and SIInstrInfo.cpp: twice as many as soon as an operand has 8 bits."""
        wide = 8 in (_BITS[self.a], _BITS[self.b])
        return (8 if wide else 4) * (self.m // 16)

    @property
    def sums(self) -> int:
        """Registers of C and D."""
        return self.m * self.m >> LANE_BITS


def element(name: str, chip: Chip) -> str:
    """The element type that a format is on the chip."""
    return SMALL_FORMATS.get(name) or chip.float8[name]


def _names(kind: str, count: int, first: int = 0) -> tuple[str, ...]:
    return tuple(f"{kind}{first + i}" for i in range(count))


def _side(name: str, shape: FormatShape, chip: Chip) -> tuple[str, tuple[str, ...], tuple[str, ...], int]:
    """Format, index bits of the row of A or column of B, of k, and the bits of what the simulator takes for a register."""
    along = log2(shape.m)
    further = _names("l", LANE_BITS - along, along)
    match _BITS[name]:
        case 8:
            inner, register = (*_names("e", 2), *_names("r", 2), *further, "r2"), 32
        case 6:  # no register of 32 bits holds whole elements: the six are one
            inner, register = (*_names("e", 5), *further), 6 * 32
        case _:
            inner, register = (*_names("e", 3), *_names("r", 2), *further), 32
    return element(name, chip), _names("l", along), inner, register


def operand_a(shape: FormatShape, chip: Chip) -> Fragment:
    fmt, rows, inner, register = _side(shape.a, shape, chip)
    return Fragment(fmt, rows, inner, register)


def operand_b(shape: FormatShape, chip: Chip) -> Fragment:
    """A column of B lies as a row of A does."""
    fmt, columns, inner, register = _side(shape.b, shape, chip)
    return Fragment(fmt, inner, columns, register)


def scales_a(shape: FormatShape) -> Fragment:
    """The scales of A, m x k/32: a byte of one register."""
    along = log2(shape.m)
    return Fragment(SCALE, _names("l", along), _names("l", LANE_BITS - along, along), 8)


def scales_b(shape: FormatShape) -> Fragment:
    found = scales_a(shape)
    return Fragment(SCALE, found.columns, found.rows, 8)


def accumulator(shape: FormatShape) -> Fragment:
    """C and D lie as in all products of one block: columns along the lanes, four rows in registers, then lanes, then registers."""
    along = log2(shape.m)
    further = LANE_BITS - along
    rows = (*_names("r", 2), *_names("l", further, along), *_names("r", along - 2 - further, 2))
    return Fragment("f32", rows, _names("l", along))


def accumulation(shape: FormatShape, chip: Chip) -> Accumulation:
    """The rounding of sums on the chip."""
    if shape.scaled or (_BITS[shape.a], _BITS[shape.b]) != (8, 8):
        return Accumulation("f32", unknown=shape.mnemonic, wide=True)
    of = chip.matrix_sums[8]
    stages = Stages(of.window, groups=of.groups, drops_far=of.drops_far)
    return Accumulation("f32", of.at_once, of.bits, "rz", "rn", stages=stages, wide=True)


def _shapes(*, scaled: bool) -> tuple[FormatShape, ...]:
    return tuple(
        FormatShape(a, b, m, k, opcode, scaled)
        for m, k, opcode in ((16, 128, 0x2D), (32, 64, 0x2E)) for a in MATRIX_FORMATS for b in MATRIX_FORMATS
    )


SHAPES = _shapes(scaled=False)
SCALED_SHAPES = _shapes(scaled=True)
