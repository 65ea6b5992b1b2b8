"""A small writer of Tile IR bytecode, which uses no table of the importer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

I1, I32, I64, F32, TOKEN = b"\x00", b"\x03", b"\x04", b"\x07", b"\x11"
DYNAMIC = -(1 << 63)


def varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def listed(numbers: Sequence[int], size: int) -> bytes:
    return varint(len(numbers)) + b"".join(number.to_bytes(size, "little", signed=True) for number in numbers)


def values(*numbers: int) -> bytes:
    return b"".join(map(varint, numbers))


def table(items: Sequence[bytes], size: int) -> bytes:
    head = varint(len(items))
    offsets, at = b"", 0
    for item in items:
        offsets += at.to_bytes(size, "little")
        at += len(item)
    return head + b"\xcb" * (-len(head) % size) + offsets + b"".join(items)


class BytecodeText:
    """One kernel of version 13.3: `type` numbers types, `op` adds operations and numbers their results."""

    def __init__(self, name: str = "kernel", version: tuple[int, int] = (13, 3)) -> None:
        self.name, self.version = name, version
        self.types: list[bytes] = []
        self.constants: list[bytes] = []
        self.strings: list[bytes] = [name.encode()]
        self.code = bytearray()
        self.operations = 0
        self.next = 0
        self.parameters: tuple[int, ...] = ()

    def type(self, record: bytes) -> int:
        if record not in self.types:
            self.types.append(record)
        return self.types.index(record)

    def scalar(self, element: bytes) -> int:
        return self.tile(element, ())

    def tile(self, element: bytes, shape: Sequence[int]) -> int:
        return self.type(b"\x0d" + varint(self.type(element)) + listed(shape, 8))

    def pointer(self, element: bytes) -> int:
        flags = b"\x00" if self.version >= (13, 4) else b""
        return self.type(b"\x0d" + varint(self.type(b"\x0c" + flags + varint(self.type(element)))) + listed((), 8))

    def tiles(self, element: bytes, tile: Sequence[int], strides: Sequence[int], padding: int | None = 0) -> tuple[int, int]:
        """The types of an array of dynamic extents and of its tiles."""
        array = self.type(
            b"\x0e" + varint(self.type(element)) + listed([DYNAMIC] * len(tile), 8) + listed(strides, 8)
        )
        flags, tail = (b"\x00", b"") if padding is None else (b"\x01", bytes([padding]))
        view = b"\x0f" + flags + listed(tile, 4) + varint(array) + listed(range(len(tile)), 4) + tail
        return array, self.type(view)

    def takes(self, *types: int) -> tuple[int, ...]:
        self.parameters, self.next = types, len(types)
        return tuple(range(len(types)))

    def op(self, opcode: int, types: Sequence[int] = (), rest: bytes = b"", counted: bool = False) -> int:
        """An operation whose flags, attributes and operands are `rest`; the number of its first result."""
        self.code += varint(opcode) + (varint(len(types)) if counted else b"") + values(*types) + rest
        self.operations += 1
        self.next += len(types)
        return self.next - len(types)

    def nested(
        self, opcode: int, types: Sequence[int], rest: bytes, regions: Sequence[Callable[..., None]], arguments: Sequence[int]
    ) -> int:
        """An operation with regions; each is written by a function that gets the numbers of its arguments."""
        outer, operations, first = self.code, self.operations, self.next
        outer += varint(opcode) + varint(len(types)) + values(*types) + rest + varint(len(regions))
        for region in regions:
            self.code, self.operations, self.next = bytearray(), 0, first + len(arguments)
            region(*range(first, first + len(arguments)))
            outer += b"\x01" + varint(len(arguments)) + values(*arguments) + varint(self.operations) + self.code
        self.code, self.operations, self.next = outer, operations + 1, first + len(types)
        return first

    def constant(self, type: int, data: bytes) -> int:
        self.constants.append(varint(len(data)) + data)
        return self.op(16, [type], varint(len(self.constants) - 1))

    def integer(self, number: int) -> int:
        return self.constant(self.scalar(I32), number.to_bytes(4, "little", signed=True))

    def bytes(self, entry: int = 2) -> bytes:
        """The whole file."""
        signature = self.type(b"\x10" + varint(len(self.parameters)) + values(*self.parameters) + varint(0))
        function = values(0, signature) + bytes([entry]) + varint(1) + varint(len(self.code)) + bytes(self.code)
        found = bytearray(b"\x7fTileIR\x00" + bytes([*self.version, 0, 0]))
        parts = (
            (2, 8, varint(1) + function), (4, 8, table(self.constants, 8)), (5, 4, table(self.types, 4)),
            (1, 4, table(self.strings, 4)),
        )
        for number, alignment, section in parts:
            found += bytes([number | 0x80]) + varint(len(section)) + varint(alignment)
            found += b"\xcb" * (-len(found) % alignment) + section
        return bytes(found) + b"\x00"


def vector_add(name: str = "kernel", version: tuple[int, int] = (13, 3), rounding: int = 0) -> bytes:
    """c = a + b of float32, 16 elements a program; each array is a pointer, an extent and a stride."""
    w = BytecodeText(name, version)
    pointer, integer, token, tile = w.pointer(F32), w.scalar(I32), w.type(TOKEN), w.tile(F32, (16,))
    array, view = w.tiles(F32, (16,), (1,))
    w.takes(*(pointer, integer, integer) * 3)
    start = w.op(68, [token])
    place = w.op(48, [integer] * 3)
    loaded = []
    for base in (0, 3, 6):
        made = w.op(67, [array], values(base) + varint(1) + values(base + 1) + varint(0), counted=True)
        loaded.append(w.op(66, [view], values(made)))
    tiles = [w.op(62, [tile, token], b"\x04\x00" + values(v) + varint(1) + values(place, start), counted=True) for v in loaded[:2]]
    total = w.op(2, [tile], b"\x00" + bytes([rounding]) + values(*tiles))
    w.op(102, [token], b"\x04\x00" + values(total, loaded[2]) + varint(1) + values(place, start), counted=True)
    w.op(92, (), varint(0), counted=True)
    return w.bytes()
