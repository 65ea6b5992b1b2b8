"""The recording algebra: runs a meaning on symbols and writes down which primitives it asks for, with what.

It proves that a meaning is a function of the algebra alone (a symbol cannot be branched on, computed with or looked into),
checks the widths of its results, and documents the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from tilefw.sim.algebra.primitives import PRIMITIVES, Algebra


class RecordedValue:
    """A value known only by number and width."""

    __slots__ = ("bits", "number")

    def __init__(self, number: int, bits: int) -> None:
        self.number, self.bits = number, bits

    def __repr__(self) -> str:
        return f"%{self.number}:{self.bits}"

    def __bool__(self) -> NoReturn:
        raise TypeError("a meaning must not branch in Python on a value")

    def __iter__(self) -> NoReturn:
        raise TypeError("a meaning must not look into a value")

    def __eq__(self, other: object) -> NoReturn:  # type: ignore[override]
        raise TypeError("a meaning must not compare values in Python")

    def __hash__(self) -> int:
        return id(self)


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One primitive as it was asked for; `results` are the widths it gave."""

    name: str
    operands: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]
    results: tuple[RecordedValue, ...]

    def __str__(self) -> str:
        given = ", ".join([*map(repr, self.operands), *(f"{k}={v!r}" for k, v in self.keywords)])
        made = ", ".join(map(repr, self.results))
        return f"{made} = {self.name}({given})" if made else f"{self.name}({given})"


class RecordingLanes:
    """Has every primitive; `steps` is the record."""

    def __init__(self, wave_size: int = 32) -> None:
        self.wave_size = wave_size
        self.steps: list[RecordedStep] = []
        self._next = 0
        for name in PRIMITIVES:
            setattr(self, name, self._recorder(name))

    def symbol(self, bits: int) -> RecordedValue:
        self._next += 1
        return RecordedValue(self._next - 1, bits)

    def _recorder(self, name: str) -> Callable[..., Any]:
        widths = getattr(Algebra, name).widths

        def record(*operands: Any, **keywords: Any) -> Any:
            given = widths(*map(_width, operands), **{k: _width(v) for k, v in keywords.items()})
            single = isinstance(given, int)
            results = tuple(self.symbol(bits) for bits in ((given,) if single else given or ()))
            self.steps.append(RecordedStep(name, operands, tuple(keywords.items()), results))
            return results[0] if single else (None if given is None else results)

        return record


def _width(value: Any) -> Any:
    if isinstance(value, RecordedValue):
        return value.bits
    if isinstance(value, (list, tuple)):
        return type(value)(map(_width, value))
    return value


def trace(meaning: Callable[..., Any], sources: Sequence[int], wave_size: int = 32) -> tuple[list[RecordedStep], tuple[int, ...]]:
    """The primitives of a meaning on sources of these widths, and the widths of its results.

    Raises TypeError where the meaning treats a value as anything but opaque.
    """
    lanes = RecordingLanes(wave_size)
    result = meaning(lanes, *(lanes.symbol(bits) for bits in sources))
    if result is None:
        return lanes.steps, ()
    results = result if isinstance(result, (tuple, list)) else (result,)
    return lanes.steps, tuple(r.bits for r in results)
