"""Loads, stores and atomics as every memory encoding has them: spaces, widths, halves of registers, order and scope.

Order and scope follow LLVM's `AMDGPUUsage.rst`, "Memory Model gfx942", table "AMDHSA Memory Model Code Sequences GFX942": a load or
store with sc0 is one of workgroup scope, with sc1 of the agent (device), with both of the system; an atomic with sc1 is one of
system scope, else of the agent's; its sc0 says that it returns. `nt` says how long a line stays cached, never what is read.

Alignment: code objects for amdhsa run with SH_MEM_CONFIG.alignment_mode = UNALIGNED (LLVM turns `unaligned-access-mode` on for that
system, AMDGPUSubtarget), in which LDS, flat, global, scratch and untyped buffer accesses of every width may stand at any byte;
atomics must be aligned to their size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from tilefw_amd.chips import Chip
from tilefw_amd.isa.row import Modifiers

if TYPE_CHECKING:
    from tilefw.api.sim import Algebra, Value

Build = Callable[[Modifiers], Any]
Visibility = Mapping[str, Any]
ANY_BYTE = 1

# (sc0, sc1) of a load or store: order and scope ("Memory Model gfx942").
_VISIBILITY: dict[tuple[int, int], Visibility] = {
    (0, 0): {"order": "weak", "scope": "workgroup"},
    (1, 0): {"order": "relaxed", "scope": "workgroup"},
    (0, 1): {"order": "relaxed", "scope": "device"},
    (1, 1): {"order": "relaxed", "scope": "system"},
}


def visibility(m: Modifiers) -> Visibility:
    """Order and scope of a load or store, as keywords of the algebra's."""
    return _VISIBILITY[m.sc0, m.sc1]


@dataclass(frozen=True, slots=True)
class Space:
    """A space of the lane algebra; an address of it is one value."""

    name: Literal["shared", "global", "generic", "local"]
    atomic_scope: Literal["", "workgroup"] = ""

    @property
    def width(self) -> int:
        """Bits of an address."""
        return 32 if self.name in ("shared", "local") else 64

    def read(self, lanes: Algebra, at: Any, bits: int, count: int, how: Visibility) -> tuple[Value, ...]:
        """`count` elements of `bits` bits; three are a pair and one, as no access of 96 bits is a power of two."""
        found: tuple[Value, ...] = ()
        for first, size in _runs(count):
            found += lanes.load(self.name, further(lanes, at, self.width, first * bits // 8), bits, size, alignment=ANY_BYTE, **how)
        return found

    def write(self, lanes: Algebra, at: Any, values: Sequence[Value], bits: int, how: Visibility) -> None:
        """The values, `bits` wide, to consecutive places."""
        for first, size in _runs(len(values)):
            place = further(lanes, at, self.width, first * bits // 8)
            lanes.store(self.name, place, values[first : first + size], alignment=ANY_BYTE, **how)

    def atomic(self, lanes: Algebra, at: Any, op: Any, operands: Sequence[Value], fmt: str, scope: Any) -> Value:
        return lanes.atomic(self.name, at, op, operands, fmt, scope=self.atomic_scope or scope)


@dataclass(frozen=True, slots=True)
class BufferSpace(Space):
    """Memory behind a buffer descriptor: an address is (address, in range), with a predicate for each dword of the access.

    What is out of range reads as 0 and is not written: each dword of a load or store by itself, an atomic as a whole (CDNA3
    ISA, section "Buffer addressing", range checking).
    """

    def read(self, lanes: Algebra, at: Any, bits: int, count: int, how: Visibility) -> tuple[Value, ...]:
        if bits == 64:
            return (lanes.join(self.read(lanes, at, 32, 2 * count, how)),)
        address, inside = at
        if count == 1:
            return lanes.load("global", address, bits, alignment=ANY_BYTE, where=inside[0], **how)
        whole, places = _all(lanes, inside), self._addresses(lanes, address, count)
        together: tuple[Value, ...] = ()
        for first, size in _runs(count):
            together += lanes.load("global", places[first], bits, size, alignment=ANY_BYTE, where=whole, **how)
        alone = [
            lanes.load("global", place, bits, alignment=ANY_BYTE, where=_without(lanes, p, whole), **how)[0]
            for place, p in zip(places, inside, strict=True)
        ]
        return tuple(lanes.or_(a, b) for a, b in zip(together, alone, strict=True))

    def write(self, lanes: Algebra, at: Any, values: Sequence[Value], bits: int, how: Visibility) -> None:
        if bits == 64:
            self.write(lanes, at, lanes.split(values[0], 32), 32, how)
            return
        address, inside = at
        if len(values) == 1:
            lanes.store("global", address, values, alignment=ANY_BYTE, where=inside[0], **how)
            return
        whole, places = _all(lanes, inside), self._addresses(lanes, address, len(values))
        for first, size in _runs(len(values)):
            lanes.store("global", places[first], values[first : first + size], alignment=ANY_BYTE, where=whole, **how)
        for place, value, p in zip(places, values, inside, strict=True):
            lanes.store("global", place, (value,), alignment=ANY_BYTE, where=_without(lanes, p, whole), **how)

    def atomic(self, lanes: Algebra, at: Any, op: Any, operands: Sequence[Value], fmt: str, scope: Any) -> Value:
        address, inside = at
        return lanes.atomic("global", address, op, operands, fmt, scope=scope, where=_all(lanes, inside))

    def _addresses(self, lanes: Algebra, address: Value, count: int) -> list[Value]:
        return [further(lanes, address, 64, 4 * i) for i in range(count)]


def _all(lanes: Algebra, predicates: Sequence[Value]) -> Value:
    return functools.reduce(lanes.and_, predicates)


def _without(lanes: Algebra, p: Value, whole: Value) -> Value:
    """Lanes where a dword is in range and another one of the access is not."""
    return lanes.and_(p, lanes.not_(whole))


SHARED = Space("shared", "workgroup")
GLOBAL = Space("global")
GENERIC = Space("generic")
LOCAL = Space("local")
BUFFER = BufferSpace("global")


def further(lanes: Algebra, address: Value, width: int, offset: int) -> Value:
    """The address `offset` bytes on."""
    return lanes.add(address, lanes.const(offset, width)) if offset else address


def lane_address(lanes: Algebra, m0: Value, offset: int, chip: Chip, size: int = 4) -> Value:
    """The LDS address of a lane's `size` bytes where M0 says where the wave's begin: M0 + offset + size * lane.

    Of M0 as many bits count as the chip's LDS has addresses: [15:0] of 64 KiB (CDNA3 ISA, "Memory buffer load to LDS").
    """
    bits = (chip.limits["shared_bytes"] - 1).bit_length()
    base = lanes.add(lanes.and_(m0, lanes.const((1 << bits) - 1, 32)), lanes.const(offset, 32))
    lane = lanes.lane_id()
    return lanes.add(base, lanes.shl(lane, lanes.const(2, 32)) if size == 4 else lanes.mul(lane, lanes.const(size, 32)))


def _runs(count: int) -> tuple[tuple[int, int], ...]:
    """`count` elements as (first, how many) of accesses of four, two or one."""
    found, first = [], 0
    while first < count:
        size = next(size for size in (4, 2, 1) if size <= count - first)
        found.append((first, size))
        first += size
    return tuple(found)


def words(count: int) -> tuple[int, int]:
    """How the registers of an operand come to meanings, (bits, values): up to 64 bits one value, wider ones as values of 32."""
    return (32, count) if count > 2 else (32 * count, 1)


# --- loads ----------------------------------------------------------------------------------------------------------------


def load_extended(space: Space, bits: int, signed: bool, m: Modifiers) -> Any:
    """d = the byte or the 16 bits at the address, extended with zeros (u) or the sign (s, i)."""
    how = visibility(m)

    def run(lanes: Algebra, at: Any) -> Value:
        (value,) = space.read(lanes, at, bits, 1, how)
        return lanes.sign_extend(value, 32) if signed else lanes.zero_extend(value, 32)

    return run


def load_half(space: Space, bits: int, signed: bool, high: bool, m: Modifiers) -> Any:
    """The low (d16) or high (d16_hi) half of d = the byte or the 16 bits at the address, extended; the other half stays."""
    how = visibility(m)

    def run(lanes: Algebra, at: Any, old: Value) -> Value:
        (value,) = space.read(lanes, at, bits, 1, how)
        half = lanes.sign_extend(value, 16) if signed else lanes.zero_extend(value, 16)
        low, top = lanes.split(old, 16)
        return lanes.join((low, half) if high else (half, top))

    return run


def load_words(space: Space, count: int, m: Modifiers) -> Any:
    """d = the dwords at the address."""
    how, (bits, pieces) = visibility(m), words(count)

    def run(lanes: Algebra, at: Any) -> Any:
        values = space.read(lanes, at, bits, pieces, how)
        return values if pieces > 1 else values[0]

    return run


# --- stores ---------------------------------------------------------------------------------------------------------------


def store_narrow(space: Space, bits: int, high: bool, m: Modifiers) -> Any:
    """The byte or the 16 bits at the address = the lowest of a, or of its high half (d16_hi)."""
    how = visibility(m)

    def run(lanes: Algebra, at: Any, a: Value) -> None:
        value = lanes.truncate(lanes.split(a, 16)[1] if high else a, bits)
        space.write(lanes, at, (value,), bits, how)

    return run


def store_words(space: Space, count: int, m: Modifiers) -> Any:
    """The dwords at the address = a."""
    how, (bits, pieces) = visibility(m), words(count)

    def run(lanes: Algebra, at: Any, a: Any) -> None:
        space.write(lanes, at, a if pieces > 1 else (a,), bits, how)

    return run


def store_data_first(store: Callable[..., Any], space: Space, *facts: Any) -> Build:
    """A buffer store names its data before the address; what it does is the same."""

    def build(m: Modifiers) -> Any:
        run = store(space, *facts, m)
        return lambda lanes, a, at: run(lanes, at, a)

    build.__doc__ = store.__doc__
    return build


# Mnemonic's end, opcode (one for flat, global, scratch and buffer), registers, and the meaning with its facts.
LOADS: tuple[tuple[str, int, int, Callable[..., Any], tuple[Any, ...]], ...] = (
    ("ubyte", 0x10, 1, load_extended, (8, False)),
    ("sbyte", 0x11, 1, load_extended, (8, True)),
    ("ushort", 0x12, 1, load_extended, (16, False)),
    ("sshort", 0x13, 1, load_extended, (16, True)),
    ("dword", 0x14, 1, load_words, (1,)),
    ("dwordx2", 0x15, 2, load_words, (2,)),
    ("dwordx3", 0x16, 3, load_words, (3,)),
    ("dwordx4", 0x17, 4, load_words, (4,)),
    ("ubyte_d16", 0x20, 1, load_half, (8, False, False)),
    ("ubyte_d16_hi", 0x21, 1, load_half, (8, False, True)),
    ("sbyte_d16", 0x22, 1, load_half, (8, True, False)),
    ("sbyte_d16_hi", 0x23, 1, load_half, (8, True, True)),
    ("short_d16", 0x24, 1, load_half, (16, False, False)),
    ("short_d16_hi", 0x25, 1, load_half, (16, False, True)),
)
STORES: tuple[tuple[str, int, int, Callable[..., Any], tuple[Any, ...]], ...] = (
    ("byte", 0x18, 1, store_narrow, (8, False)),
    ("byte_d16_hi", 0x19, 1, store_narrow, (8, True)),
    ("short", 0x1A, 1, store_narrow, (16, False)),
    ("short_d16_hi", 0x1B, 1, store_narrow, (16, True)),
    ("dword", 0x1C, 1, store_words, (1,)),
    ("dwordx2", 0x1D, 2, store_words, (2,)),
    ("dwordx3", 0x1E, 3, store_words, (3,)),
    ("dwordx4", 0x1F, 4, store_words, (4,)),
)


def bound(meaning: Callable[..., Any], space: Space, facts: tuple[Any, ...]) -> Build:
    """The meaning for one space, waiting for its modifiers."""
    return partial(meaning, space, *facts)
