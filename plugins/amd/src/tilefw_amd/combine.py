"""gfx942's table of instruction combining: contractions, instructions of three sources, comparisons into what reads them.

CDNA3 ISA, sections "VOP3" (V_FMA_F32, V_MAX3_F32, V_ADD3_U32, V_LSHL_ADD_U32, V_XAD_U32, V_AND_OR_B32, …), "SOPC".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import Combiner, Fusion
from tilefw_amd.isa.table import load_rows
from tilefw_amd.operands import is_inline

_COMPARISONS = tuple(name for name in load_rows() if name.startswith("s_cmp_"))
# A comparison goes into the branch or the choice that reads it, so that SCC is not made a mask and back.
_CONDITIONS = tuple(
    fusion
    for name in _COMPARISONS
    for fusion in (
        *(Fusion(f"{way}.mask", f"compare.{name}", f"{way}.{name}", at=(0,), single=False) for way in ("branch", "branch_not")),
        *(Fusion(f"s_select_{bits}", f"compare.{name}", f"select.{name}", at=(0,), single=False) for bits in ("b32", "b64")),
    )
)


def _fits(inner: Sequence[Operand], others: Sequence[Operand], width: int = 32) -> bool:
    """Whether an instruction of three sources takes these: no literal, one scalar register, no modifiers that stand there already
    (CDNA3 ISA, section "VOP3": no literals; "Scalar operands")."""
    scalars = set()
    for use in (*inner, *others):
        if isinstance(use, Slice):
            if use.reg.cls in ("s", "m"):
                scalars.add(use)
        elif isinstance(use, str) or not is_inline(use, width):
            return False
    return len(scalars) <= 1


def _three(outer: str, inner: str, fused: str, at: tuple[int, ...] = (0, 1), order: tuple[int, ...] = ()) -> Fusion:
    return Fusion(outer, inner, fused, at, fits=_fits, order=order)


_LONGER = (
    _three("v_add_u32", "v_add_u32", "v_add3_u32"),
    _three("v_add_u32", "v_lshlrev_b32", "v_lshl_add_u32", order=(1, 0, 2)),
    _three("v_add_u32", "v_xor_b32", "v_xad_u32"),
    _three("v_lshlrev_b32", "v_add_u32", "v_add_lshl_u32", at=(1,)),
    _three("v_or_b32", "v_or_b32", "v_or3_b32"),
    _three("v_or_b32", "v_and_b32", "v_and_or_b32"),
    _three("v_or_b32", "v_lshlrev_b32", "v_lshl_or_b32", order=(1, 0, 2)),
    *(_three(f"v_{row}_{t}", f"v_{row}_{t}", f"v_{row}3_{t}") for row in ("max", "min") for t in ("f32", "i32", "u32")),
)


def _fits_wide(inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    return _fits(inner, others, 64)


def _fits_half(inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    return _fits(inner, others, 16)


# x·y + z; x·y - z; z - x·y.
_CONTRACTIONS = (
    *(
        fusion
        for t, fits in (("f32", _fits), ("f16", _fits_half))
        for fusion in (
            Fusion(f"v_add_{t}", f"v_mul_{t}", f"v_fma_{t}", fits=fits),
            Fusion(f"v_sub_{t}", f"v_mul_{t}", f"v_fma_{t}", at=(0,), fits=fits, words=("neg:[0,0,1]",)),
            Fusion(f"v_sub_{t}", f"v_mul_{t}", f"v_fma_{t}", at=(1,), fits=fits, words=("neg:[1,0,0]",)),
        )
    ),
    Fusion("v_add_f64", "v_mul_f64", "v_fma_f64", fits=_fits_wide),
)


@cache
def combiner(fusion: bool) -> Combiner:
    """The table; without `fusion` every product and sum of floats is rounded by itself."""
    table: dict[str, list[Fusion]] = {}
    for rewrite in (*_CONDITIONS, *_LONGER, *(_CONTRACTIONS if fusion else ())):
        table.setdefault(rewrite.outer, []).append(rewrite)
    return Combiner(table)
