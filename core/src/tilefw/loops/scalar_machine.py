"""ScalarMachine: a machine whose vectors have one element, such as a compiler that makes vectors of loops itself."""

from __future__ import annotations

from tilefw.loops.machine import LoopMachine, V


class ScalarMachine(LoopMachine[V]):
    """What a plugin need not say of vectors."""

    def vector_lanes(self, bits: int) -> int:
        """One element."""
        return 1

    def repeated(self, value: V, lanes: int) -> V:
        """The value: there is one lane."""
        return value

    def numbered(self, lanes: int) -> V:
        """0."""
        return self.const(0, "i64")

    def part(self, value: V, first: int, count: int) -> V:
        """The value: there is one lane."""
        return value
