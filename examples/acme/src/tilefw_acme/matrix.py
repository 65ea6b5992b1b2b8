"""The X2's matrix instructions: shapes, costs, and where operands lie over the 64 lanes, each written once as a `Fragment`.

D = A x B + C. Lanes run along the rows of A and the columns of B and D; the rest of k stands in registers, then in the upper lane
bits, and D's rows lie in groups of four registers (in the manner of v_mfma_f32_16x16x16_f16 and v_mfma_f32_32x32x8_f16, "AMD
Instinct MI300 Instruction Set Architecture", the matrix instructions). Every operand register is named on its own. Sums are a chain
of multiply-adds in the order of k, rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.sim import Accumulation, Fragment

_ELEMENTS = {"f16": ("f16", 2), "bf16": ("bf16", 2), "s8": ("i8", 4), "f32": ("f32", 1)}  # tile IR's name, elements a register


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One instruction; `element` and `sums` are tile IR's types, `cost` the issue cycles of a wave."""

    element: str
    sums: str
    cost: int
    a: Fragment
    b: Fragment
    d: Fragment
    accumulation: Accumulation

    @property
    def registers(self) -> tuple[int, int, int]:
        """How many registers A, B and D have."""
        return tuple(1 << sum(bit[0] == "r" for bit in (*f.rows, *f.columns)) for f in (self.a, self.b, self.d))  # type: ignore[return-value]


def _row(size: int, k: int, fmt: str, cost: int) -> MatrixRow:
    """D is `size` x `size`."""
    element, packed = _ELEMENTS[fmt]
    sums = "s32" if fmt == "s8" else "f32"
    across = tuple(f"l{i}" for i in range(size.bit_length() - 1))
    above = tuple(f"l{i}" for i in range(len(across), 6))
    places = tuple(f"e{i}" for i in range(packed.bit_length() - 1))
    along = (*places, *(f"r{i}" for i in range(k.bit_length() - 1 - len(places) - len(above))), *above)
    rows = ("r0", "r1", *above, *(f"r{i}" for i in range(2, len(across) - len(above))))
    return MatrixRow(
        element, "i32" if sums == "s32" else sums, cost, Fragment(fmt, across, along), Fragment(fmt, along, across),
        Fragment(sums, rows, across), Accumulation(sums),
    )


MATRICES: dict[str, MatrixRow] = {
    "mma.16x16x16.f16": _row(16, 16, "f16", 8), "mma.32x32x8.f16": _row(32, 8, "f16", 16),
    "mma.16x16x16.bf16": _row(16, 16, "bf16", 8), "mma.32x32x8.bf16": _row(32, 8, "bf16", 16),
    "mma.16x16x32.s8": _row(16, 32, "s8", 8), "mma.16x16x4.f32": _row(16, 4, "f32", 8),
}
