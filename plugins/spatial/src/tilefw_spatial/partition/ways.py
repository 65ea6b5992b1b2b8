"""The ways to split a launch over chips, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilefw_spatial.arrange.stores import unconditional
from tilefw_spatial.graph import Graph
from tilefw_spatial.machine import Machine
from tilefw_spatial.partition.columns import columns_split
from tilefw_spatial.partition.gather import gathered_split
from tilefw_spatial.partition.stages import staged
from tilefw_spatial.partition.sums import sums_split
from tilefw_spatial.sweep import NodeWork

Way = Callable[[Graph, int, Machine], NodeWork]


def partition(graph: Graph, chips: int, split: str, machine: Machine) -> NodeWork:
    """The work of each chip of a launch that is split by one of SPLITS. Raises UnsupportedError for what a way does not serve."""
    return SPLITS[split](Graph(unconditional(graph.stores)), chips, machine)


SPLITS: Mapping[str, Way] = {"n": columns_split, "k": sums_split, "gather": gathered_split, "stages": staged}
