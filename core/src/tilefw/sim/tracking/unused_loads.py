"""Races of loads whose value may never be used: kept until the reading waves have ended, and reported if they used it.

A wave that repeats what another does (a block with fewer elements than threads) loads what the other overwrites, and discards it:
its own store is off in every lane. Whatever such a load reads, it is in no race.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.sim.engine.batch import Batch
from tilefw.sim.floats import Array
from tilefw.sim.program import Program
from tilefw.sim.report import Reporter
from tilefw.sim.tracking.load_uses import LoadUses


@dataclass(slots=True)
class _Kept:
    """A race of a load by waves `waves` of workgroup `group` (a number in the grid), whose value reaches the data of `stores`."""

    group: int
    waves: Array
    stores: frozenset[int]
    finding: dict[str, Any]


class UnusedLoads:
    """Those of one launch."""

    def __init__(self, program: Program, reporter: Reporter) -> None:
        self._uses = LoadUses(program)
        self._reporter = reporter
        self._slots: dict[int, tuple[int, int]] = {}  # workgroup in flight: (id of its batch, its number there)
        self._acted: dict[int, dict[int, Array]] = {}  # by batch and store: [workgroups, waves] that have had an acting lane
        self._kept: dict[tuple[Any, ...], _Kept] = {}

    def begin(self, batch: Batch) -> None:
        self._acted[id(batch)] = {}
        self._slots.update((group, (id(batch), slot)) for slot, group in enumerate(batch.workgroups.tolist()))

    def stored(self, batch: Batch, store: int, slots: Array, waves: Array) -> None:
        """Lanes of these waves act in instruction `store`."""
        self.acted(batch, store)[slots, waves] = True

    def acted(self, batch: Batch, store: int) -> Array:
        """The waves [workgroups, waves] that have had a lane that acts in a store."""
        acted = self._acted[id(batch)].get(store)
        if acted is None:
            acted = self._acted[id(batch)][store] = np.zeros(batch.frame.shape[:2], dtype=np.bool_)
        return acted

    def may_be_unused(self, load: int, group: int) -> bool:
        """Whether a race of a load is to be kept: its value reaches nothing but data of stores, and its workgroup is in flight."""
        return group in self._slots and self._uses.stores(load) is not None

    def keep(self, load: int, group: int, waves: Array, finding: dict[str, Any]) -> None:
        """Keep a race; `finding` are the arguments of `Reporter.add`."""
        stores = self._uses.stores(load)
        assert stores is not None
        key = load, group, tuple(waves.tolist()), finding["instruction"].index, finding["other_site"]
        known = self._kept.get(key)
        if known is None:
            self._kept[key] = _Kept(group, waves, stores, finding)
        else:
            known.finding["count"] += finding["count"]

    def end(self, batch: Batch) -> None:
        """The batch has ended: report the races of its loads that were used, forget the others."""
        acted = self._acted.pop(id(batch))
        groups = set(batch.workgroups.tolist())
        for key, kept in [(k, v) for k, v in self._kept.items() if v.group in groups]:
            del self._kept[key]
            _, slot = self._slots[kept.group]
            if any(store in acted and acted[store][slot, kept.waves].any() for store in kept.stores):
                self._reporter.add(**kept.finding)
        for group in groups:
            del self._slots[group]

    def close(self) -> None:
        """The launch has stopped early: what is left counts as used."""
        for kept in self._kept.values():
            self._reporter.add(**kept.finding)
        self._kept.clear()
