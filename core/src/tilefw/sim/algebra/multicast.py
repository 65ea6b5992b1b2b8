"""Accesses through multicast addresses: each is one access of every rank's copy, in an order that the seed draws.

A copy is loaded, stored to or updated by the primitives of plain memory, so that every check sees each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from tilefw.sim.algebra.memory import MemoryLanes
from tilefw.sim.floats import Array, decode, encode
from tilefw.sim.memory.atomics import update_rule
from tilefw.sim.report import LaunchStopped, first_true


class MulticastLanes(MemoryLanes):
    """The primitives of multicast addresses; see `MulticastPrimitives` for their meaning."""

    def multicast_load(
        self, address: Array, op: str, fmt: str, bits: int, count: int = 1, *, wide: bool = False, order: str = "relaxed",
        scope: str = "system",
    ) -> tuple[Array, ...]:
        step = _in_single(fmt) if wide else update_rule(op, fmt, fmt == "f32")
        found: list[Array] = []
        for copy in self.multicast_copies(address):
            with self._by_words(fmt, count):
                loaded = self.load("global", copy, bits, count, order=order, scope=scope)
            values = [np.broadcast_to(value, self.frame.shape).copy() for value in loaded]
            if not found:
                found = [_single(value, fmt) for value in values] if wide else values
            else:
                found = [step(before, more) for before, more in zip(found, values, strict=True)]
        return tuple(_rounded(value, fmt) for value in found) if wide else tuple(found)

    def multicast_poison(self, address: Array, fmt: str, bits: int, count: int) -> tuple[Array, ...]:
        """The poison of what `multicast_load` gives: all bits of a float of which any copy's has some."""
        unit = np.dtype(np.uint16) if fmt.endswith("x2") else np.dtype(f"u{bits // 8}")
        lost = [np.zeros(self.frame.shape, f"u{bits // 8}") for _ in range(count)]
        for copy in self.multicast_copies(address):
            with self._by_words(fmt, count):
                found = self.load_poison("global", copy, bits, count, None, None)
            lost = [before | more for before, more in zip(lost, found, strict=True)]
        full = unit.type(np.iinfo(unit).max)
        return tuple(np.where(each.view(unit) != 0, full, unit.type(0)).view(each.dtype) for each in lost)

    @contextmanager
    def _by_words(self, fmt: str, count: int) -> Iterator[None]:
        """A pair of floats of 16 bits may be loaded for one of them: of an array that ends within the word."""
        self.by_words = fmt.endswith("x2") and count == 1
        try:
            yield
        finally:
            self.by_words = False

    def multicast_store(self, address: Array, values: Sequence[Array], *, order: str = "relaxed", scope: str = "system") -> None:
        for copy in self.multicast_copies(address):
            self.store("global", copy, values, order=order, scope=scope)

    def multicast_atomic(
        self, address: Array, op: str, operands: Sequence[Array], fmt: str = "", *, order: str = "relaxed", scope: str = "system"
    ) -> None:
        size = operands[0].dtype.itemsize
        for copy in self.multicast_copies(address):
            for number, operand in enumerate(operands):
                self.atomic("global", copy + np.uint64(number * size), op, [operand], fmt, order=order, scope=scope)

    def multicast_copies(self, address: Array) -> list[Array]:
        """Where each rank's copy is. Ends the launch at a lane whose address is none of the mapping's."""
        window = self.launch.memory.allocations.multicast
        inside = np.zeros((1, 1, 1), np.bool_) if window is None else window.holds(address)
        self._check_inside(address, inside)
        if window is None:
            return []
        wide = address.astype(np.uint64)
        copies = [wide + np.uint64(distance % (1 << 64)) for distance in window.distances]
        random = self.launch.schedule.random
        return copies if random is None else [copies[index] for index in random.permutation(len(copies))]

    def _check_inside(self, address: Array, inside: Array) -> None:
        bad = np.broadcast_to(~inside if self.mask is None else ~inside & self.mask, self.frame.shape)
        if not bad.any():
            return
        a, b, lane = first_true(bad)
        where = int(np.broadcast_to(address, self.frame.shape)[a, b, lane])
        self.launch.diagnostics.reporter.add(
            "bounds", "TFW0879", "a multicast access to an address that is no multicast address", self.instruction,
            count=int(bad.sum()), where=self.locate(a, b, lane), address=where,
        )
        raise LaunchStopped


def _single(bits: Array, fmt: str) -> Array:
    """Elements, or the two of a word, in single precision."""
    half = np.uint16 if fmt.endswith("x2") else bits.dtype
    return decode(np.ascontiguousarray(bits).view(half), fmt.removesuffix("x2")).astype(np.float32)


def _rounded(value: Array, fmt: str) -> Array:
    """The reverse, rounded once."""
    bits = encode(value.astype(np.float64), fmt.removesuffix("x2"))
    return np.ascontiguousarray(bits).view(np.uint32) if fmt.endswith("x2") else bits


def _in_single(fmt: str) -> Callable[[Array, Array], Array]:
    return lambda before, more: before + _single(more, fmt)
