"""Indices of vectors of elements, and arithmetic on them that keeps what is known: constants, strides, divisors.

The vector at `Index(base, 1)` of a dim holds the elements base, base + 1, …; one with stride 0 repeats element base.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import gcd
from typing import Any, Generic

from tilefw.loops.machine import LoopMachine, V


@dataclass(frozen=True, slots=True)
class Index(Generic[V]):
    """One index of a vector of elements: `base` + lane · `stride`, or `base` + the number that `steps` has for a lane, or `vector`,
    one for each lane.

    `base` is a number or an i64 of one lane; `divisor` divides it (0 where the base is 0). With steps a base is 0 where it is a
    number."""

    base: V | int
    stride: int = 0
    divisor: int = 1
    vector: V | None = None
    steps: tuple[int, ...] = ()

    @property
    def uniform(self) -> bool:
        """Whether it is the same in all lanes."""
        return self.vector is None and self.stride == 0 and not self.steps

    @property
    def number(self) -> int | None:
        """The index as a number, where it is one."""
        return self.base if self.uniform and isinstance(self.base, int) else None


def stepped(base: V | int, steps: tuple[int, ...], divisor: int) -> Index[V]:
    """The index with these steps from a base, which a stride says where one can."""
    if isinstance(base, int):
        base, steps, divisor = 0, tuple(base + step for step in steps), 0
    first, stride = steps[0], steps[1] - steps[0]
    if any(step != first + lane * stride for lane, step in enumerate(steps)) or (first and not isinstance(base, int)):
        return Index(base, 0, divisor, steps=steps)
    return Index(first if isinstance(base, int) else base, stride, first or divisor)


def fixed(number: int) -> Index[Any]:
    """The index that is a number."""
    return Index(number, 0, number)


class Scopes:
    """What has been computed already, by region of the code that is being written: an inner region sees what outer ones have."""

    def __init__(self) -> None:
        self._stack: list[dict[Hashable, Any]] = [{}]

    def enter(self) -> None:
        """Begin a region."""
        self._stack.append({})

    def leave(self) -> None:
        """End the innermost region: what was computed there may not be used any more."""
        self._stack.pop()

    def cached(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What was made for `key`, else what `make` makes now."""
        for known in reversed(self._stack):
            if key in known:
                return known[key]
        # Made first: `make` may enter and leave regions of its own.
        made = make()
        self._stack[-1][key] = made
        return made


class IndexMath(Generic[V]):
    """Arithmetic on indices of one vector length."""

    def __init__(self, machine: LoopMachine[V], scopes: Scopes, lanes: int) -> None:
        self.machine = machine
        self.scopes = scopes
        self.lanes = lanes

    def value(self, index: Index[V]) -> V:
        """The index as i64: of one lane where it is uniform, else of all."""
        if index.vector is not None:
            return index.vector
        base = self._word(index.base)
        if index.steps:
            return self._op("addi", self.machine.numbers(index.steps), base)
        if index.stride == 0:
            return base
        steps = self._op("muli", self.scopes.cached(("lanes", self.lanes), lambda: self.machine.numbered(self.lanes)), index.stride)
        return self._op("addi", base, steps)

    def add(self, a: Index[V], b: Index[V]) -> Index[V]:
        """a + b."""
        if a.vector is not None or b.vector is not None:
            return Index(0, vector=self._op("addi", self.value(a), self.value(b)))
        if a.steps or b.steps:
            steps = tuple(one + other for one, other in zip(self._steps(a), self._steps(b), strict=True))
            for one, other in ((a, b), (b, a)):
                if isinstance(one.base, int) and not isinstance(other.base, int) and one.base % other.divisor:
                    return stepped(other.base, tuple(one.base + step for step in steps), other.divisor)
            divisors = (each.base if isinstance(each.base, int) else each.divisor for each in (a, b))
            return stepped(self._op("addi", a.base, b.base), steps, gcd(*divisors))
        return Index(self._op("addi", a.base, b.base), a.stride + b.stride, gcd(a.divisor, b.divisor))

    def scaled(self, a: Index[V], factor: int) -> Index[V]:
        """a · factor."""
        if a.vector is not None:
            return Index(0, vector=self._op("muli", a.vector, factor))
        if a.steps:
            return stepped(self._op("muli", a.base, factor), tuple(step * factor for step in a.steps), a.divisor * factor)
        return Index(self._op("muli", a.base, factor), a.stride * factor, a.divisor * factor)

    def mirrored(self, a: Index[V], size: int) -> Index[V]:
        """size - 1 - a."""
        if a.steps:
            most = max(a.steps)
            first = self.add(fixed(size - 1 - most), self.scaled(Index(a.base, 0, a.divisor), -1))
            return stepped(first.base, tuple(most - step for step in a.steps), first.divisor)
        return self.add(fixed(size - 1), self.scaled(a, -1))

    def spread(self, a: Index[V]) -> Index[V]:
        """The same index, with a vector in place of steps."""
        return Index(0, vector=self.value(a)) if a.steps else a

    def _steps(self, a: Index[V]) -> tuple[int, ...]:
        """How far each lane is from the base of an index without a vector."""
        return a.steps or tuple(lane * a.stride for lane in range(self.lanes))

    def divided(self, a: Index[V], by: int) -> tuple[Index[V], Index[V]]:
        """Quotient and remainder of an index that is not negative."""
        if by == 1:
            return a, fixed(0)
        if a.vector is None and self._stays_within(a, by):
            quotient = Index(self._op("divs", a.base, by))
            rest = Index(self._op("rems", a.base, by), a.stride, gcd(a.divisor, by))
            return quotient, stepped(rest.base, a.steps, rest.divisor) if a.steps else rest
        if a.vector is None and self.machine.permutes and a.divisor % by == 0:
            steps = self._steps(a)
            quotient = stepped(self._op("divs", a.base, by), tuple(step // by for step in steps), a.divisor // by)
            return quotient, stepped(0, tuple(step % by for step in steps), 0)
        whole = self.value(a)
        return Index(0, vector=self._op("divs", whole, by)), Index(0, vector=self._op("rems", whole, by))

    def _stays_within(self, a: Index[V], by: int) -> bool:
        """Whether the lanes of one vector have one quotient: the base is a multiple of a span that all lanes lie in."""
        span = gcd(a.divisor, by)  # the base's remainder is a multiple of it, and `by` is one too
        if a.steps:
            return min(a.steps) >= 0 and max(a.steps) < span
        if a.stride == 0:
            return True
        return a.stride > 0 and (self.lanes - 1) * a.stride < span

    def _word(self, word: V | int) -> V:
        if not isinstance(word, int):
            return word
        return self.machine.const(word & ((1 << 64) - 1), "i64")

    def _op(self, row: str, a: V | int, b: V | int) -> Any:
        if isinstance(a, int) and isinstance(b, int):
            return _NUMBERS[row](a, b)
        if b == _NEUTRAL[row]:
            return a
        if row == "addi" and isinstance(a, int):
            a, b = b, a
            if b == 0:
                return a
        if row in ("muli", "rems") and b == (0 if row == "muli" else 1):
            return 0
        return self.scopes.cached((row, a, b), lambda: self.machine.op(row, (self._word(a), self._word(b)), "i64"))


_NUMBERS: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b, "muli": lambda a, b: a * b, "divs": lambda a, b: a // b, "rems": lambda a, b: a % b,
}
_NEUTRAL: dict[str, int | None] = {"addi": 0, "muli": 1, "divs": 1, "rems": None}
