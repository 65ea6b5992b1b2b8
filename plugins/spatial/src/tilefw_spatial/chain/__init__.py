"""Elementwise work as chains of ALUs: rows of the elementwise table to the vector unit's steps, in fused segments that fit it.

`legalise` turns a region's results into micro steps (what the unit does itself, and core's expansions of all else; constants
folded, common steps shared, dead ones gone); `segmented` divides those into segments of at most the machine's ALUs, with values
between segments in memory. `chain` does both:

    x, y = Input("x", "fp32"), Input("y", "fp32") [segment] = chain([NodeResult("out", Apply("addf", (x, y), "fp32"))], machine) #
    segment.reads: x at 0, y at 0; segment.steps: ADD fp32; segment.writes: ("out",) from step 0
"""

from tilefw_spatial.chain.legalise import legalise
from tilefw_spatial.chain.limits import ChainLimits
from tilefw_spatial.chain.node import Apply, Combined, Input, Literal, Node, NodeResult, Results
from tilefw_spatial.chain.segment import FusedSegment, SegmentRead, SegmentWrite, Temporary
from tilefw_spatial.chain.segmentation import segmented
from tilefw_spatial.machine import Machine

__all__ = [
    "Apply", "Combined", "Input", "ChainLimits", "Literal", "Node", "FusedSegment", "SegmentRead", "SegmentWrite", "NodeResult",
    "Results", "Temporary", "chain", "legalise", "segmented",
]


def chain(results: Results, machine: Machine, limits: ChainLimits | None = None) -> list[FusedSegment]:
    """The fused segments that make `results`, in an order that is right; `limits` other than the machine's are for tests. Raises
    UnsupportedError (TFW0680) as `legalise` does."""
    return segmented(legalise(results), limits or ChainLimits.of(machine), machine)
