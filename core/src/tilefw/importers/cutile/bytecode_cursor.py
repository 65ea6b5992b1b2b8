"""Bytes read one after the other: variable-length integers, lists and tables, with the offset of every mistake."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from tilefw.api.errors import IRError, Place, UnsupportedError

MAGIC = b"\x7fTileIR\x00"  # what every file begins with
MALFORMED = "TFW0407"
UNSUPPORTED = "TFW0408"
_LONGEST = 10  # bytes of a variable-length integer of 64 bits, and of one more

T = TypeVar("T")


class BytecodeCursor:
    """A range of a file's bytes and the place in it. Offsets count from the file's start, in messages too."""

    __slots__ = ("at", "data", "end", "name")

    def __init__(self, data: bytes, name: str, at: int = 0, end: int | None = None) -> None:
        self.data = data
        self.name = name
        self.at = at
        self.end = len(data) if end is None else end

    @property
    def left(self) -> int:
        """How many bytes are left of the range."""
        return self.end - self.at

    def place(self, at: int | None = None) -> Place:
        """The place of an offset, or of the next byte."""
        return Place(f"{self.name}, byte {self.at if at is None else at}", 0)

    def malformed(self, message: str, at: int | None = None, note: str | None = None) -> IRError:
        """The error for bytes that are no Tile IR bytecode."""
        help = "write the file anew: cuTile's `export_kernel` with output_format=\"tileir_bytecode\""
        return IRError(f"malformed Tile IR bytecode: {message}", MALFORMED, self.place(at), note, help)

    def unsupported(
        self, message: str, at: int | None = None, note: str | None = None, help: str | None = None
    ) -> UnsupportedError:
        """The error for what is bytecode and is not imported."""
        return UnsupportedError(message, UNSUPPORTED, self.place(at), note, help)

    def take(self, count: int, what: str) -> bytes:
        """The next `count` bytes."""
        if not 0 <= count <= self.left:
            raise self.malformed(f"{what} has {count} bytes, and {self.left} are left")
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self, what: str) -> int:
        return self.take(1, what)[0]

    def varint(self, what: str, bits: int = 64) -> int:
        """An unsigned integer, seven bits a byte from the lowest up; the top bit of a byte says that another one follows."""
        start, value = self.at, 0
        for index in range(_LONGEST):
            byte = self.byte(what)
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if value >= 1 << bits:
                    break
                return value
        raise self.malformed(f"{what} is an integer of more than {bits} bits", start)

    def signed_varint(self, what: str, bits: int = 64) -> int:
        """A signed integer, zigzag: the lowest bit is its sign."""
        value = self.varint(what, bits)
        return ~(value >> 1) if value & 1 else value >> 1

    def count(self, what: str, bytes_each: int = 1) -> int:
        """How many items follow, each of which takes `bytes_each` bytes or more."""
        start, number = self.at, self.varint(f"the number of {what}")
        if number * bytes_each > self.left:
            raise self.malformed(f"there are {number} {what}, and {self.left} bytes are left", start)
        return number

    def index(self, what: str, limit: int) -> int:
        """A number below `limit`, which names an item of a table."""
        start, number = self.at, self.varint(what)
        if number >= limit:
            raise self.malformed(f"{what} is number {number} of {limit}", start)
        return number

    def integers(self, what: str, code: str) -> tuple[int, ...]:
        """A list of integers of one size, as `struct` spells it (`i`, `q`, `b`), behind their number."""
        size = struct.calcsize(f"<{code}")
        number = self.count(what, size)
        return struct.unpack(f"<{number}{code}", self.take(number * size, what))

    def align(self, alignment: int) -> None:
        """Go on at the next multiple of `alignment` in the file; the bytes between are padding."""
        self.take(-self.at % alignment, "padding")

    def within(self, count: int, what: str) -> BytecodeCursor:
        """A cursor over the next `count` bytes, which this one leaves behind."""
        start = self.at
        self.take(count, what)
        return BytecodeCursor(self.data, self.name, start, self.at)

    def finish(self, what: str) -> None:
        """Raise where bytes are left over."""
        if self.left:
            raise self.malformed(f"{self.left} bytes are left over behind {what}")

    def table(self, what: str, offset_size: int, item: Callable[[BytecodeCursor], T]) -> list[T]:
        """A table: the number of its items, where each begins, the items one after the other to the end of the range."""
        number = self.count(what, offset_size)
        self.align(offset_size)
        code = {4: "I", 8: "Q"}[offset_size]
        offsets = struct.unpack(f"<{number}{code}", self.take(number * offset_size, f"the offsets of {what}"))
        start, found = self.at, list[T]()
        for index, offset in enumerate(offsets):
            behind = offsets[index + 1] if index + 1 < number else self.end - start
            if not offset <= behind <= self.end - start or (index == 0 and offset):
                raise self.malformed(f"item {index} of {what} does not lie behind the one before", start)
            found.append(item(BytecodeCursor(self.data, self.name, start + offset, start + behind)))
        self.at = self.end
        return found
