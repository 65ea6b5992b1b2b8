"""`--split n`: every chip makes its share of each result from whole operands, and no chip needs another."""

from __future__ import annotations

from tilefw_spatial.arrange import arrange
from tilefw_spatial.graph import Graph, Store
from tilefw_spatial.machine import Machine
from tilefw_spatial.partition.axes import divided_axis
from tilefw_spatial.partition.restrict import Restriction, part_of
from tilefw_spatial.sweep import NodeWork, Work


def columns_split(graph: Graph, chips: int, machine: Machine) -> NodeWork:
    """The work of chips that have parts of what is stored."""
    works: list[Work] = []
    for stores in shares(graph, chips):
        work = arrange(Graph(list(stores.values())), machine)
        for number, array in zip(stores, work.results, strict=True):
            array.rank = number
        works.append(work)
    return NodeWork(works, [(chip, sweep) for chip, work in enumerate(works) for sweep in work.sweeps])


def shares(graph: Graph, chips: int) -> list[dict[int, Store]]:
    """The stores of each chip by their number. Shares have one extent, the last ones with indices of which nothing is stored."""
    found: list[dict[int, Store]] = [{} for _ in range(chips)]
    for number, store in enumerate(graph.stores):
        for share, part in zip(found, _store_shares(store, chips), strict=True):
            if part is not None:
                share[number] = part
    return found


def _store_shares(store: Store, chips: int) -> list[Store | None]:
    axis = divided_axis(store, chips)
    if axis is None:
        return [store, *[None] * (chips - 1)]
    extent = -(-axis.extent // chips)
    parts = (part_of(axis, chip * extent, (chip + 1) * extent) for chip in range(chips))
    return [Restriction(part).store(store) for part in parts]
