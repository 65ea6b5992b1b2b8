"""A region cut into pieces: as few as there can be of the region's order, and of those the cut that sends the fewest bytes
through memory."""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from dataclasses import replace

from tilefw.api import InternalError
from tilefw_spatial.chain.contract import rebuilt
from tilefw_spatial.chain.draft import Draft, draft, may_be_view
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
    """Stretches `first` to `end` of the order. `_options[end]` has those that may be pieces: first, bytes, draft; `_fits` remembers
    those that were timed."""

    def __init__(self, region: Region, limits: Limits, machine: Machine) -> None:
        self.region, self.limits, self.machine = region, limits, machine
        self._options = [self._drafts(end) for end in range(len(region.order) + 1)]
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
        """Fewest pieces, then fewest bytes, by the best way to each end."""
        costs: list[tuple[int, int]] = [(0, 0)]
        begins: list[int] = [0]
        for options in self._options[1:]:
            ways = [((costs[first][0] + 1, costs[first][1] + found.stream_bytes), first) for first, found in options.items()]
            if not ways:
                return None
            cost, first = min(ways)
            costs.append(cost)
            begins.append(first)
        stretches: list[tuple[int, int]] = []
        end = len(self.region.order)
        while end:
            stretches.append((begins[end], end))
            end = begins[end]
        return stretches[::-1]

    def _drafts(self, end: int) -> dict[int, Draft]:
        """Where a stretch up to `end` may begin: all of one phase and rate, and within the limits."""
        found: dict[int, Draft] = {}
        order, phases = self.region.order, self.region.phases
        needed = 0
        for first in range(end - 1, -1, -1):
            step, last = order[first], order[end - 1]
            needed += not may_be_view(step)
            if phases[step] != phases[last] or step.reduced != last.reduced or needed > self.limits.alus:
                break
            drawn = draft(self.region, order[first:end])
            if len(drawn.steps) <= self.limits.alus and drawn.stream_bytes <= self.limits.streams:
                found[first] = drawn
        return found

    def _fit(self, first: int, end: int) -> Fitted | None:
        if (first, end) not in self._fits:
            found = fit(self._options[end][first], self.limits, self.machine)
            self._fits[first, end] = found
            if found is None:
                del self._options[end][first]
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
