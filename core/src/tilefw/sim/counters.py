"""What a launch did, in numbers: threads' instructions by unit, bytes by space and width, atomics, divergence."""

from __future__ import annotations

from collections import Counter


class Counters:
    """`executed` is the sum over threads of instructions, which the budget limits; guards that do not hold count too.

    By name: `barriers`, those that workgroups have passed, summed over workgroups; `divergent_branches`, waves whose lanes parted
    at a branch, each time (none on a chip with one program counter a wave, whose lanes are masked); `atomics`, accesses of threads;
    `bank_conflicts`, cycles lost. None depends on the order in which waves ran, where the program's own work does not."""

    def __init__(self) -> None:
        self.executed = 0
        self._counts: Counter[str] = Counter()
        self._accesses: Counter[tuple[str, str, int]] = Counter()

    def add(self, name: str, amount: int) -> None:
        self._counts[name] += amount

    def access(self, space: str, kind: str, size: int, lanes: int) -> None:
        self._accesses[space, kind, size] += lanes

    def totals(self) -> dict[str, int]:
        """`instructions`, `instructions.UNIT`, `bytes.SPACE.KIND`, `accesses.SPACE.KIND.bBITS`, and the rest by name."""
        totals: Counter[str] = Counter({"instructions": self.executed, **self._counts})
        for (space, kind, size), lanes in self._accesses.items():
            totals[f"bytes.{space}.{kind}"] += size * lanes
            totals[f"accesses.{space}.{kind}.b{8 * size}"] += lanes
        return dict(sorted(totals.items()))
