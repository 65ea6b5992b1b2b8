"""A region as fused segments: as few as its order allows, and of those the segmentation that sends the fewest bytes through
memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import takewhile

from tilefw.api import InternalError
from tilefw_spatial.chain.contract import rebuilt
from tilefw_spatial.chain.fit import TimedSegment, fit, fused_segment
from tilefw_spatial.chain.limits import ChainLimits
from tilefw_spatial.chain.micro import Micro, MicroOperand, RegionResult
from tilefw_spatial.chain.node import Input
from tilefw_spatial.chain.region import ChainRegion, region_of
from tilefw_spatial.chain.segment import FusedSegment, Temporary
from tilefw_spatial.chain.segment_resources import SegmentResources
from tilefw_spatial.chain.untimed_segment import untimed
from tilefw_spatial.machine import Machine

_AHEAD = 8  # steps that costs are ahead of times


def segmented(wanted: Sequence[RegionResult], limits: ChainLimits, machine: Machine) -> list[FusedSegment]:
    """The fused segments of the region below these results, in an order that is right."""
    region = region_of(wanted)
    timed = _Segmentation(region, limits, machine).best()
    if timed is None:  # some step with all that it rematerialises is too much
        region = region_of(wanted, rematerialise=False)
        timed = _Segmentation(region, limits, machine).best()
    if timed is None:
        raise InternalError(f"a step alone takes more than {limits.alus} ALUs or {limits.streams} bytes of streams")
    again = {source for source in _drained(timed) if sum(source in found.untimed.reads for found in timed) > 1}
    if again:
        return segmented(with_moves(wanted, again), limits, machine)
    names = _SegmentArrays(region, timed)
    return [fused_segment(found, machine, names) for found in timed]


def _drained(timed: Sequence[TimedSegment]) -> set[Input]:
    return {source for found in timed for source in found.untimed.reads if isinstance(source, Input) and source.drained}


def with_moves(wanted: Sequence[RegionResult], inputs: Set[Input]) -> list[RegionResult]:
    """The same results where one step alone reads each of `inputs`: a MOV, whose result the others read."""
    moves = {source: Micro("MOV", source.dtype, (MicroOperand(source),), source.reduced) for source in inputs}

    def moved(operand: MicroOperand) -> MicroOperand:
        source = operand.source
        return replace(operand, source=moves[source]) if isinstance(source, Input) and source in moves else operand

    return rebuilt(wanted, lambda step, _: replace(step, operands=tuple(map(moved, step.operands))))


class _Segmentation:
    """The search over segments `first` to `end` of the order. `_options[end]` has the bytes of those that are possible, by `first`;
    `_timed` those that have been timed. `_costs` and `_begins` belong to the best segmentation up to each end: how many segments
    and bytes it has, and where its last segment begins; for ends in `_sure` all its segments fit."""

    def __init__(self, region: ChainRegion, limits: ChainLimits, machine: Machine) -> None:
        self.region, self.limits, self.machine = region, limits, machine
        self._options: list[dict[int, int]] = [{}]
        self._timed: dict[tuple[int, int], TimedSegment] = {}
        self._costs: list[tuple[int, int]] = [(0, 0)]
        self._begins: list[int] = [0]
        self._sure: set[int] = set()

    def best(self) -> list[TimedSegment] | None:
        """The cheapest sequence of segments that all fit; None where a step alone does not."""
        last = len(self.region.order)
        for end in range(1, last + 1):
            self._options.append(self._begins_of(end))
            self._costs.append((0, 0))
            self._begins.append(0)
            if not self._reach(end) or ((end % _AHEAD == 0 or end == last) and not self._confirm(end)):
                return None
        return [self._timed[resources] for resources in self._best_bounds(last)][::-1]

    def _begins_of(self, end: int) -> dict[int, int]:
        """Where a segment up to `end` may begin: all its steps of one phase and rate, and within the limits."""
        found: dict[int, int] = {}
        order, phases = self.region.order, self.region.phases
        last = order[end - 1]
        resources = SegmentResources(self.region, end)
        for first in range(end - 1, -1, -1):
            step = order[first]
            if phases[step] != phases[last] or step.reduced != last.reduced:
                break
            resources.take(step)
            if resources.least > self.limits.alus:
                break
            if resources.alus <= self.limits.alus and resources.stream_bytes <= self.limits.streams:
                found[first] = resources.stream_bytes
        return found

    def _reach(self, end: int) -> bool:
        """The best segmentation up to an end, from the best ones up to earlier ends: fewest segments, then fewest bytes. False if
        there is none."""
        costs = self._costs
        candidates = [((costs[first][0] + 1, costs[first][1] + found), first) for first, found in self._options[end].items()]
        if candidates:
            costs[end], self._begins[end] = min(candidates)
        return bool(candidates)

    def _confirm(self, end: int) -> bool:
        """Times the segments of the best segmentation up to an end. One that does not fit is no option, and what follows it is
        searched again; False if there is none. Costs never fall, so that a segmentation that fits stays the best and is examined
        once."""
        while True:
            fresh = list(takewhile(lambda resources: resources[1] not in self._sure, self._best_bounds(end)))
            unfit = next((resources for resources in fresh if not self._fits(*resources)), None)
            if unfit is None:
                self._sure.update(resources[1] for resources in fresh)
                return True
            first, changed = unfit
            del self._options[changed][first]
            if not all(self._reach(later) for later in range(changed, end + 1)):
                return False

    def _best_bounds(self, end: int) -> Iterator[tuple[int, int]]:
        """The segments of the best segmentation up to an end, the last one first."""
        while end:
            yield self._begins[end], end
            end = self._begins[end]

    def _fits(self, first: int, end: int) -> bool:
        if (first, end) not in self._timed:
            found = fit(untimed(self.region, first, end), self.limits, self.machine)
            if found is None:
                return False
            self._timed[first, end] = found
        return True


class _SegmentArrays:
    """Which arrays the segments read and write: the caller's, or a Temporary where only segments need a value."""

    def __init__(self, region: ChainRegion, timed: Sequence[TimedSegment]) -> None:
        self._wanted = region.wanted
        written = [step for found in timed for step in found.untimed.writes if step not in region.wanted]
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
