"""`--split n`: every chip makes its share of each result from whole operands, and no chip needs another."""

from __future__ import annotations

from tilefw_spatial.graph import Graph, Store
from tilefw_spatial.partition.axes import divided_axis
from tilefw_spatial.partition.restrict import Restriction, part_of


def shares(graph: Graph, chips: int) -> list[Graph]:
    """The graph of each chip. Shares have one extent, the last ones with indices of which nothing is stored."""
    found = [Graph() for _ in range(chips)]
    for store in graph.stores:
        for share, part in zip(found, _store_shares(store, chips), strict=True):
            if part is not None:
                share.stores.append(part)
    return found


def _store_shares(store: Store, chips: int) -> list[Store | None]:
    axis = divided_axis(store, chips)
    if axis is None:
        return [store, *[None] * (chips - 1)]
    extent = -(-axis.extent // chips)
    parts = (part_of(axis, chip * extent, (chip + 1) * extent) for chip in range(chips))
    return [Restriction(part).store(store) for part in parts]
