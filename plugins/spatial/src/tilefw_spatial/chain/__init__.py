"""Elementwise work as chains of ALUs: rows of the elementwise table to the vector unit's steps, cut into pieces that fit it.

`legalise` turns a region's results into micro steps (what the unit does itself, and core's expansions of all else; constants
folded, common steps shared, dead ones gone); `cut` cuts those into stream operations of at most the machine's ALUs, values between
pieces through memory. `chain` does both:

    x, y = Input("x", "fp32"), Input("y", "fp32")
    [piece] = chain([Result("out", Apply("addf", (x, y), "fp32"))], machine)
    # piece.reads: x at 0, y at 0; piece.steps: ADD fp32; piece.writes: ("out",) from step 0
"""

from tilefw_spatial.chain.cut import cut
from tilefw_spatial.chain.legalise import legalise
from tilefw_spatial.chain.limits import ChainLimits
from tilefw_spatial.chain.node import Apply, Combined, Input, Literal, Node, NodeResult, Results
from tilefw_spatial.chain.piece import ChainPiece, PieceRead, PieceWrite, Temporary
from tilefw_spatial.machine import Machine

__all__ = [
    "Apply", "Combined", "Input", "ChainLimits", "Literal", "Node", "ChainPiece", "PieceRead", "PieceWrite", "NodeResult",
    "Results", "Temporary", "chain", "cut", "legalise",
]


def chain(results: Results, machine: Machine, limits: ChainLimits | None = None) -> list[ChainPiece]:
    """The pieces that make `results`, in an order that is right; `limits` other than the machine's
    are for tests. Raises UnsupportedError (TFW0680) as `legalise` does."""
    return cut(legalise(results), limits or ChainLimits.of(machine), machine)
