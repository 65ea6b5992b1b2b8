"""Constants, ranges, and what is assumed of values."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import tilefw.language as tl
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import bitcast, cast
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.cutile.bytecode_types import ScalarType, TileType
from tilefw.importers.cutile.tagged_attributes import AssumedDivisor, AssumedRange

if TYPE_CHECKING:
    from tilefw.frontend.builder import Builder
    from tilefw.importers.cutile.bytecode_translation import BytecodeTranslation
    from tilefw.importers.cutile.bytecode_tree import BytecodeOperation

meaning = Meanings()

_LARGEST_DIVISOR = 1 << 31
_CODES = {"f16": "<e", "f32": "<f", "f64": "<d"}


@meaning("constant")
def literal(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    """The bytes of one element stand for all; truth values are 00 and ff, or packed into bits."""
    (type,) = op.types
    data, made = t.file.constants[op.attributes["value"]], t.type_of(type)
    assert isinstance(type, TileType)
    if not isinstance(type.element, ScalarType):
        raise t.refusal(op, "a constant pointer is not imported")
    size, count = (type.element.bits + 7) // 8, math.prod(type.shape)
    elements = {data[at : at + size] for at in range(0, len(data), size)}
    packed = type.element.bits == 1 and len(data) == (count + 7) // 8
    if packed:
        elements = _unpacked(data, count)
    if len(data) not in (size, size * count) and not packed:
        raise ValueError(f"{len(data)} bytes are no constant of type {type}")
    if len(elements) != 1:
        raise t.refusal(op, "a constant tile whose elements differ is not imported", note=f"its type is {type}")
    return number(t.b, type.element, elements.pop(), made.scalar, type.shape)


def _unpacked(data: bytes, count: int) -> set[bytes]:
    """The bytes of the truth values that some of `count` bits are."""
    every = (1 << count) - 1
    bits = int.from_bytes(data, "little") & every
    return {byte for byte, there in ((b"\xff", bits), (b"\x00", bits != every)) if there}


def number(b: Builder, type: ScalarType, data: bytes, element: tl.dtype, shape: tuple[int, ...]) -> RuntimeValue:
    """A constant by the bytes of its element."""
    bits = int.from_bytes(data, "little")
    if type.name in _CODES:
        return b.constant(struct.unpack(_CODES[type.name], data)[0], element, shape)
    if type.name in ("bf16", "tf32"):
        wide = bits << (16 if type.name == "bf16" else 13)
        return b.constant(struct.unpack("<f", wide.to_bytes(4, "little"))[0], element, shape)
    if element.is_int():
        return b.constant(bits, element, shape)
    return bitcast(b, b.constant(bits, tl.int8, shape), element)


@meaning("iota")
def iota(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    (type,) = op.types
    assert isinstance(type, TileType)
    return cast(t.b, t.b.iota(0, type.shape[0]), t.type_of(type).scalar)


@meaning("assume")
def assume(t: BytecodeTranslation, op: BytecodeOperation) -> RuntimeValue:
    """Divisibility becomes a fact of a parameter, or a hint on a scalar; nothing follows here from bounds."""
    value, fact = t.tile(op, "value"), op.attributes["predicate"]
    if not isinstance(fact, AssumedDivisor | AssumedRange):
        raise t.malformed(op, "what is assumed is neither divisibility nor bounds")
    if not isinstance(fact, AssumedDivisor) or value.is_tile or op.start in t.hollow or not 1 < fact.by < _LARGEST_DIVISOR:
        return value
    if value.ssa.owner is not t.entry:
        t.b.hint(value, "tile.divisible", (fact.by,))
    elif t.b.block is t.entry:  # what is assumed under a branch may hold there alone
        together = math.lcm(fact.by, t.divisors.get(value.ssa, 1))
        t.divisors[value.ssa] = together if together < _LARGEST_DIVISOR else fact.by
    return value
