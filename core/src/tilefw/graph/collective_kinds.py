"""The collectives of models by name, those of `tilefw.kernels.distributed` that move or add up whole tensors: who gets what shape.

What parts they join or divide lie along the first dim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

Shape = tuple[int, ...]
SUMMED = ("fp32", "fp16", "bf16")
"""Element types whose sums in fp32 are what they should be."""


@dataclass(frozen=True, slots=True)
class CollectiveKind:
    """A collective: the shape that each rank gets, from the shape that each has and the number of ranks. One that `sums` takes the
    types of `SUMMED`; one that `divides` needs a first dim of as many equal parts as there are ranks."""

    shape: Callable[[Shape, int], Shape]
    sums: bool = False
    divides: bool = False


COLLECTIVE_KINDS: Mapping[str, CollectiveKind] = MappingProxyType({
    "all_reduce": CollectiveKind(lambda shape, _: shape, sums=True),
    "all_gather": CollectiveKind(lambda shape, ranks: (shape[0] * ranks, *shape[1:])),
    "reduce_scatter": CollectiveKind(lambda shape, ranks: (shape[0] // ranks, *shape[1:]), sums=True, divides=True),
    "all_to_all": CollectiveKind(lambda shape, _: shape, divides=True),
})
