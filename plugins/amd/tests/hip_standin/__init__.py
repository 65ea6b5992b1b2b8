"""A stand-in for AMD's cards and their runtime: `libamdhip64.so` in C, answered by our simulator."""

from hip_standin.machine import CardModel, HipStandIn, built

__all__ = ["CardModel", "HipStandIn", "built"]
