"""gfx942's table of instruction combining: contractions, instructions of three sources, comparisons into what reads them.

CDNA3 ISA, sections "VOP2" (V_FMAMK_F32, V_FMAAK_F32), "VOP3" (V_FMA_F32, V_MAX3_F32, V_ADD3_U32, V_LSHL_ADD_U32, V_XAD_U32,
V_AND_OR_B32, …), "SOPC".
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


def _literal_factor(inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    """A product by a literal, which stands first in it, and a register: V_FMAMK takes it between two vector registers."""
    return _is_literal(inner[0]) and _in_lanes(inner[1], *others)


def _literal_addend(inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    """A sum with a literal: V_FMAAK takes it behind two vector registers."""
    return len(others) == 1 and _is_literal(others[0]) and _in_lanes(*inner)


def _is_literal(use: Operand) -> bool:
    return isinstance(use, int) and not is_inline(use, 32)


def _in_lanes(*uses: Operand) -> bool:
    return all(isinstance(use, Slice) and use.reg.cls == "v" for use in uses)


def _opposite(literal: Operand) -> int | None:
    """The f32 of the other sign."""
    return literal ^ 1 << 31 if isinstance(literal, int) else None


# x·y + z; x·y - z; z - x·y: of both differences, which have their operands in one order and the other.
_DIFFERENCES = (("sub", 0, 1), ("subrev", 1, 0))
_CONTRACTIONS = (
    *(
        fusion
        for t, fits in (("f32", _fits), ("f16", _fits_half))
        for fusion in (
            Fusion(f"v_add_{t}", f"v_mul_{t}", f"v_fma_{t}", fits=fits),
            *(
                Fusion(f"v_{difference}_{t}", f"v_mul_{t}", f"v_fma_{t}", at=(at,), fits=fits, words=(f"neg:{signs}",))
                for difference, *places in _DIFFERENCES
                for at, signs in zip(places, ("[0,0,1]", "[1,0,0]"), strict=True)
            ),
        )
    ),
    Fusion("v_add_f32", "v_mul_f32", "v_fmamk_f32", fits=_literal_factor, order=(1, 0, 2)),
    Fusion("v_add_f32", "v_mul_f32", "v_fmaak_f32", fits=_literal_addend),
    *(
        fusion
        for difference, minuend, subtrahend in _DIFFERENCES
        for fusion in (
            Fusion(f"v_{difference}_f32", "v_mul_f32", "v_fmamk_f32", at=(subtrahend,), fits=_literal_factor, negated=(0,),
                   order=(1, 0, 2)),
            Fusion(f"v_{difference}_f32", "v_mul_f32", "v_fmaak_f32", at=(minuend,), fits=_literal_addend, negated=(2,)),
        )
    ),
    Fusion("v_add_f64", "v_mul_f64", "v_fma_f64", fits=_fits_wide),
    Fusion("v_pk_add_f16", "v_pk_mul_f16", "v_pk_fma_f16", fits=_fits),
    Fusion("v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32", fits=_fits),
)


def _fits_lanes(inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    """A copy from other lanes into an instruction of two vector registers: v_mov_b32 with the three words of DPP."""
    return len(inner) == 4 and isinstance(others[0], Slice) and others[0].reg.cls == "v"


# What comes from other lanes is the first source (CDNA3 ISA, section "DPP": SRC0).
_LANES = tuple(
    Fusion(opcode, "v_mov_b32", opcode, fits=_fits_lanes, order=(0, 4, 1, 2, 3))
    for opcode in (
        "v_add_f32", "v_mul_f32", "v_max_f32", "v_min_f32", "v_add_f16", "v_mul_f16", "v_max_f16", "v_min_f16", "v_add_u32",
        "v_max_i32", "v_min_i32", "v_max_u32", "v_min_u32", "v_and_b32", "v_or_b32", "v_xor_b32",
    )
)


@cache
def combiner(fusion: bool) -> Combiner:
    """The table; without `fusion` every product and sum of floats is rounded by itself."""
    table: dict[str, list[Fusion]] = {}
    for rewrite in (*_CONDITIONS, *_LANES, *_LONGER, *(_CONTRACTIONS if fusion else ())):
        table.setdefault(rewrite.outer, []).append(rewrite)
    return Combiner(table, opposite=_opposite)
