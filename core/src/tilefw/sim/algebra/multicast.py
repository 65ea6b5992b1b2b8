"""Accesses through multicast addresses: each is one access of every rank's copy, in an order that the seed draws.

A copy is loaded, stored to or updated by the primitives of plain memory, so that every check sees each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
            values = [
                np.broadcast_to(value, self.frame.shape).copy()
                for value in self.load("global", copy, bits, count, order=order, scope=scope)
            ]
            if not found:
                found = [_single(value, fmt) for value in values] if wide else values
            else:
                found = [step(before, more) for before, more in zip(found, values, strict=True)]
        return tuple(_rounded(value, fmt) for value in found) if wide else tuple(found)

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
