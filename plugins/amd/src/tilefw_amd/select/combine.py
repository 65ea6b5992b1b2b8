"""The table of instruction combining: contractions, instructions of three sources, comparisons into what reads them.

CDNA3 ISA, sections "VOP2" (V_FMAMK_F32, V_FMAAK_F32), "VOP3" (V_FMA_F32, V_MAX3_F32, V_ADD3_U32, V_LSHL_ADD_U32, V_XAD_U32,
V_AND_OR_B32, …), "SOP2" (S_LSHL1_ADD_U32, …), "SOPC".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from tilefw.api.machine import Operand, Slice
from tilefw.api.simt import Combiner, Fusion
from tilefw_amd.isa.constants import is_inline
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine.traits import instructions


def _conditions(isa: InstructionSet) -> list[Fusion]:
    """A comparison goes into the branch or the choice that reads it, so that SCC is not made a mask and back."""
    return [
        fusion
        for name in isa.rows if name.startswith("s_cmp_")
        for fusion in (
            *(Fusion(f"{way}.mask", f"compare.{name}", f"{way}.{name}", at=(0,), single=False) for way in ("branch", "branch_not")),
            *(
                Fusion(f"s_select_{bits}", f"compare.{name}", f"select.{name}", at=(0,), single=False, condition=True)
                for bits in ("b32", "b64")
            ),
        )
    ]


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


def _shifted_by(amount: int, inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    return inner[1] == amount


_LONGER = (
    _three("v_add_u32", "v_add_u32", "v_add3_u32"),
    _three("v_add_u32", "v_lshlrev_b32", "v_lshl_add_u32", order=(1, 0, 2)),
    _three("v_add_u32", "v_xor_b32", "v_xad_u32"),
    _three("v_lshlrev_b32", "v_add_u32", "v_add_lshl_u32", at=(1,)),
    _three("v_add_u32", "s_lshl_b32", "v_lshl_add_u32", order=(0, 1, 2)),
    *(Fusion("s_add_u32", "s_lshl_b32", f"s_lshl{n}_add_u32", fits=partial(_shifted_by, n), order=(0, 2)) for n in range(1, 5)),
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


# A difference of pairs is a sum whose second operand has the other sign.
_MINUS_SECONDS = ("neg_lo:[0,1]", "neg_hi:[0,1]")
_MINUS_THIRDS = ("neg_lo:[0,0,1]", "neg_hi:[0,0,1]")
_MINUS_FIRSTS = ("neg_lo:[1,0,0]", "neg_hi:[1,0,0]")


def _fits_difference(inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    return tuple(others[1:]) == _MINUS_SECONDS and _fits(inner, others[:1])


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
    *(
        Fusion("v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32", at=(at,), fits=_fits_difference, order=(0, 1, 2), words=signs)
        for at, signs in enumerate((_MINUS_THIRDS, _MINUS_FIRSTS))
    ),
)


def _fits_lanes(inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    """A copy from other lanes (v_mov_b32 with the three words of DPP) into an instruction of two vector registers, with no such
    words yet."""
    return len(inner) == 4 and len(others) == 1 and _in_lanes(*others)


# What comes from other lanes is the first source (CDNA3 ISA, section "DPP": SRC0).
_LANES = tuple(
    Fusion(opcode, "v_mov_b32", opcode, fits=_fits_lanes, order=(0, 4, 1, 2, 3))
    for opcode in (
        "v_add_f32", "v_mul_f32", "v_max_f32", "v_min_f32", "v_add_f16", "v_mul_f16", "v_max_f16", "v_min_f16", "v_add_u32",
        "v_max_i32", "v_min_i32", "v_max_u32", "v_min_u32", "v_and_b32", "v_or_b32", "v_xor_b32",
    )
)


# An f16 is made an f32 by v_fma_mix_f32 x, 1.0, 0, modifiers, neg:[0,0,1]; what is computed with it can be in that instruction.
# Sums with a product by 1 and products with -0 added are rounded once, as they were. The modifiers say that x is an f16
# (op_sel_hi), and of which half (op_sel), so there are one or two of them.
_MIX, _HALF, _HALVES = "v_fma_mix_f32", "op_sel_hi:[1,0,0]", "op_sel_hi:[1,1,0]"
_MINUS_THIRD, _MINUS_FIRST = "neg:[0,0,1]", "neg:[1,0,0]"


def _fits_mixed(names: int, inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    if len(inner) != 4 + names or not _is_half(inner) or not all(isinstance(o, Slice) for o in others):
        return False
    return _fits((), (*inner[:2], *others))


def _fits_product(names: int, inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    """A product with an f16 in it, and what is added."""
    if len(inner) != 4 + names or inner[2] != 0 or inner[-1] != _MINUS_THIRD or not all(isinstance(o, Slice) for o in others):
        return False
    return _fits((), (*inner[:2], *others))


def _fits_factor(names: int, inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    """Of a product, which tells itself from a conversion: its other factor is not a scalar."""
    return _in_lanes(others[0]) and _fits_mixed(names, inner, others)


def _is_half(inner: Sequence[Operand]) -> bool:
    """Whether an instruction does nothing but make an f32 of an f16: the 1 stands in a scalar register."""
    return inner[2] == 0 and inner[-2:] == (_HALF, _MINUS_THIRD) and not _in_lanes(inner[1])


def _fits_second(modifiers: tuple[str, ...], inner: Sequence[Operand], others: Sequence[Operand]) -> bool:
    """Of an instruction with these modifiers, whose first factor is an f16, as the second factor: both of low halves."""
    scalars = {o for o in (inner[0], *others) if isinstance(o, Slice) and o.reg.cls == "s"}
    return len(inner) == 5 and _is_half(inner) and tuple(others[2:]) == modifiers and len(scalars) <= 1


_Fits = Callable[[Sequence[Operand], Sequence[Operand]], bool]


def _sums(names: int, single: bool, fits: _Fits) -> tuple[Fusion, ...]:
    """x·y + z; x·y - z; z - x·y; of a first factor of so many modifiers."""
    said, minus, z = tuple(range(3, 3 + names)), 3 + names, 4 + names
    rows = [Fusion("v_add_f32", _MIX, _MIX, single=single, fits=fits, order=(0, 1, z, *said))]
    for difference, minuend, subtrahend in _DIFFERENCES:
        row = partial(Fusion, f"v_{difference}_f32", _MIX, _MIX, single=single, fits=fits)
        rows.append(row(at=(minuend,), order=(0, 1, z, *said, minus)))
        rows.append(row(at=(subtrahend,), order=(0, 1, z, *said), words=(_MINUS_FIRST,)))
    return tuple(rows)


def _mixed(names: int) -> tuple[Fusion, ...]:
    """With an f16 of so many modifiers: sums of x·1, and products of x."""
    fits, said, y = partial(_fits_factor, names), tuple(range(3, 3 + names)), 4 + names
    return (
        *_sums(names, False, partial(_fits_mixed, names)),
        Fusion("v_mul_f32", _MIX, _MIX, single=False, fits=fits, order=(0, y, 2, *said, 3 + names)),
        Fusion("v_fma_f32", _MIX, _MIX, (0, 1), single=False, fits=fits, order=(0, y, y + 1, *said)),
    )


_MIXED_CONTRACTIONS = tuple(row for names in (1, 2) for row in _sums(names, True, partial(_fits_product, names)))
_MIXED = (
    *_mixed(1), *_mixed(2),
    *(
        Fusion(
            _MIX, _MIX, _MIX, (1,), single=False, fits=partial(_fits_second, (_HALF, *signs)), order=(5, 0, 6),
            words=(_HALVES, *signs),
        )
        for signs in ((), (_MINUS_THIRD,), (_MINUS_FIRST,))
    ),
)


@cache
def combiner(isa: InstructionSet, fusion: bool) -> Combiner:
    """The table, as far as the chip has what it makes; without `fusion` every product and sum of floats is rounded by itself."""
    table: dict[str, list[Fusion]] = {}
    has = instructions(isa).has
    contractions = (*_CONTRACTIONS, *_MIXED_CONTRACTIONS)
    for rewrite in (*_conditions(isa), *_LANES, *_LONGER, *_MIXED, *(contractions if fusion else ())):
        if has(rewrite.fused):
            table.setdefault(rewrite.outer, []).append(rewrite)
    return Combiner(table, opposite=_opposite)
