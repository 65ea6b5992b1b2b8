"""The primitives of multicast addresses, each of which stands for one place of every rank's heap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilefw.sim.algebra.widths import no_result, primitive

Value = Any


class MulticastPrimitives:
    """Accesses of all ranks' copies of global memory, a part of `Algebra`. Another address ends the launch."""

    @primitive(lambda address, op, fmt, bits, count=1, **_: (bits,) * count)
    def multicast_load(
        self, address: Value, op: str, fmt: str, bits: int, count: int = 1, *, wide: bool = False, order: str = "relaxed",
        scope: str = "system",
    ) -> tuple[Value, ...]:
        """`count` consecutive elements of every copy, combined by `op` of `atomic` in an order that the seed draws; `wide`: floats
        are added in f32 and rounded once. Always a tuple."""
        ...

    @primitive(no_result)
    def multicast_store(self, address: Value, values: Sequence[Value], *, order: str = "relaxed", scope: str = "system") -> None:
        """Write the values to consecutive places of every copy."""

    @primitive(no_result)
    def multicast_atomic(
        self, address: Value, op: str, operands: Sequence[Value], fmt: str = "", *, order: str = "relaxed", scope: str = "system"
    ) -> None:
        """Consecutive elements of every copy become `op` of them and the operands: one atomic an element and a copy."""
