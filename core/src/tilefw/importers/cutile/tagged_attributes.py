"""Attributes that begin with a tag: numbers, texts, lists, dictionaries, and what is assumed of a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.importers.cutile.bytecode_cursor import BytecodeCursor
from tilefw.importers.cutile.bytecode_types import ScalarType

_DEPTH = 16  # of lists and dictionaries within one another


@dataclass(frozen=True, slots=True)
class AssumedDivisor:
    """A value, or every `every`-th element of it along an axis, is a multiple of `by`: bytes for pointers."""

    by: int
    every: int | None
    along: int | None


@dataclass(frozen=True, slots=True)
class AssumedRange:
    """A value lies between two numbers, both included; None for no bound."""

    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class TypedNumber:
    """A number of a type, by its bits."""

    type: ScalarType
    bits: int


class AttributeReader:
    """Reads attributes by the tables of strings and types."""

    def __init__(self, strings: Sequence[str], types: Sequence[object]) -> None:
        self.strings = strings
        self.types = types
        self._depth = 0
        self._by_tag: Mapping[int, Callable[[BytecodeCursor], Any]] = {
            0x01: self._integer, 0x02: self._float, 0x03: self._boolean, 0x04: self._type, 0x05: self.string, 0x06: self._list,
            0x08: self._divisible, 0x0A: self.dictionary, 0x0B: self.dictionary, 0x0C: self._bounds,
        }

    def tagged(self, cursor: BytecodeCursor) -> Any:
        """One attribute. Raises UnsupportedError (TFW0408) for a tag that is not known."""
        start, tag = cursor.at, cursor.byte("an attribute")
        if tag not in self._by_tag:
            raise cursor.unsupported(f"the attribute 0x{tag:02x} of Tile IR is not imported", start)
        if self._depth == _DEPTH:
            raise cursor.malformed("attributes are nested too deeply", start)
        self._depth += 1
        try:
            return self._by_tag[tag](cursor)
        finally:
            self._depth -= 1

    def string(self, cursor: BytecodeCursor) -> str:
        return self.strings[cursor.index("a string", len(self.strings))]

    def dictionary(self, cursor: BytecodeCursor) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(cursor.count("entries")):
            name = self.string(cursor)
            found[name] = self.tagged(cursor)
        return found

    def listed(self, cursor: BytecodeCursor) -> tuple[Any, ...]:
        return tuple(self.tagged(cursor) for _ in range(cursor.count("attributes")))

    def _list(self, cursor: BytecodeCursor) -> tuple[Any, ...]:
        return self.listed(cursor)

    def _scalar(self, cursor: BytecodeCursor) -> ScalarType:
        start = cursor.at
        found = self.types[cursor.index("a type", len(self.types))]
        if not isinstance(found, ScalarType):
            raise cursor.malformed("a number has a type that is none of numbers", start)
        return found

    def _integer(self, cursor: BytecodeCursor) -> TypedNumber:
        return TypedNumber(self._scalar(cursor), cursor.varint("a number"))

    def _float(self, cursor: BytecodeCursor) -> TypedNumber:
        type = self._scalar(cursor)
        # Bits are written as a number above 0, with a sign: 65 bits where the float of 64 bits is negative.
        bits = cursor.byte("a number") if type.bits <= 8 else cursor.signed_varint("a number", 65)
        return TypedNumber(type, bits & ((1 << type.bits) - 1))

    def _boolean(self, cursor: BytecodeCursor) -> bool:
        return bool(cursor.byte("a truth value"))

    def _type(self, cursor: BytecodeCursor) -> object:
        return self.types[cursor.index("a type", len(self.types))]

    def _divisible(self, cursor: BytecodeCursor) -> AssumedDivisor:
        by, flags = cursor.varint("a divisor"), cursor.byte("flags")
        every = cursor.signed_varint("a number") if flags & 1 else None
        return AssumedDivisor(by, every, cursor.signed_varint("an axis") if flags & 2 else None)

    def _bounds(self, cursor: BytecodeCursor) -> AssumedRange:
        flags = cursor.byte("flags")
        low = cursor.signed_varint("a bound") if flags & 1 else None
        return AssumedRange(low, cursor.signed_varint("a bound") if flags & 2 else None)
