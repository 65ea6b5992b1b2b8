"""Which of autotune's candidates may be the fastest, by quick estimates: those are worth a run on a simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tilefw.api.errors import KernelError

if TYPE_CHECKING:
    from tilefw.runtime.estimates import Estimates

LEAST = 2
"""Candidates that are run at least."""


class Configured(Protocol):
    """What is asked of a candidate (autotune.py's Config): what it sets, and a hook that may change a launch."""

    @property
    def pre_hook(self) -> Any: ...
    def all_kwargs(self) -> dict[str, Any]: ...


Candidate = TypeVar("Candidate", bound=Configured)


def likely(
    kernel: Any, candidates: Sequence[Candidate], args: Sequence[Any], grid: Any, keywords: Mapping[str, Any]
) -> list[Candidate]:
    """The candidates that may be faster than the first by estimates, `LEAST` at least and `TIMED_PART` of them at most, the fastest
    first; all where nothing is estimated: a launch on a card, a target without estimates, hooks that change arguments."""
    if len(candidates) <= LEAST or not hasattr(kernel, "estimate") or any(one.pre_hook is not None for one in candidates):
        return list(candidates)
    from tilefw.timing.estimate.choosing import TIMED_PART, may_be_faster

    known: dict[str, Estimates] = {}
    found: list[tuple[float, Candidate]] = []
    for candidate in candidates:
        try:
            estimate = kernel.estimate(known, args, grid, {**keywords, **candidate.all_kwargs()})
        except KernelError:
            continue  # a run would say the same, and is made where nobody else is left
        if estimate is None:
            return list(candidates)
        found.append((estimate.seconds, candidate))
    found.sort(key=lambda pair: pair[0])
    near = sum(may_be_faster(seconds, found[0][0]) for seconds, _ in found)
    return [candidate for _, candidate in found[: max(LEAST, min(near, int(len(candidates) * TIMED_PART)))]]
