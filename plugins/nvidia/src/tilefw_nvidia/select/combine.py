"""PTX's table of instruction combining: contraction to fma where it is allowed, wide products, compares, address immediates.

PTX ISA, "Floating-Point Instructions: fma" (one rounding for a product and a sum), "Integer Arithmetic Instructions: mul, mad"
(`.wide`: the whole product of 32-bit factors), "Comparison and Selection: setp" (a compare's result with another predicate),
"Addresses as Operands" (register plus a 32-bit immediate).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from tilefw.api.machine import Operand
from tilefw.api.simt import Addresses, Combiner, Fusion
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.isa.set import instruction_set
from tilefw_nvidia.select.rules import COMPARES

_CONTRACTED = ("f32", "f64", "f16", "f16x2")
_LIMIT = 1 << 31


def _narrow(inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    """A literal factor that 32 bits hold, signed."""
    return isinstance(others[0], int) and -_LIMIT <= others[0] < _LIMIT


def _scaled(inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    """A register times a literal, added to a register."""
    return isinstance(inner[1], int) and not isinstance(others[0], int)


_INTEGER = (
    # A sign-extended factor by a literal is the whole product of 32-bit factors.
    Fusion("mul.lo.s64", "cvt.s64.s32", "mul.wide.s32", single=False, fits=_narrow),
    Fusion("mul.lo.s64", "cvt.s64.s32", "mul.wide.s32", single=False, both=True),
    Fusion("add.s64", "mul.wide.s32", "mad.wide.s32"),
    # A product by a literal is made again from its 32-bit factor wherever it is added: loops hold half the registers, often none,
    # since the factor is a parameter.
    Fusion("add.s64", "mul.wide.s32", "mad.wide.s32", single=False, fits=_scaled),
    Fusion("add.s64", "mul.lo.s64", "mad.lo.s64"),
    Fusion("add.s32", "mul.lo.s32", "mad.lo.s32"),
)
# A compare takes another predicate with it.
_CONDITIONS = tuple(
    Fusion(f"{combined}.pred", compare, f"{compare.removesuffix(kind)}{combined}.{kind}")
    for combined in ("and", "or", "xor")
    for compare, kind in ((compare, compare.rpartition(".")[2]) for compare in COMPARES)
)
_ADDRESSES = Addresses("add.s64", ("ld.global", "st.global", "ld.volatile", "st.volatile", "ld.relaxed", "atom", "red"), _LIMIT)


@cache
def combiner(chip: Chip, fusion: bool) -> Combiner:
    """The table, as far as the chip has what it makes; without `fusion` every product and sum of floats is rounded by itself."""
    instructions = instruction_set(chip)
    fused = [f for t in _CONTRACTED for f in _contractions(t)] if fusion else []
    table: dict[str, list[Fusion]] = {}
    for rewrite in (*_INTEGER, *_CONDITIONS, *fused):
        if instructions.opcode(rewrite.fused).exists:
            table.setdefault(rewrite.outer, []).append(rewrite)
    return Combiner(table, _ADDRESSES, _opposite)


def _contractions(t: str) -> tuple[Fusion, ...]:
    """x·y + z; x·y - z, whose z is often one of a row; z - x·y, whose factor is often a literal."""
    product, fma, sign = f"mul.{t}", f"fma.rn.{t}", f"neg.{t}"
    return (
        Fusion(f"add.{t}", product, fma),
        Fusion(f"sub.{t}", product, fma, at=(0,), negated=(2,), negation=sign),
        Fusion(f"sub.{t}", product, fma, at=(1,), negated=(0, 1), negation=sign),
    )


def _opposite(literal: Operand) -> str | None:
    """PTX ISA, "Floating-Point Constants": 0f or 0d and all bits in hexadecimal digits, the sign in the first."""
    if not isinstance(literal, str) or literal[:2] not in ("0f", "0d"):
        return None
    return f"{literal[:2]}{int(literal[2], 16) ^ 8:X}{literal[3:]}"
