"""Products of matrices, plain and with scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tilefw.language as tl
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.builtins.scaled_matrix import dot_scaled
from tilefw.frontend.values import RuntimeValue

if TYPE_CHECKING:
    from tilefw.importers.triton_ir.translation import Translation
    from tilefw.importers.triton_ir.tree import TextOperation

meaning = Meanings()


@meaning("tt.dot")
def dot(t: Translation, s: TextOperation) -> RuntimeValue:
    """Bytes are signed: Triton's own IR does not say otherwise."""
    left, right, acc = t.operands(s)
    precision = s.after("inputPrecision") or "ieee"
    return t.b.dot(left, right, acc, precision if left.dtype.is_fp32() else "ieee", False)


@meaning("tt.dot_scaled")
def scaled(t: Translation, s: TextOperation) -> RuntimeValue:
    """`%a scale %x, %b scale %y, %acc lhs = e4m3 rhs = e2m1`; either scale may be missing."""
    values = iter(t.operands(s))
    left, left_scale = next(values), next(values) if s.items[1] == "scale" else None
    second = s.items[3:] if left_scale is not None else s.items[1:]
    right, right_scale = next(values), next(values) if second[1] == "scale" else None
    formats = s.after("lhs"), s.after("rhs")
    packs = t.flag(s, "lhs_k_pack", True), t.flag(s, "rhs_k_pack", True)
    left, right = _bytes(t, left), _bytes(t, right)
    fast = t.flag(s, "fastMath")
    return dot_scaled(
        t.b, left, left_scale, formats[0], right, right_scale, formats[1], next(values), fast, *packs, tl.float32
    )


def _bytes(t: Translation, value: RuntimeValue) -> RuntimeValue:
    """Packed elements are unsigned bytes in the language."""
    return t.b.retyped(value, tl.uint8) if value.dtype == tl.int8 else value
