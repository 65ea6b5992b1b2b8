"""How operands of each type become a matrix atom's: its element types and precision, and for fp32 in which parts and products."""

from __future__ import annotations

from dataclasses import dataclass

_E4M3 = "f8E4M3FN"
_SIX_BITS = ("f6E2M3FN", "f6E3M2FN")  # of which every number is one of e4m3
_FP8 = ("f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "!tile.fp8e4b15")


@dataclass(frozen=True)
class DotTypes:
    """Element types of a dot as tile IR names them, and how it is to be computed (`tile.dot`).

    `group` elements along k share a scale (`tile.dot_scaled`); 0 without scales. `imprecise`: sums may be kept shorter.
    """

    a: str
    b: str
    acc: str
    precision: str = "ieee"
    unsigned: bool = False
    group: int = 0
    imprecise: bool = False


@dataclass(frozen=True)
class Recipe:
    """Operands as an atom takes them: its element types and precision, and which products of parts are added up, in order.

    Part 0 of an operand is the operand in the atom's type, part 1 what that left out, part 2 what both left out.
    """

    a: str
    b: str
    precision: str = ""
    products: tuple[tuple[int, int], ...] = ((0, 0),)


_THREE = ((0, 1), (1, 0), (0, 0))
_SIX = ((0, 2), (2, 0), (1, 1), *_THREE)
_EXACT = Recipe("f32", "f32")
F32_RECIPES = {
    "ieee": (_EXACT,),
    "tf32": (Recipe("f32", "f32", "tf32"), _EXACT),
    "tf32x3": (Recipe("f32", "f32", "tf32", _THREE), _EXACT),
    "bf16x3": (Recipe("bf16", "bf16", "", _THREE), _EXACT),
    "bf16x6": (Recipe("bf16", "bf16", "", _SIX), _EXACT),
}


def recipes(types: DotTypes) -> tuple[Recipe, ...]:
    """The ways to compute a dot of these types with matrix atoms."""
    if types.a == types.b == "f32":
        return F32_RECIPES[types.precision]
    own = Recipe(types.a, types.b)
    if types.group:
        a, b = (_E4M3 if name in _SIX_BITS else name for name in (types.a, types.b))
        return own, Recipe(a, b)
    # Every 8-bit float is a value of f16.
    return (own, Recipe("f16", "f16")) if types.a in _FP8 else (own,)
