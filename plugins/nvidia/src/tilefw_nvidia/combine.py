"""PTX's table of instruction combining: contraction to fma where it is allowed, wide products, compares, address immediates.

PTX ISA, "Floating-Point Instructions: fma" (one rounding for a product and a sum), "Integer Arithmetic Instructions: mul, mad"
(`.wide`: the whole product of 32-bit factors), "Comparison and Selection: setp" (a compare's result with another predicate),
"Addresses as Operands" (register plus a 32-bit immediate).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api.machine import Operand
from tilefw.api.simt import Addresses, Combiner, Fusion
from tilefw_nvidia.lower import COMPARES

_CONTRACTED = ("f32", "f64", "f16", "f16x2")
_LIMIT = 1 << 31


def _narrow(inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    """A literal factor that 32 bits hold, signed."""
    return isinstance(others[0], int) and -_LIMIT <= others[0] < _LIMIT


_INTEGER = (
    # A sign-extended factor by a literal is the whole product of 32-bit factors.
    Fusion("mul.lo.s64", "cvt.s64.s32", "mul.wide.s32", single=False, fits=_narrow),
    Fusion("add.s64", "mul.wide.s32", "mad.wide.s32"),
    Fusion("add.s32", "mul.lo.s32", "mad.lo.s32"),
)
# A compare takes another predicate with it.
_CONDITIONS = tuple(
    Fusion(f"{combined}.pred", compare, f"{compare.removesuffix(kind)}{combined}.{kind}")
    for combined in ("and", "or", "xor")
    for compare, kind in ((compare, compare.rpartition(".")[2]) for compare in COMPARES)
)
_ADDRESSES = Addresses("add.s64", ("ld.global", "st.global", "ld.volatile", "st.volatile"), _LIMIT)


def combiner(fusion: bool) -> Combiner:
    """The table; without `fusion` every product and sum of floats is rounded by itself."""
    fused = [Fusion(f"add.{t}", f"mul.{t}", f"fma.rn.{t}") for t in _CONTRACTED] if fusion else []
    table: dict[str, list[Fusion]] = {}
    for rewrite in (*_INTEGER, *_CONDITIONS, *fused):
        table.setdefault(rewrite.outer, []).append(rewrite)
    return Combiner(table, _ADDRESSES)
