"""Constants, ranges and values that nothing defines."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

import tilefw.language as tl
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import bitcast, cast, constant
from tilefw.frontend.values import RuntimeValue

if TYPE_CHECKING:
    from tilefw.frontend.builder import Builder
    from tilefw.importers.triton_ir.translation import Translation
    from tilefw.importers.triton_ir.tree import TextOperation

meaning = Meanings()

_DENSE = re.compile(r"dense<(.*)>", re.DOTALL)
_CODES = {"fp16": "<e", "fp32": "<f", "fp64": "<d"}


@meaning("arith.constant")
def literal(t: Translation, s: TextOperation) -> RuntimeValue:
    """`dense<0.0> : tensor<64xf32>`, `1 : i32`, `true`; a float's bits in hexadecimal where it is not finite."""
    text = s.items[0]
    if s.types:
        type = t.result_type(s)
    else:
        type = tl.int1  # `true` and `false` stand without a type
    shape = type.shape if isinstance(type, tl.block_type) else ()
    dense = _DENSE.fullmatch(text)
    if dense is not None and dense[1].startswith(("[", '"')):
        raise t.refusal(s, "a constant tile whose elements differ is not imported", note=f"it is {text[:80]}")
    return _number(t.b, dense[1] if dense is not None else text, type.scalar, shape)


def _number(b: Builder, text: str, element: tl.dtype, shape: tuple[int, ...]) -> RuntimeValue:
    if text in ("true", "false"):
        return b.constant(text == "true", element, shape)
    if element.is_int():
        return b.constant(int(text, 0), element, shape)
    if not text.startswith("0x"):
        return constant(b, float(text), element, shape)
    bits = int(text, 16)
    if element.is_bf16():
        return b.constant(struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0], element, shape)
    if element.name in _CODES:
        size = element.primitive_bitwidth // 8
        return b.constant(struct.unpack(_CODES[element.name], bits.to_bytes(size, "little"))[0], element, shape)
    return bitcast(b, b.constant(bits, tl.int8, shape), element)


@meaning("ub.poison")
def poison(t: Translation, s: TextOperation) -> RuntimeValue:
    """Any value will do: zero."""
    type = t.result_type(s)
    shape = type.shape if isinstance(type, tl.block_type) else ()
    if type.scalar.is_ptr():
        return cast(t.b, t.b.constant(0, tl.int64, shape), type.scalar)
    return constant(t.b, 0, type.scalar, shape)


@meaning("tt.make_range")
def make_range(t: Translation, s: TextOperation) -> RuntimeValue:
    return t.b.iota(t.integer(s, "start"), t.integer(s, "end"))
