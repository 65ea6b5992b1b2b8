"""What a launch cost, for `autotune`: seconds of a card or of the model of time, or what it executed and moved: no time."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tilefw.api.errors import KernelError
from tilefw.runtime.device_times import EXECUTE

# A byte of global memory counts as so many instructions of one lane: a GPU's processor executes 64 lanes' 32-bit instructions a
# cycle and has 10 bytes of memory bandwidth in it (of 64 lanes, 1,555 GB/s, 108 processors, 1.41 GHz).
LANE_INSTRUCTIONS_A_BYTE = 6
CARD, MODEL, COUNTS, GIVEN = "the card's time", "the model of time", "instructions and traffic", "a measure of the caller's"
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Price:
    """What one launch cost: `seconds` of a card or by the model, None where nobody knows; `counted`, comparable among launches of
    one kernel on one target; `by`: what `value` is."""

    seconds: float | None
    counted: float
    by: str

    @property
    def value(self) -> float:
        return self.counted if self.seconds is None else self.seconds


def price(result: Any) -> Price:
    """The price of a LaunchResult."""
    if result.executor == "hw":
        seconds = result.times.get(EXECUTE, 0.0)
        return Price(seconds, seconds, CARD)
    seconds = _modelled(result)
    return Price(seconds, _counted(result), COUNTS if seconds is None else MODEL)


def judged(values: Mapping[Name, float], prices: Mapping[Name, Price]) -> tuple[dict[Name, float], str]:
    """The values of candidates, all of one kind, and which: where the model does not know each, they are counts. Candidates
    without a price keep their values, which somebody else has measured (`do_bench`)."""
    kinds = {found.by for found in prices.values()}
    if kinds == {MODEL, COUNTS}:
        finite = {name: prices[name].counted for name, value in values.items() if name in prices and math.isfinite(value)}
        return {**values, **finite}, COUNTS
    return dict(values), next(iter(kinds), GIVEN)


def _modelled(result: Any) -> float | None:
    """Seconds by the model of time; None for a target or a launch that it does not know."""
    if getattr(result, "made", None) is None:  # of a launcher that is not ours, or straight to a processor
        return None
    from tilefw.runtime.recording import predicted_seconds

    try:
        return predicted_seconds(result.made)
    except KernelError:
        return None


def _counted(result: Any) -> float:
    counters = result.counters
    for name in ("cycles", "instructions", "ops"):
        if name in counters:
            moved = sum(count for key, count in counters.items() if key.startswith("bytes.global."))
            return float(counters[name] + (LANE_INSTRUCTIONS_A_BYTE * moved if name == "instructions" else 0))
    return result.times.get(EXECUTE, 0.0)
