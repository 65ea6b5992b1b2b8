"""Effective addresses: what `[addr]` gives to the meaning of a memory instruction, made of the encoding's registers and offsets.

| encoding | the meaning gets | address |
|---|---|---|
| ds | 32 bits | addr + offset; LDS needs no M0 on gfx9 and later (LLVM `ldsRequiresM0Init`) |
| ds, "two offsets" | a pair | addr + offset0 * s, addr + offset1 * s, of elements of s bytes; 64 * s with "dword64 stride" |
| ds, "swizzle" | 32 bits | the register itself: its offset is a pattern, not a distance |
| flat, global | 64 bits | vaddr + offset, or saddr + the 32 bits of vaddr, unsigned + offset |
| scratch | 32 bits | vaddr + saddr + offset, each of which may be off, in the lane's own memory |
| smem | 64 bits | sbase + soffset + offset, without its low two bits |
| mubuf; smem, "buffer" | (64 bits, predicates) | of the descriptor, see below; a predicate for each dword of the access |

Buffer descriptor (CDNA3 ISA, table "Buffer resource descriptor"): base is bits 0-47, stride 48-61, num_records 64-95; bit 63
swizzles, bit 119 adds the lane, bits 126-127 are the type. Bit 62 swizzles the cache only. The address is base + soffset +
stride * index + vector offset + offset.

Range (CDNA3 ISA, "Range checking"; what num_records counts: Mesa, `ac_descriptors.c` and `radv`, GFX9): with idxen and a stride,
index < num_records; otherwise bytes, and each dword by itself: vector offset + offset < num_records - soffset. Of scalar
accesses num_records counts bytes, or strides where there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilefw.api.sim import Immediate
from tilefw_amd.isa.meaning.operand_values import pattern, slots
from tilefw_amd.isa.model import InlineConstant, MCInst, RegisterTuple
from tilefw_amd.isa.row import Row
from tilefw_amd.isa.types import TYPES

if TYPE_CHECKING:
    from tilefw.api.sim import Algebra, Value

Read = Callable[..., tuple[int, ...]]
"""Takes sources of the kit, each of 32 bits; gives their places among what the instruction reads."""
Compute = Callable[..., Any]
"""`compute(lanes, *words)`: the address, of the words at those places."""
Address = tuple[tuple[int, ...], Compute | None]

_DMA_DWORDS = {"three dwords": 3, "four dwords": 4}
_STRIDE = 0x3FFF
_SWIZZLED, _ADDS_LANE, _TYPE = 1 << 31, 1 << 23, 3 << 30


def address(inst: MCInst, read: Read) -> Address:
    """Which words the address of `inst` reads, and how it is made of them (None: it is the one word)."""
    encoding = inst.form.format.name
    return _ENCODINGS[encoding](inst, read)


def dwords(row: Row) -> int:
    """How many dwords the access to memory has: those of its data, of which half are compared in a compare-and-swap."""
    if "lds dma" in row.facts:  # which has no register for its data
        return next((count for fact, count in _DMA_DWORDS.items() if fact in row.facts), 1)
    data = [o for o in row.operands if o.role in ("destination", "source") and o.type is not None]
    registers = data[0].type.registers if data and data[0].type is not None else 1
    return registers // 2 if "compares" in row.facts else registers


# --- LDS ------------------------------------------------------------------------------------------------------------------


def _local(inst: MCInst, read: Read) -> Address:
    row = inst.form.row
    places = read(*_words(inst, "addr"))
    if "swizzle" in row.facts:
        return places, None
    if "two offsets" not in row.facts:
        return places, _plus(_offset(inst))
    step = _element_bytes(row) * (64 if "dword64 stride" in row.facts else 1)
    first, second = (_plus(step * _offset(inst, name)) for name in ("offset0", "offset1"))

    def both(lanes: Algebra, base: Value) -> tuple[Value, Value]:
        return (base if first is None else first(lanes, base), base if second is None else second(lanes, base))

    return places, both


def _element_bytes(row: Row) -> int:
    """Of an access to two elements: a source is one of them, a destination both."""
    element = row.sources[0].type if row.sources else None
    if element is not None:
        return element.bits // 8
    both = row.destinations[0].type
    assert both is not None
    return both.bits // 16


def _plus(offset: int) -> Compute | None:
    return (lambda lanes, base: lanes.add(base, lanes.const(offset, 32))) if offset else None


# --- flat, global, scratch -------------------------------------------------------------------------------------------------


def _flat(inst: MCInst, read: Read) -> Address:
    offset = _offset(inst)
    vector, scalar = _words(inst, "vaddr"), _words(inst, "saddr")
    if "scratch" in inst.form.row.facts:
        return _scratch(read(*vector, *scalar), offset)
    if not scalar:
        return read(*vector), lambda lanes, low, high: _further(lanes, lanes.join((low, high)), offset)
    places = read(*scalar, *vector)

    def from_scalar(lanes: Algebra, low: Value, high: Value, distance: Value) -> Value:
        base = _further(lanes, lanes.join((low, high)), offset)
        return lanes.add(base, lanes.zero_extend(distance, 64))

    return places, from_scalar


def _scratch(places: tuple[int, ...], offset: int) -> Address:
    def within(lanes: Algebra, *parts: Value) -> Value:
        total = lanes.const(offset, 32)
        for part in parts:
            total = lanes.add(total, part)
        return total

    return places, within


# --- scalar memory -----------------------------------------------------------------------------------------------------------


def _scalar(inst: MCInst, read: Read) -> Address:
    offset, base, distance = _offset(inst), _words(inst, "sbase"), _words(inst, "soffset")
    places = read(*base, *distance)
    if "buffer" in inst.form.row.facts:
        return places, _scalar_buffer(offset, bool(distance), dwords(inst.form.row))

    def aligned(lanes: Algebra, low: Value, high: Value, *more: Value) -> Value:
        total = _further(lanes, lanes.join((low, high)), offset)
        for part in more:
            total = lanes.add(total, lanes.zero_extend(part, 64))
        return lanes.and_(total, lanes.const(-4, 64))

    return places, aligned


def _scalar_buffer(offset: int, has_distance: bool, count: int) -> Compute:
    def compute(lanes: Algebra, *words: Value) -> tuple[Value, tuple[Value, ...]]:
        descriptor = _Descriptor(lanes, words[:4])
        distance = lanes.const(offset, 64)
        if has_distance:
            distance = lanes.add(distance, lanes.zero_extend(words[4], 64))
        distance = lanes.and_(distance, lanes.const(-4, 64))
        limit = lanes.select(descriptor.flat, descriptor.records, lanes.mul(descriptor.records, descriptor.stride))
        return lanes.add(descriptor.base, distance), _below(lanes, distance, limit, count)

    return compute


# --- buffers -----------------------------------------------------------------------------------------------------------------


class _Descriptor:
    """The fields of a buffer descriptor, as 64-bit values; what is not simulated stops the launch."""

    def __init__(self, lanes: Algebra, words: tuple[Value, ...]) -> None:
        low, middle, records, last = words
        _need_clear(lanes, middle, _SWIZZLED, "a swizzled buffer descriptor is not simulated")
        _need_clear(lanes, last, _ADDS_LANE, "a buffer descriptor that adds the lane's number is not simulated")
        _need_clear(lanes, last, _TYPE, "a descriptor whose type is not buffer's")
        self.base = lanes.join((low, lanes.and_(middle, lanes.const(0xFFFF, 32))))
        stride = lanes.and_(lanes.shr(middle, lanes.const(16, 32), False), lanes.const(_STRIDE, 32))
        self.stride = lanes.zero_extend(stride, 64)
        self.flat = lanes.compare(stride, lanes.const(0, 32), "eq", False)
        self.records = lanes.zero_extend(records, 64)


def _need_clear(lanes: Algebra, word: Value, bits: int, message: str) -> None:
    lanes.require(lanes.compare(lanes.and_(word, lanes.const(bits, 32)), lanes.const(0, 32), "eq", False), message)


def _below(lanes: Algebra, distance: Value, limit: Value, count: int) -> tuple[Value, ...]:
    """For each of `count` dwords from `distance` on, whether it begins below the limit."""
    return tuple(lanes.compare(_further(lanes, distance, 4 * i), limit, "lt", False) for i in range(count))


def _buffer(inst: MCInst, read: Read) -> Address:
    modifiers = {**inst.form.defaults, **inst.modifiers}
    indexed, has_offset, offset = bool(modifiers.get("idxen")), bool(modifiers.get("offen")), _offset(inst)
    count = dwords(inst.form.row)
    places = read(*_words(inst, "srsrc"), *_words(inst, "soffset"), *_words(inst, "vaddr"))

    def compute(lanes: Algebra, *words: Value) -> tuple[Value, tuple[Value, ...]]:
        descriptor, scalar, vector = _Descriptor(lanes, words[:4]), lanes.zero_extend(words[4], 64), words[5:]
        distance = lanes.const(offset, 64)
        if has_offset:
            distance = lanes.add(distance, lanes.zero_extend(vector[-1], 64))
        bytes_in = lanes.add(distance, scalar)
        inside = _below(lanes, bytes_in, descriptor.records, count)
        place = lanes.add(descriptor.base, bytes_in)
        if indexed:
            index = lanes.zero_extend(vector[0], 64)
            place = lanes.add(place, lanes.mul(descriptor.stride, index))
            record = lanes.compare(index, descriptor.records, "lt", False)
            inside = tuple(lanes.select(descriptor.flat, p, record) for p in inside)
        return place, inside

    return places, compute


# --- what all have -------------------------------------------------------------------------------------------------------------


def _words(inst: MCInst, name: str) -> tuple[Any, ...]:
    """The words of an operand of the address as sources of the kit; none where it is off, or the form does not have it."""
    place = inst.form.by_name.get(name)
    given = None if place is None else inst.operands[place]
    if given is None:
        return ()
    if isinstance(given, InlineConstant):
        return (Immediate(pattern(given, TYPES["b32"]), 32),)
    if not isinstance(given, RegisterTuple):
        raise ValueError(f"{inst.form.mnemonic}: {name} is not a register")
    return slots(given)


def _offset(inst: MCInst, name: str = "offset") -> int:
    """The immediate offset, an operand or a modifier; 0 where nothing is written."""
    place = inst.form.by_name.get(name)
    value = inst.modifiers.get(name, 0) if place is None else inst.operands[place]
    assert isinstance(value, int)
    return value


def _further(lanes: Algebra, base: Value, offset: int) -> Value:
    return lanes.add(base, lanes.const(offset, 64)) if offset else base


_ENCODINGS: dict[str, Callable[[MCInst, Read], Address]] = {
    "ds": _local, "flat": _flat, "smem": _scalar, "mtbuf": _buffer, "mubuf": _buffer,
}
