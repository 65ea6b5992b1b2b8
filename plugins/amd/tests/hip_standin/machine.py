"""A machine with cards of AMD's, and the library through which they are seen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from hip_standin.runtime import HipRuntime
from oracles import standin
from oracles.standin import CardModel, StandIn
from tilefw_amd.chips import Chip, chips

__all__ = ["CardModel", "HipStandIn", "built"]

built = partial(standin.built, Path(__file__).with_name("hip.c"))


class HipStandIn(StandIn):
    """By default one card of the plugin's first chip; `version` is HIP's. `simulated` is the chip whose code runs, by default the
    first of the cards' that the plugin has."""

    def __init__(
        self, cards: Sequence[CardModel] | None = None, version: tuple[int, int, int] = (6, 4, 43482),
        failing: dict[str, int] | None = None, simulated: Chip | None = None,
    ) -> None:
        first: Chip = next(iter(chips().values()))
        cards = (CardModel(f"{first.name}:sramecc+:xnack-"),) if cards is None else cards
        present = [one.architecture.partition(":")[0] for one in cards]
        chip = simulated or next((chips()[name] for name in present if name in chips()), None)
        super().__init__(lambda made, process: HipRuntime(made, process, chip), cards, version, failing)
