"""The chip as data: SDM-1, our own machine after the published structure of stream processors. It is no vendor's chip."""

from __future__ import annotations

from tilefw.api import TargetInfo
from tilefw_spatial.capabilities import CAPABILITIES

SDM1 = TargetInfo(
    name="spatial-sdm1",
    vendor="spatial",
    chip="sdm-1",
    summary="SDM-1: a statically scheduled machine of slices and streams, whose cycle count is known before it runs; simulated",
    backend="tilefw_spatial.backend:SpatialBackend",
    provides=frozenset({"lower", "emit", "assemble", "simulate", "timeline"}),
    capabilities=CAPABILITIES,
    # A schedule is made for one launch: sizes, strides and the grid are constants of it, and so is which arguments share memory.
    wants=frozenset({"scalars", "grid", "extents"}),
    options={
        "chips": "chips of the node that share the launch, 1 to 8 (default 1)",
        "split": "how they share it: n (each a part of the results; the default), k (each a part of the sums, then added), "
        "gather (as n, with common operands sharded and broadcast), stages (a pipeline of chips)",
    },
    # `Machine.capacity` of data/sdm-1.yaml as a number: listing targets reads no machine file; a test compares the two.
    limits={"memory_bytes": 230_686_720},
)

TARGETS = (SDM1,)
