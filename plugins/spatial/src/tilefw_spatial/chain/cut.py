"""A region cut into pieces: as few as there can be of the region's order, and of those the cut that sends the fewest bytes
through memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import takewhile

from tilefw.api import InternalError
from tilefw_spatial.chain.contract import rebuilt
from tilefw_spatial.chain.draft import draft
from tilefw_spatial.chain.fit import Fitted, fit, piece_of
from tilefw_spatial.chain.limits import ChainLimits
from tilefw_spatial.chain.micro import Micro, MicroOperand, WantedOperand
from tilefw_spatial.chain.node import Input
from tilefw_spatial.chain.piece import ChainPiece, Temporary
from tilefw_spatial.chain.region import ChainRegion, region_of
from tilefw_spatial.chain.stretch import Stretch
from tilefw_spatial.machine import Machine

_AHEAD = 8  # steps that costs are ahead of times


def cut(wanted: Sequence[WantedOperand], limits: ChainLimits, machine: Machine) -> list[ChainPiece]:
    """The pieces of the region below these results, in an order that is right."""
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


def kept(wanted: Sequence[WantedOperand], inputs: Set[Input]) -> list[WantedOperand]:
    """The same results where one step alone reads each of `inputs`: a MOV, whose result the others read."""
    moves = {source: Micro("MOV", source.dtype, (MicroOperand(source),), source.reduced) for source in inputs}

    def moved(operand: MicroOperand) -> MicroOperand:
        source = operand.source
        return replace(operand, source=moves[source]) if isinstance(source, Input) and source in moves else operand

    return rebuilt(wanted, lambda step, _: replace(step, operands=tuple(map(moved, step.operands))))


class _Cutter:
    """Stretches `first` to `end` of the order. `_options[end]` has the bytes of those that may be pieces, by `first`; `_fitted`
    those that were timed. `_costs` and `_begins` are of the best way to each end: its pieces and bytes, and where its last stretch
    begins; ends in `_sure` have ways whose stretches all fit."""

    def __init__(self, region: ChainRegion, limits: ChainLimits, machine: Machine) -> None:
        self.region, self.limits, self.machine = region, limits, machine
        self._options: list[dict[int, int]] = [{}]
        self._fitted: dict[tuple[int, int], Fitted] = {}
        self._costs: list[tuple[int, int]] = [(0, 0)]
        self._begins: list[int] = [0]
        self._sure: set[int] = set()

    def best(self) -> list[Fitted] | None:
        """The cheapest chain of stretches that all fit; None where a step alone does not."""
        last = len(self.region.order)
        for end in range(1, last + 1):
            self._options.append(self._drawn(end))
            self._costs.append((0, 0))
            self._begins.append(0)
            if not self._reach(end) or ((end % _AHEAD == 0 or end == last) and not self._confirm(end)):
                return None
        return [self._fitted[stretch] for stretch in self._way(last)][::-1]

    def _drawn(self, end: int) -> dict[int, int]:
        """Where a stretch up to `end` may begin: all of one phase and rate, and within the limits."""
        found: dict[int, int] = {}
        order, phases = self.region.order, self.region.phases
        last = order[end - 1]
        stretch = Stretch(self.region, end)
        for first in range(end - 1, -1, -1):
            step = order[first]
            if phases[step] != phases[last] or step.reduced != last.reduced:
                break
            stretch.take(step)
            if stretch.least > self.limits.alus:
                break
            if stretch.alus <= self.limits.alus and stretch.stream_bytes <= self.limits.streams:
                found[first] = stretch.stream_bytes
        return found

    def _reach(self, end: int) -> bool:
        """The best way to an end by the best ways to those before it: fewest pieces, then fewest bytes. False if there is none."""
        costs = self._costs
        ways = [((costs[first][0] + 1, costs[first][1] + found), first) for first, found in self._options[end].items()]
        if ways:
            costs[end], self._begins[end] = min(ways)
        return bool(ways)

    def _confirm(self, end: int) -> bool:
        """Times the stretches on the way to an end. One that does not fit is no option, and the ways behind it are looked for
        again; False if there is none. Costs never fall, so that a way which fits stays the best and is looked at once."""
        while True:
            fresh = list(takewhile(lambda stretch: stretch[1] not in self._sure, self._way(end)))
            unfit = next((stretch for stretch in fresh if not self._fits(*stretch)), None)
            if unfit is None:
                self._sure.update(stretch[1] for stretch in fresh)
                return True
            first, changed = unfit
            del self._options[changed][first]
            if not all(self._reach(later) for later in range(changed, end + 1)):
                return False

    def _way(self, end: int) -> Iterator[tuple[int, int]]:
        """The stretches of the best way to an end, the last one first."""
        while end:
            yield self._begins[end], end
            end = self._begins[end]

    def _fits(self, first: int, end: int) -> bool:
        if (first, end) not in self._fitted:
            found = fit(draft(self.region, first, end), self.limits, self.machine)
            if found is None:
                return False
            self._fitted[first, end] = found
        return True


class _Names:
    """Which arrays the pieces read and write: the caller's, or a Temporary where only pieces need a value."""

    def __init__(self, region: ChainRegion, fitted: Sequence[Fitted]) -> None:
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
