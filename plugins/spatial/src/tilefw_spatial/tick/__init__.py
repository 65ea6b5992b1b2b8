"""The slow simulator: one cycle and one superlane at a time, for small programs; the fast one is judged by it."""

from tilefw_spatial.tick.chips import TickOutcome, simulate
from tilefw_spatial.tick.host import TickArray

__all__ = ["TickArray", "TickOutcome", "simulate"]
