"""The algebra with exact integers beside the bits: what sums, products and choices of offsets are where nothing wraps around.

Lane by lane, for the few instructions of which intervals (intervals.py) do not tell enough. It computes with a copy of what the
registers hold: no memory is accessed and nothing is counted. An access tells the checks in which lanes its address is not the one
that is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.sim.algebra.integer import width
from tilefw.sim.algebra.primitives import PRIMITIVES
from tilefw.sim.floats import SIGNED, UNSIGNED, Array
from tilefw.sim.memory.access import AccessKind

_SAFE = 1 << 62  # integers of this size and their sums fit 64 bits
_MODULUS = 1 << 64


@dataclass(slots=True, eq=False)
class Exact:
    """Bits, and the integer that is meant: 64 bits or a Python integer an element, None where the bits are a number of their own.
    It is not `known` where something else than a sum, product or choice was made of such an integer."""

    bits: Array
    integer: Array | None = None
    known: bool = True

    @property
    def own(self) -> bool:
        """Whether the bits are a number of their own."""
        return self.known and self.integer is None

    def signed(self) -> Array:
        """The integer, that of a number of its own with a sign."""
        return signed(self.bits) if self.integer is None else self.integer


def signed(bits: Array) -> Array:
    """A register's number with its sign, in 64 bits."""
    return bits.view(SIGNED[width(bits)]).astype(np.int64)


def congruent(bits: Array, low: int) -> Array:
    """The integers from `low` on, less than 2**32 apart, that have the low 32 bits of a register."""
    below = (bits.astype(np.uint64) - np.uint64(low % _MODULUS)) & np.uint64((1 << 32) - 1)
    if abs(low) < _SAFE:
        return below.astype(np.int64) + low
    return below.astype(object) + low


def ends(integers: Array) -> tuple[int, int]:
    """The smallest and the largest."""
    return int(integers.min()), int(integers.max())


class ExactLanes:
    """A drop-in `Algebra` whose values are `Exact`, over the executing one, `base`.

    With `addresses` a number of its own is read as a meaning says; else with a sign, however the meaning comes to the low bits of
    its results. An access is looked at in the lanes of all `masks`.
    """

    def __init__(self, base: Any, addresses: bool) -> None:
        self.base, self.addresses = base, addresses
        self.masks: Sequence[Array | None] = ()
        self.wave_size = base.wave_size
        for name in PRIMITIVES:
            if not hasattr(type(self), name):
                setattr(self, name, self._bitwise(name))

    def _bitwise(self, name: str) -> Callable[..., Any]:
        primitive = getattr(self.base, name)

        def call(*operands: Any, **keywords: Any) -> Any:
            given = (*operands, *keywords.values())
            result = primitive(*map(_bits, operands), **{k: _bits(v) for k, v in keywords.items()})
            known = all(v.own for v in _exacts(given))
            return tuple(Exact(r, None, known) for r in result) if isinstance(result, tuple) else Exact(result, None, known)

        return call

    def _linear(self, name: str, function: Callable[[Array, Array], Array], a: Exact, b: Exact) -> Exact:
        return self._made(getattr(self.base, name)(a.bits, b.bits), function, a, b)

    def _made(self, bits: Array, function: Callable[[Array, Array], Array], a: Exact, b: Exact) -> Exact:
        if not (a.known and b.known):
            return Exact(bits, None, False)
        return Exact(bits, _exactly(function, a.signed(), b.signed()))

    # --- sums, products and choices --------------------------------------------------------------------------------------

    def add(self, a: Exact, b: Exact) -> Exact:
        return self._linear("add", np.add, a, b)

    def sub(self, a: Exact, b: Exact) -> Exact:
        return self._linear("sub", np.subtract, a, b)

    def mul(self, a: Exact, b: Exact) -> Exact:
        return self._linear("mul", np.multiply, a, b)

    def neg(self, a: Exact) -> Exact:
        return self.sub(Exact(np.zeros((1, 1, 1), a.bits.dtype)), a)

    def mul_wide(self, a: Exact, b: Exact, signed: bool) -> Exact:
        return self._made(self.base.mul_wide(a.bits, b.bits, signed), np.multiply, a, b)

    def shl(self, a: Exact, amount: Exact) -> Exact:
        bits = self.base.shl(a.bits, amount.bits)
        if amount.bits.size > 1 or int(amount.bits.flat[0]) >= width(a.bits):
            return Exact(bits, None, a.own and amount.own)
        factor = np.array(1 << int(amount.bits.flat[0]), dtype=object)
        return Exact(bits, _exactly(np.multiply, a.signed(), factor) if a.known else None, a.known and amount.own)

    def add_carry(self, a: Exact, b: Exact, carry: Exact) -> tuple[Exact, Exact]:
        total, out = self.base.add_carry(a.bits, b.bits, carry.bits)
        plain = carry.own and not carry.bits.any()
        return self._made(total, np.add, a, b) if plain else Exact(total, None, False), Exact(out, None, a.own and b.own)

    def sub_borrow(self, a: Exact, b: Exact, borrow: Exact) -> tuple[Exact, Exact]:
        total, out = self.base.sub_borrow(a.bits, b.bits, borrow.bits)
        plain = borrow.own and not borrow.bits.any()
        return self._made(total, np.subtract, a, b) if plain else Exact(total, None, False), Exact(out, None, a.own and b.own)

    def select(self, p: Exact, a: Exact, b: Exact) -> Exact:
        """Beside an offset a number of its own has no sign: it is one that no offset reaches."""
        bits = self.base.select(p.bits, a.bits, b.bits)
        if a.own and b.own:
            return Exact(bits)
        if not (a.known and b.known):
            return Exact(bits, None, False)
        return Exact(bits, np.where(p.bits, *(v.bits.astype(np.int64) if v.own else v.signed() for v in (a, b))))

    # --- widths ----------------------------------------------------------------------------------------------------------

    def sign_extend(self, a: Exact, bits: int) -> Exact:
        return Exact(self.base.sign_extend(a.bits, bits), a.integer, a.known)

    def zero_extend(self, a: Exact, bits: int) -> Exact:
        integer = signed(a.bits) if a.own and not self.addresses and width(a.bits) > 1 else a.integer
        return Exact(self.base.zero_extend(a.bits, bits), integer, a.known)

    def truncate(self, a: Exact, bits: int) -> Exact:
        integer = signed(a.bits) if a.own and width(a.bits) > 32 >= bits else a.integer
        return Exact(self.base.truncate(a.bits, bits), integer, a.known)

    def join(self, parts: Sequence[Exact]) -> Exact:
        """What is meant is the low half's: the halves above follow from it."""
        bits = self.base.join([part.bits for part in parts])
        own = all(part.own for part in parts)
        return Exact(bits) if own else Exact(bits, parts[0].integer, parts[0].known and not parts[0].own)

    def split(self, a: Exact, bits: int) -> tuple[Exact, ...]:
        low, *others = self.base.split(a.bits, bits)
        return Exact(low, a.integer, a.known), *(Exact(other, None, a.own) for other in others)

    def read_lane(self, a: Exact, lane: Exact, inactive: str = "undefined") -> Exact:
        bits = self.base.read_lane(a.bits, lane.bits, inactive)
        return Exact(bits, None, a.own)

    # --- memory ----------------------------------------------------------------------------------------------------------

    def load(
        self, space: str, address: Exact, bits: int, count: int = 1, *, where: Exact | None = None, **_: Any
    ) -> tuple[Exact, ...]:
        self._access(space, address, bits * count // 8, "read", where)
        return tuple(_zero(bits) for _ in range(count))

    def store(self, space: str, address: Exact, values: Sequence[Exact], *, where: Exact | None = None, **_: Any) -> None:
        self._access(space, address, sum(width(v.bits) for v in values) // 8, "write", where)

    def atomic(
        self, space: str, address: Exact, op: str, operands: Sequence[Exact], fmt: str = "", *, where: Exact | None = None, **_: Any
    ) -> Exact:
        bits = width(operands[0].bits)
        self._access(space, address, bits // 8, "atomic", where)
        return _zero(bits)

    def load_reserved(self, space: str, address: Exact, bits: int, **_: Any) -> Exact:
        return self.load(space, address, bits)[0]

    def store_conditional(self, space: str, address: Exact, value: Exact, **_: Any) -> Exact:
        self.store(space, address, [value])
        return _zero(1)

    def copy_async(
        self, destination_space: str, destination: Exact, source_space: str, source: Exact, size: int,
        source_size: Exact | None = None,
    ) -> None:
        read = None if source_size is None else Exact(source_size.bits != 0)
        self._access(source_space, source, size, "read", read)
        self._access(destination_space, destination, size, "write", None)

    def _nothing(self, *_: Any, **__: Any) -> None:
        """Effects of the machine are not had twice."""

    commit_group = wait_group = wait_all = fence = trap = require = push_mask = pop_mask = _nothing

    def _access(self, space: str, address: Exact, size: int, kind: AccessKind, where: Exact | None) -> None:
        if not address.known or address.integer is None or space not in ("global", "generic"):
            return
        bad = _missed(address.bits, address.integer)
        for mask in (*self.masks, None if where is None else where.bits):
            bad = bad if mask is None else bad & mask
        if bad.any():
            frame = self.base.frame
            self.base.report_wrapped(space, address.bits, address.integer, size, kind, np.broadcast_to(bad, frame.shape))


def _missed(bits: Array, integers: Array) -> Array:
    """Where an address is not the integer that is meant. Of 32 bits it may be either with a sign or without."""
    if width(bits) < 64:
        return np.asarray((integers < -(1 << 31)) | (integers >= 1 << 32), dtype=np.bool_)
    if integers.dtype == np.int64:
        return (integers < 0) | (integers.view(np.uint64) != bits)
    return np.asarray(integers != bits.astype(object), dtype=np.bool_)


def _exactly(function: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """A sum, difference or product of integers, in 64 bits where it surely fits."""
    most = [max(map(abs, ends(x))) for x in (a, b)]
    size = most[0] * most[1] if function is np.multiply else most[0] + most[1]
    if max(size, *most) < _SAFE:
        return function(a.astype(np.int64), b.astype(np.int64))
    return function(a.astype(object), b.astype(object))


def _bits(value: Any) -> Any:
    if isinstance(value, Exact):
        return value.bits
    if isinstance(value, (list, tuple)):
        return [_bits(v) for v in value]
    return value


def _exacts(values: Sequence[Any]) -> list[Exact]:
    found: list[Exact] = []
    for value in values:
        if isinstance(value, Exact):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _exacts(value)
    return found


def _zero(bits: int) -> Exact:
    if bits == 128:
        return Exact(np.zeros((1, 1, 1), dtype=np.complex128))
    return Exact(np.zeros((1, 1, 1), dtype=np.bool_ if bits == 1 else UNSIGNED[bits]))
