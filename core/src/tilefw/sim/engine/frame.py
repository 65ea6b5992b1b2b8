"""The register file of lanes that step together: arrays [workgroups, waves, lanes], of size 1 on every axis where values agree.

`Frame` is a whole batch. `CompactFrame` copies the waves of a divergent group into [waves, 1, lanes], block by block as they are
needed, and writes back what changed. Register arrays are never written in place, so they may be shared and cached.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tilefw.sim.floats import UNSIGNED, Array
from tilefw.sim.tracking.integers import Held, merged, own


def zeros(bits: int) -> Array:
    return np.zeros((1, 1, 1), dtype=UNSIGNED.get(bits, np.complex128))


def all_ones(like: Array) -> Array:
    """Full poison for a value."""
    if like.dtype == np.bool_:
        return np.ones((1, 1, 1), dtype=np.bool_)
    if like.dtype == np.complex128:
        return np.full((1, 1, 2), 2**64 - 1, dtype=np.uint64).view(np.complex128)
    return np.full((1, 1, 1), ~like.dtype.type(0), dtype=like.dtype)


class Frame:
    """`registers[i]` is the value of register i, `poison[i]` its undefined bits or None.

    `active`: lanes that execute, None for all; `merge`: lanes whose registers change, None for all (they differ where the other
    lanes have ended: nobody reads those any more). `wave_merge` is `merge` without the guard of the instruction that runs: what
    changes registers of a wave. `group`, `wave`, `lane` are index arrays that broadcast to `shape`. `view` is this
    frame with one lane, over the same registers, for instructions that execute once for the wave; its `whole` is this frame.
    `held`: the exact integers that registers stand for, as far as they are followed (steps/exact.py).
    """

    __slots__ = (
        "active", "group", "held", "lane", "merge", "poison", "registers", "shape", "threads", "view", "wave",
        "wave_merge", "whole",
    )

    def __init__(self, shape: tuple[int, int, int], group: Array, wave: Array, lane: Array) -> None:
        self.shape = shape
        self.group, self.wave, self.lane = group, wave, lane
        self.registers: list[Array] = []
        self.poison: list[Array | None] = []
        self.held: dict[int, Held] = {}
        self.active: Array | None = None
        self.merge: Array | None = None
        self.wave_merge: Array | None = None
        self.threads = shape[0] * shape[1] * shape[2]
        self.view = self.whole = self

    def select(self, active: Array | None, merge: Array | None, threads: int) -> None:
        """What executes from now on."""
        self.active, self.merge, self.wave_merge, self.threads = active, merge, merge, threads

    def select_waves(self, active: Array | None, merge: Array | None, waves: int) -> None:
        """`select` for masks with one lane: `view` is ready then."""
        if self.view is self:
            self.view = Frame((*self.shape[:2], 1), self.group, self.wave, np.zeros((1, 1, 1), dtype=np.int64))
            self.view.registers, self.view.poison, self.view.held = self.registers, self.poison, self.held
            self.view.whole = self
        self.select(active, merge, waves * self.shape[2])
        self.view.select(active, merge, waves)

    def prepare(self, registers: Iterable[int]) -> None:
        """Called with the registers of a block before it runs."""

    def finish(self) -> None:
        """Called when another group takes over."""

    def integers(self, register: int) -> Held:
        """What a register stands for: an exact integer that is followed, or else its own number."""
        held = self.followed(register)
        if held is None:
            held = self.held[register] = own(self.registers[register])
        return held

    def followed(self, register: int) -> Held | None:
        """The same; None where nobody has asked what its own number is."""
        value = self.registers[register]
        held = self.held.get(register)
        return held if held is not None and held.value is value else self.whole._inherited(register, value)

    def _inherited(self, register: int, value: Array) -> Held | None:
        return None

    @staticmethod
    def of_batch(groups: int, waves: int, lanes: int) -> Frame:
        return Frame(
            (groups, waves, lanes),
            np.arange(groups, dtype=np.int64).reshape(-1, 1, 1),
            np.arange(waves, dtype=np.int64).reshape(1, -1, 1),
            np.arange(lanes, dtype=np.int64).reshape(1, 1, -1),
        )


class CompactFrame(Frame):
    """The waves `(groups[i], waves[i])` of a parent, as [i, 1, lanes]."""

    __slots__ = ("_groups", "_held", "_parent", "_taken", "_waves")

    def __init__(self, parent: Frame, rows: Array) -> None:
        groups, waves = np.nonzero(rows)
        super().__init__((len(groups), 1, parent.shape[2]), groups.reshape(-1, 1, 1), waves.reshape(-1, 1, 1), parent.lane)
        self._parent, self._groups, self._waves = parent, groups, waves
        self._held: set[int] = set()
        self._taken: dict[int, tuple[Array, Array | None]] = {}
        self.registers = [None] * len(parent.registers)  # type: ignore[list-item]
        self.poison = [None] * len(parent.registers)

    def _rows_of(self, value: Array) -> Array:
        if value.shape[0] == 1 and value.shape[1] == 1:
            return value
        groups = self._groups if value.shape[0] > 1 else 0
        waves = self._waves if value.shape[1] > 1 else 0
        return value[groups, waves][:, None, :]

    def prepare(self, registers: Iterable[int]) -> None:
        parent = self._parent
        for index in registers:
            if index in self._held:
                continue
            self._held.add(index)
            value, poison = parent.registers[index], parent.poison[index]
            self.registers[index] = self._rows_of(value)
            self.poison[index] = None if poison is None else self._rows_of(poison)
            self._taken[index] = self.registers[index], self.poison[index]

    def finish(self) -> None:
        parent = self._parent
        for index in self._held:
            value, poison = self._taken[index]
            if self.registers[index] is not value:
                after = self.followed(index) if self.held else None
                before = parent.followed(index) if parent.held else None
                parent.registers[index] = self._spread(parent.registers[index], self.registers[index])
                # Rows that are not here go on to stand for what they did.
                if (after is not None and not after.leaf) or (before is not None and before.follows):
                    after = own(self.registers[index]) if after is None else after
                    parent.held[index] = self._merged(parent.registers[index], before, after)
            if self.poison[index] is not poison:
                old = parent.poison[index]
                new = self.poison[index]
                base = np.zeros_like(parent.registers[index][:1, :1, :1]) if old is None else old
                merged = self._spread(base, np.zeros_like(base[:1, :1, :1]) if new is None else new)
                parent.poison[index] = merged if merged.view(np.uint8).any() else None
        self._held.clear()
        self._taken.clear()
        self.held.clear()

    def _inherited(self, register: int, value: Array) -> Held | None:
        """What the parent's register stands for, as long as it is unchanged here."""
        taken = self._taken.get(register)
        held = None if taken is None or taken[0] is not value else self._parent.followed(register)
        if held is not None:
            held = self.held[register] = held.of(None).moved(value, self._rows_of)
        return held

    def _merged(self, value: Array, before: Held | None, after: Held) -> Held:
        """What a register of the parent stands for whose rows here stand for `after`."""
        rows = np.zeros((*self._parent.shape[:2], 1), dtype=np.bool_)
        rows[self._groups, self._waves] = True

        def spread(of: Array) -> Array:
            return self._spread(np.zeros((1, 1, 1), dtype=of.dtype), of)

        return merged(before, after.of(None).moved(value, spread), rows)

    def _spread(self, old: Array, new: Array) -> Array:
        groups, waves, _ = self._parent.shape
        full = np.empty((groups, waves, max(old.shape[2], new.shape[2])), dtype=old.dtype)
        full[...] = old
        full[self._groups, self._waves] = new[:, 0, :]
        return full
