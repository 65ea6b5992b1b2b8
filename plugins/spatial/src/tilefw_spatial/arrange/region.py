"""Which elementwise work and reductions run over one domain together: regions of items, each a few stream operations of the vector
unit.

A region's domain is its chunks of lanes, its outer axes and, where it reduces, its inner ones. A region that drains a product runs
over that product's own domain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tilefw_spatial.arrange.item import Item
from tilefw_spatial.arrange.matrix import in_tiles
from tilefw_spatial.arrange.normal import Reindex
from tilefw_spatial.graph import Axis, Constant, Dot, Elementwise, Reduce
from tilefw_spatial.postorder import postorder

# An elementwise value of at most so many rows, all of it from inputs, is made again by each region that needs it.
_CHEAP_ROWS = 2


@dataclass(slots=True, eq=False)
class LaneRegion:
    """Items in an order that is right; `drained` is the product that the region takes from the accumulators, `lane_reduction` the
    reduction across lanes or the relayout that it is and that no other item joins."""

    chunks: int
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...] = ()
    drained: Item | None = None
    lane_reduction: Item | None = None
    items: list[Item] = field(default_factory=list)
    needs: dict[LaneRegion, None] = field(default_factory=dict)
    fetched: set[Item] = field(default_factory=set)

    def takes(self, item: Item) -> bool:
        """Whether the item's domain is the region's, or its part without inner axes; a reduction reduces the inner axes."""
        if item.lanes.chunks != self.chunks or self.lane_reduction is not None or item.across_lanes:
            return False
        time = frozenset(item.time)
        if not isinstance(item.value.op, Reduce):
            return time == frozenset((*self.outer, *self.inner)) or (bool(self.inner) and time == frozenset(self.outer))
        axes = frozenset(item.value.op.axes)
        if self.inner:
            return axes == frozenset(self.inner) and time == frozenset(self.outer)
        return self.drained is None and time | axes == frozenset(self.outer) and not time & axes

    def add(self, item: Item) -> None:
        """Take an item; the first reduction determines the inner axes."""
        if isinstance(item.value.op, Reduce) and not self.inner and not item.across_lanes:
            op = item.value.op
            self.inner = tuple(sorted(op.axes, key=lambda axis: axis is not op.ordered))  # the kernel's own order outermost
            self.outer = tuple(axis for axis in self.outer if axis not in self.inner)
        self.items.append(item)


def _reads_memory(item: Item) -> bool:
    """Whether its operands must be in memory before it."""
    return item.across_lanes or isinstance(item.value.op, Dot | Reindex)


class Regions:
    """Items divided into regions, and what each region needs of others."""

    def __init__(self, items: list[Item], roots: list[Item]) -> None:
        self.region_of: dict[Item, LaneRegion] = {}
        self.all: list[LaneRegion] = []
        self.roots = set(roots)
        self._forced = self.roots | {part for item in items if _reads_memory(item) for part in item.operands}
        self._rows: dict[Item, int] = {}
        # A reindexing is read in place, except what is stored, and weights, whose vectors must follow one another.
        copied = self.roots | {item.operands[0] for item in items if isinstance(item.value.op, Dot)}
        for item in items:
            self._rows[item] = self._row_count(item)
        for item in items:
            if not item.inputs and not self.inlined(item) and (item in copied or not isinstance(item.value.op, Reindex)):
                self._place(item)
        self._outside = self._crossing()
        for item in roots:
            if item.inputs and item not in self.region_of:
                self._place(item)

    def inlined(self, item: Item) -> bool:
        """Whether its users make it themselves."""
        return item not in self._forced and self._rows[item] <= _CHEAP_ROWS and isinstance(item.value.op, Elementwise)

    def _row_count(self, item: Item) -> int:
        if item.inputs:
            return 0
        return 1 + sum(self._rows[part] for part in item.operands) if isinstance(item.value.op, Elementwise) else _CHEAP_ROWS + 1

    def _place(self, item: Item) -> None:
        joined, waited, fetched = self._sources(item)
        chosen = None
        if not isinstance(item.value.op, Dot | Reindex) and not item.inputs:
            near = [region for region in reversed(self.all) if region in joined]
            near += [region for region in reversed(self.all) if region not in joined and region.fetched & fetched]
            chosen = next((r for r in near if r not in waited and r.takes(item) and not self._before(r, joined | waited)), None)
        if chosen is None:
            chosen = self._opened(item)
        chosen.add(item)
        chosen.fetched |= fetched
        chosen.needs |= dict.fromkeys(region for region in (*joined, *waited) if region is not chosen)
        self.region_of[item] = chosen

    def _opened(self, item: Item) -> LaneRegion:
        axes = item.value.op.axes if isinstance(item.value.op, Reduce) and not item.across_lanes else ()
        drained = item if isinstance(item.value.op, Dot) else None
        outer = (*item.time, *axes) if drained is None else in_tiles(item)
        region = LaneRegion(item.lanes.chunks, outer, drained=drained, lane_reduction=item if item.across_lanes else None)
        self.all.append(region)
        return region

    def _sources(self, item: Item) -> tuple[dict[LaneRegion, None], dict[LaneRegion, None], set[Item]]:
        """Regions whose values it can take as they are made, those that must have ended before, and inputs it reads."""
        joined: dict[LaneRegion, None] = {}
        waited: dict[LaneRegion, None] = {}
        fetched: set[Item] = set()
        for part, late in self._reads(item):
            if part in self.region_of:
                (waited if late else joined)[self.region_of[part]] = None
            elif not isinstance(part.value.op, Constant):
                fetched.add(part)
        return joined, waited, fetched

    def _reads(self, item: Item) -> list[tuple[Item, bool]]:
        """What an item is made from, through renames and what it makes itself: placed items and inputs; whether these must be in
        memory, since a reindexing or a product is between."""
        found: list[tuple[Item, bool]] = []
        stack = [(part, _reads_memory(item)) for part in item.operands]
        while stack:
            part, late = stack.pop()
            if part in self.region_of or part.inputs:
                found.append((part, late))
            else:
                stack += [(below, late or isinstance(part.value.op, Reindex)) for below in part.operands]
        return found

    def _before(self, region: LaneRegion, sources: Iterable[LaneRegion]) -> bool:
        """Whether some source other than the region itself needs the region."""
        seen: set[LaneRegion] = set()
        stack = [source for source in sources if source is not region]
        while stack:
            current = stack.pop()
            if current is region:
                return True
            if current not in seen:
                seen.add(current)
                stack += current.needs
        return False

    def ordered(self) -> list[LaneRegion]:
        """The regions, each after those that it needs."""
        return postorder(self.all, lambda region: region.needs)

    def wanted(self, region: LaneRegion) -> list[Item]:
        """The region's items that are needed outside of it, or stored."""
        return [item for item in region.items if item in self.roots or item in self._outside]

    def _crossing(self) -> set[Item]:
        """Items that some other region reads, or this one through memory."""
        return {
            part
            for item, region in self.region_of.items() if not item.inputs
            for part, late in self._reads(item) if part in self.region_of and (late or self.region_of[part] is not region)
        }
