"""A region cut into pieces: as few as there can be of the region's order, and of those the cut that sends the fewest bytes
through memory."""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from dataclasses import replace

from tilefw.api import InternalError
from tilefw_spatial.chain.contract import rebuilt
from tilefw_spatial.chain.draft import Draft, draft
from tilefw_spatial.chain.fit import Fitted, fit, piece_of
from tilefw_spatial.chain.limits import Limits
from tilefw_spatial.chain.micro import Micro, Operand, Wanted
from tilefw_spatial.chain.node import Input
from tilefw_spatial.chain.piece import Piece, Temporary
from tilefw_spatial.chain.region import Region, region_of
from tilefw_spatial.machine import Machine, load


def cut(wanted: Sequence[Wanted], limits: Limits, machine: Machine | None = None) -> list[Piece]:
    """The pieces of the region below these results, in an order that is right."""
    machine = machine or load()
    region = region_of(wanted)
    fitted = _Cutter(region, limits, machine).best()
    if fitted is None:  # some step with all its satellites is too much
        region = region_of(wanted, satellites=False)
        fitted = _Cutter(region, limits, machine).best()
    if fitted is None:
        raise InternalError(f"a step alone takes more than {limits.alus} ALUs or {limits.streams} bytes of streams")
    again = {source for source in _drained(fitted) if sum(source in found.draft.reads for found in fitted) > 1}
    if again:
        return cut(kept(wanted, again), limits, machine)
    names = _Names(region, fitted)
    return [piece_of(found, machine, names) for found in fitted]


def _drained(fitted: Sequence[Fitted]) -> set[Input]:
    return {source for found in fitted for source in found.draft.reads if isinstance(source, Input) and source.drained}


def kept(wanted: Sequence[Wanted], inputs: Set[Input]) -> list[Wanted]:
    """The same results where one step alone reads each of `inputs`: a MOV, whose result the others read."""
    moves = {source: Micro("MOV", source.dtype, (Operand(source),), source.reduced) for source in inputs}

    def moved(operand: Operand) -> Operand:
        source = operand.source
        return replace(operand, source=moves[source]) if isinstance(source, Input) and source in moves else operand

    return rebuilt(wanted, lambda step, _: replace(step, operands=tuple(map(moved, step.operands))))


class _Cutter:
    """Stretches `first` to `end` of the order; `_fits` remembers those that were timed."""

    def __init__(self, region: Region, limits: Limits, machine: Machine) -> None:
        self.region, self.limits, self.machine = region, limits, machine
        self._drafts: dict[tuple[int, int], Draft | None] = {}
        self._fits: dict[tuple[int, int], Fitted | None] = {}

    def best(self) -> list[Fitted] | None:
        """The cheapest chain of stretches that all fit; None where a step alone does not. Costs are taken before times are known; a
        stretch that then does not fit is left out of the next try."""
        while True:
            stretches = self._cheapest()
            if stretches is None:
                return None
            found = [self._fit(*stretch) for stretch in stretches]
            if all(fitted is not None for fitted in found):
                return [fitted for fitted in found if fitted is not None]

    def _cheapest(self) -> list[tuple[int, int]] | None:
        order = self.region.order
        costs: list[tuple[int, int]] = [(0, 0)]
        begins: list[int] = [0]
        for end in range(1, len(order) + 1):
            options = [(self._cost(first, end, costs[first]), first) for first in self._firsts(end)]
            if not options:
                return None
            cost, first = min(options)
            costs.append(cost)
            begins.append(first)
        stretches: list[tuple[int, int]] = []
        end = len(order)
        while end:
            stretches.append((begins[end], end))
            end = begins[end]
        return stretches[::-1]

    def _firsts(self, end: int) -> list[int]:
        """Where a stretch up to `end` may begin: all of one phase and rate, and within the limits."""
        found: list[int] = []
        last = self.region.order[end - 1]
        for first in range(end - 1, -1, -1):
            step = self.region.order[first]
            if self.region.phases[step] != self.region.phases[last] or step.reduced != last.reduced:
                break
            if end - first > 2 * self.limits.alus:  # views are no steps, but they are few
                break
            if self._draft(first, end) is not None and self._fits.get((first, end), True) is not None:
                found.append(first)
        return found

    def _cost(self, first: int, end: int, before: tuple[int, int]) -> tuple[int, int]:
        found = self._draft(first, end)
        assert found is not None
        return before[0] + 1, before[1] + found.stream_bytes

    def _draft(self, first: int, end: int) -> Draft | None:
        if (first, end) not in self._drafts:
            found = draft(self.region, self.region.order[first:end])
            fits = len(found.steps) <= self.limits.alus and found.stream_bytes <= self.limits.streams
            self._drafts[first, end] = found if fits else None
        return self._drafts[first, end]

    def _fit(self, first: int, end: int) -> Fitted | None:
        if (first, end) not in self._fits:
            found = self._draft(first, end)
            assert found is not None
            self._fits[first, end] = fit(found, self.limits, self.machine)
        return self._fits[first, end]


class _Names:
    """Which arrays the pieces read and write: the caller's, or a Temporary where only pieces need a value."""

    def __init__(self, region: Region, fitted: Sequence[Fitted]) -> None:
        self._wanted = region.wanted
        written = [step for found in fitted for step in found.draft.writes if step not in region.wanted]
        self._temporaries = {step: Temporary(i, step.result, step.makes_reduced) for i, step in enumerate(written)}

    def read(self, source: Micro | Input) -> tuple[Hashable, str]:
        if isinstance(source, Input):
            return source.key, source.dtype
        keys, dtype = self.written(source)
        return keys[0], dtype

    def written(self, step: Micro) -> tuple[tuple[Hashable, ...], str]:
        if step in self._wanted:
            results = self._wanted[step]
            return tuple(key for wanted in results for key in wanted.keys), results[0].dtype
        return (self._temporaries[step],), step.result
