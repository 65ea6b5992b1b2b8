"""A machine with cards of NVIDIA's, and the library through which they are seen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cuda_standin.runtime import CudaRuntime
from oracles import standin
from oracles.standin import CardModel, StandIn
from tilefw_nvidia.chips import chips

__all__ = ["CardModel", "CudaStandIn", "built"]

built = partial(standin.built, Path(__file__).with_name("cuda.c"))


class CudaStandIn(StandIn):
    """By default one card of the plugin's first chip; `version` is CUDA's, as the driver supports it. A card of any chip runs what
    is written for the plugin's chips as the simulator of the code's own target does."""

    def __init__(
        self, cards: Sequence[CardModel] | None = None, version: tuple[int, int] = (12, 9), failing: dict[str, int] | None = None
    ) -> None:
        cards = (CardModel(next(iter(chips()))),) if cards is None else cards
        super().__init__(CudaRuntime, cards, version, failing)
