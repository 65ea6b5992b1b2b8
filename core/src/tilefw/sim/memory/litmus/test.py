"""A litmus test as data: threads with their places, their steps, initial values, names of locations, a condition on the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tilefw.sim.memory.views.events import GENERIC, Order, Participant, SyncScope

StepKind = Literal["load", "store", "update", "fence", "fence_way", "fence_names", "sync", "arrive", "set", "branch", "stop"]
Operand = str | int
"""A register's name or a number."""


@dataclass(frozen=True, slots=True)
class LitmusStep:
    """One instruction of a thread. `action`: the operation of an update or of arithmetic, the comparison of a branch; `goal`: where
    it goes. `key`: the number of a barrier; its operands are a name within that number and how many agents it waits for, if given.
    """

    kind: StepKind
    register: str = ""
    address: str = ""
    operands: tuple[Operand, ...] = ()
    order: Order = "weak"
    scope: SyncScope = SyncScope.SELF
    way: str = GENERIC
    action: str = ""
    goal: int = -1
    key: int = -1

    @property
    def needs(self) -> tuple[str, ...]:
        """Registers that it reads."""
        return tuple(operand for operand in self.operands if isinstance(operand, str))


Final = Mapping[str, int]
"""Values at the end: of registers as `1:r0`, of locations by name."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What the test asks of the end: `exists`, `~exists` or `forall` of a predicate on the names of `asks`."""

    quantifier: Literal["exists", "~exists", "forall"]
    holds: Callable[[Final], bool]
    asks: frozenset[str]

    def witness(self, final: Final) -> bool:
        """Whether this end decides the test: it is what exists, or it breaks what all have."""
        return self.holds(final) != (self.quantifier == "forall")

    def verdict(self, witnessed: bool) -> bool:
        """Whether the condition as written holds, given whether a witness was seen."""
        return witnessed == (self.quantifier == "exists")


@dataclass(frozen=True)
class LitmusTest:
    """A whole test. `aliases`: an address to (the location that it names, its generic address)."""

    name: str
    places: tuple[Participant, ...]
    threads: tuple[tuple[LitmusStep, ...], ...]
    condition: Condition
    memory: Mapping[str, int] = field(default_factory=dict)
    registers: Mapping[tuple[int, str], int] = field(default_factory=dict)
    aliases: Mapping[object, tuple[object, object]] = field(default_factory=dict)
