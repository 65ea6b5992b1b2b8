"""Products of matrices, plain and with scales."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import tilefw.language as tl
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.builtins.scaled_matrix import dot_scaled
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.cutile.operations.conversions import element_name

if TYPE_CHECKING:
    from tilefw.importers.cutile.bytecode_translation import BytecodeTranslation
    from tilefw.importers.cutile.bytecode_tree import BytecodeOperation

meaning = Meanings()

_FORMATS: Mapping[str, str] = MappingProxyType({"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"})


@meaning("mmaf")
def multiply(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    """Whether sums may be less exact (`fast_acc`) makes no difference here."""
    left, right, acc = t.tile(op, "lhs"), t.tile(op, "rhs"), t.tile(op, "acc")
    precision = "tf32" if element_name(t, op.operands["lhs"]) == "tf32" else "ieee"
    return t.b.dot(left, right, acc, precision, False)


@meaning("mmai")
def multiply_integers(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    signs = {op.attributes["signedness_lhs"], op.attributes["signedness_rhs"]}
    if len(signs) != 1:
        raise t.refusal(op, "mmai of a signed and an unsigned operand is not imported")
    return t.b.dot(t.tile(op, "lhs"), t.tile(op, "rhs"), t.tile(op, "acc"), "ieee", signs == {"unsigned"})


@meaning("mmaf_scaled")
def multiply_scaled(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    """A scale is a power of two for a block along the inner axis; that of the right operand is listed the other way round."""
    names = [element_name(t, op.operands[side]) for side in ("lhs", "rhs")]
    scales = [element_name(t, op.operands[side]) for side in ("lhs_scale", "rhs_scale")]
    if not set(names) <= _FORMATS.keys() or set(scales) != {"f8E8M0FNU"}:
        raise t.refusal(op, f"mmaf_scaled of {names[0]} and {names[1]} with scales of {scales[0]} is not imported")
    left, right, acc = t.tile(op, "lhs"), t.tile(op, "rhs"), t.tile(op, "acc")
    left_scale, right_scale = (t.b.retyped(t.tile(op, side), tl.uint8) for side in ("lhs_scale", "rhs_scale"))
    rank = len(right_scale.shape)
    turned = t.b.transpose(right_scale, (*range(rank - 2), rank - 1, rank - 2))
    return dot_scaled(
        t.b, left, left_scale, _FORMATS[names[0]], right, turned, _FORMATS[names[1]], acc, False, True, True, tl.float32
    )
