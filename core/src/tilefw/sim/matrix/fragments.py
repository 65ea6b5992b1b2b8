"""Where a small matrix lives in a wave: maps between index bits of (place in register, register, lane) and (row, column).

Matrix instructions of all vendors spread their operands by permuting index bits, so a map is a list of bit names, the
lowest first: "e0" is the lowest bit of the element's place within its register, "r0" of the register's number, "l0" of
the lane's. Cited by each instruction set with its own figures; here is only the algebra.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Fragment:
    """A matrix of 2**len(rows) by 2**len(columns) elements of format `fmt` over the registers of a wave.

    `rows[i]` names the index bit that is bit i of the row number, `columns` likewise; each bit of (element, register, lane)
    appears exactly once. Registers have `register_bits` bits; elements, `element_bits` wide, fill them from the low end. Those of
    64 bits may be given as halves, lowest first; a product's result then is, as its addend. Elements of 6 bits lie one behind the
    other through registers that are taken for one, of a multiple of 96 bits, and are given in parts of 32.
    `fmt` is a float format of `algebra` ("tf32" reads f32 registers and drops the low 13 bits) or "s8" "u8" "s4" "u4" "u2"
    "s32" "b1". With `blocks`, the registers hold 2**len(blocks) such matrices, and `blocks[i]` names bit i of the number of one.

    A common f16 operand of 16 rows and 16 columns: lane = 4*(row % 8) + (column % 8) // 2,
    register bit 0 chooses rows 8..15, bit 1 columns 8..15:
    Fragment("f16", rows=("l2", "l3", "l4", "r0"), columns=("e0", "l0", "l1", "r1")).
    """

    fmt: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    register_bits: int = 32
    blocks: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of one block, in elements."""
        return 1 << len(self.rows), 1 << len(self.columns)

    @property
    def bits(self) -> tuple[str, ...]:
        """The index bits of a dense array [block, row, column], lowest first."""
        return self.columns + self.rows + self.blocks


@dataclass(frozen=True, slots=True)
class BitMap:
    """Output index bit to input index bit: `{"l0": "r0", …}` as pairs; an output bit takes its value from the input bit named.

    Input bits that no output bit takes are 0. Example: each lane has loaded one row of four words, and
    four matrices of eight rows are wanted, one a register:
    BitMap.of(l0="r0", l1="r1", l2="l0", l3="l1", l4="l2", r0="l3", r1="l4").
    """

    bits: tuple[tuple[str, str], ...]

    @staticmethod
    def of(**bits: str) -> BitMap:
        """The map with an input bit for each output bit: `l0="r0"` takes lane bit 0 of the output from register bit 0."""
        return BitMap(tuple(sorted(bits.items())))

    @property
    def output_register_bits(self) -> int:
        """How many bits the index of an output register has: 2 for four registers."""
        return sum(1 for output, _ in self.bits if output[0] == "r")


@dataclass(frozen=True, slots=True)
class Stages:
    """A matrix unit that sums the products of a block before it takes in the running sum (MMA-Sim's TR-FDPA and GTR-FDPA).

    The products whose places in the block are equal modulo `groups` are aligned, cut and added; sums of several groups are aligned
    to the larger of their exponents and cut downwards at `fraction_bits`. That sum and the running sum are aligned to
    the larger of their exponents and cut downwards, `joined_bits` + 1 and `fraction_bits` below it, added, and the total is cut
    downwards `joined_bits` below its own exponent before it is rounded. With `drops_far`, a running sum of an exponent
    more than `fraction_bits` + 1 below counts as zero.
    """

    joined_bits: int
    groups: int = 1
    drops_far: bool = False


@dataclass(frozen=True, slots=True)
class Accumulation:
    """How a matrix unit sums, for `numerics="hw"`: `block` products and the running sum are aligned to the largest exponent among
    them, cut to `fraction_bits` bits below it by `alignment_rounding`, added exactly, and rounded once to `result` (see MMA-Sim,
    arXiv 2511.10909). `block` 0: all of k at once. `fraction_bits` 0: a chain of fused multiply-adds in the order of k. `saturate`
    clamps integer sums to 32 bits. `stages`: the running sum joins later, see there. `unknown` says of whose sums nobody has
    published a model: "hw" numerics refuse it. `result_fraction_bits`, where it is not 0: an f32 result keeps so few bits.
    `zero_fraction_bits`: terms that are zero have the exponent that goes with so many fraction bits, where these are others.
    `wide`: "ieee" numerics sum in f64 and round once to the result."""

    result: Literal["f16", "f32", "f64", "s32"]
    block: int = 0
    fraction_bits: int = 0
    alignment_rounding: Literal["rz", "rn"] = "rz"
    result_rounding: Literal["rz", "rn"] = "rz"
    saturate: bool = False
    stages: Stages | None = None
    unknown: str = ""
    result_fraction_bits: int = 0
    zero_fraction_bits: int = 0
    wide: bool = False
