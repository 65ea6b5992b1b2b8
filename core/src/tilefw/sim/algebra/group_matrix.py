"""Products of groups of waves of the lane algebra: operands read from shared memory by the matrix unit; see `Algebra`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NoReturn

import numpy as np

from tilefw.sim.algebra.memory import MemoryLanes
from tilefw.sim.floats import Array
from tilefw.sim.matrix.fragments import Fragment
from tilefw.sim.matrix.group_product import CHUNK, DescribedTile, GroupProduct
from tilefw.sim.matrix.group_unit import GroupUnit, held_layout, held_order, tile_codes
from tilefw.sim.memory.access import Access
from tilefw.sim.memory.regions import ELEMENTS, Region, gather, gather_poison
from tilefw.sim.report import LaunchStopped, first_true

# Chunks of descriptors that are remembered, of all programs.
_DESCRIPTORS = 4096
Reader = Callable[[Region, Array, int], Array]


class GroupLanes(MemoryLanes):
    """Reads tiles as descriptors say, chunk by chunk, and multiplies them in the launch's `group_unit`."""

    group_unit: GroupUnit

    def group_multiply(
        self, a: Sequence[Array], b: Array, c: Sequence[Array], accumulate: Array, product: GroupProduct
    ) -> tuple[Array, ...]:
        shape = self.frame.shape
        self._whole_groups(product.waves)
        left = self._operand_a(a, product, gather)
        right = self._columns(b, product, gather)
        adds = self.one_for_each_group(accumulate, product.waves, "whether to accumulate")
        if not adds.any():
            return self.group_unit.multiply(shape, left, right, None, product)
        if not adds.all():
            c = self._kept(c, adds, product.waves)
        full = [value if value.shape == shape else np.broadcast_to(value, shape) for value in c]
        return self.group_unit.multiply(shape, left, right, full, product)

    def group_poison(
        self, a: Sequence[Array], b: Array, c: Sequence[Array], accumulate: Array, product: GroupProduct
    ) -> tuple[Array, ...]:
        """Undefined bits of D, given those of A's registers (its descriptor where it is a tile) and of C's."""
        adds = self.one_for_each_group(accumulate, product.waves, "whether to accumulate")
        addend = self._kept(c, adds, product.waves)
        quiet, self.quiet = self.quiet, True  # the product itself has shown what it reads
        left, right = self._operand_a(a, product, _poison_of), self._columns(b, product, _poison_of)
        self.quiet = quiet
        return self.group_unit.poison(self.frame.shape, left != 0, right != 0, addend, product)

    def _kept(self, c: Sequence[Array], adds: Array, waves: int) -> list[Array]:
        """C, zero in groups that do not add it."""
        kept = adds.reshape(1, 1, 1) if adds.size == 1 else np.repeat(adds, waves).reshape(*self.frame.shape[:2], 1)
        return [np.where(kept, value, value.dtype.type(0)) for value in c]

    def _operand_a(self, a: Sequence[Array], product: GroupProduct, read: Reader) -> Array:
        if not isinstance(product.a, Fragment):
            return tile_codes(product.a, self._read(product.a, a[0], product, None, read))
        shape = self.frame.shape
        codes = held_layout(product.a, shape[2]).gather([np.broadcast_to(value, shape) for value in a], shape)
        return codes.reshape(shape[0] * shape[1] // product.waves, product.waves * product.a.shape[0], -1)

    # --- groups --------------------------------------------------------------------------------------------------------

    def _whole_groups(self, waves: int) -> None:
        """The acting waves are whole groups, and the rows of the frame that a group has are neighbours."""
        if self.mask is not None:
            acting = np.broadcast_to(self.mask, self.frame.shape)
            threads = waves * self.frame.shape[2]
            whole = acting.reshape(-1, threads) if not acting.size % threads else acting[:0, :, 0]
            if not len(whole) or (whole.any(axis=1) & ~whole.all(axis=1)).any():
                self._stop_groups(acting, f"only part of a group of {waves} waves executes a product of the group")
        wave = np.broadcast_to(self.frame.wave[:, :, 0], self.frame.shape[:2]).reshape(-1)
        if len(wave) % waves or (wave.reshape(-1, waves) % waves != np.arange(waves)).any():
            acting = np.ones(self.frame.shape, np.bool_)
            self._stop_groups(acting, f"the workgroup has waves that are no whole group of {waves}")

    def _stop_groups(self, bad: Array, message: str) -> NoReturn:
        self._report_first("barriers", "TFW0807", message, bad)

    def _report_first(self, check: str, code: str, message: str, bad: Array) -> NoReturn:
        a, b, lane = first_true(bad)
        group = int(np.broadcast_to(self.frame.group, self.frame.shape)[a, b, lane])
        wave = int(np.broadcast_to(self.frame.wave, self.frame.shape)[a, b, lane])
        self.launch.diagnostics.reporter.add(
            check, code, message, self.instruction, count=int(bad.sum()), where=(self.batch.workgroup(group), wave, lane)
        )
        raise LaunchStopped

    def one_for_each_group(self, value: Array, waves: int, what: str) -> Array:
        """The value of each group (or one for all), which its acting lanes must agree on."""
        if value.size == 1:
            return value.reshape(1)
        of_groups = np.broadcast_to(value, self.frame.shape).reshape(-1, waves * self.frame.shape[2])
        bad = of_groups != of_groups[:, :1]
        if self.mask is not None:
            bad = bad & np.broadcast_to(self.mask, self.frame.shape).reshape(bad.shape)
        if bad.any():
            message = f"the waves of a group disagree on {what}"
            self._report_first("trap", "TFW0812", message, bad.reshape(self.frame.shape))
        return of_groups[:, 0]

    # --- tiles ---------------------------------------------------------------------------------------------------------

    def _columns(self, descriptor: Array, product: GroupProduct, read: Reader) -> Array:
        """Codes [groups, n, k] of B, its columns in the order of the accumulators."""
        lanes = self.frame.shape[2]
        codes = tile_codes(product.b, self._read(product.b, descriptor, product, product, read))
        return codes if product.b.along_k else codes[:, held_order(product, lanes)]

    def _read(
        self, tile: DescribedTile, descriptor: Array, product: GroupProduct, columns_of: GroupProduct | None, read: Reader
    ) -> Array:
        """The chunks of a tile, [groups, chunks]."""
        descriptors = self.one_for_each_group(descriptor, product.waves, "a descriptor")
        if self.mask is not None and len(descriptors) > 1:
            descriptors = self._of_acting(descriptors, product.waves)
        chosen, which = np.unique(descriptors, return_inverse=True)
        lanes = self.frame.shape[2]
        index = np.stack([_index(tile, int(one), columns_of, lanes) for one in chosen])
        return self._chunks(index[which] if len(descriptors) > 1 else index, product.waves, read)

    def _of_acting(self, descriptors: Array, waves: int) -> Array:
        """Descriptors without those of groups that do not act: these read what the first acting one reads."""
        assert self.mask is not None
        acting = np.broadcast_to(self.mask, self.frame.shape).reshape(-1, waves * self.frame.shape[2])[:, 0]
        return np.where(acting, descriptors, descriptors[np.argmax(acting)])

    def _chunks(self, index: Array, waves: int, read: Reader) -> Array:
        """Chunks [groups, n] at byte addresses [groups or 1, n] of each group's shared memory."""
        frame = self.frame
        region = self.batch.memory.region("shared")
        groups = frame.shape[0] * frame.shape[1] // waves
        flying = self.batch.copies.outstanding or self.batch.engines.outstanding
        watched = self.observers.access or (flying and self.observers.access_in_flight)
        if not self.quiet and (watched or int(index.max()) > region.size - CHUNK):
            self._show(np.broadcast_to(index, (groups, index.shape[1])), waves)
        if not self.quiet:
            self.counters.access("shared", "read", CHUNK, groups * index.shape[1])
        slot = np.broadcast_to(frame.group[:, :, 0], frame.shape[:2]).reshape(-1, waves)[:, :1]
        places = index + slot * region.stride
        if not self.quiet and self.observers.follows_undefined and region.poison is not None:
            self.tainted |= bool(gather_poison(region, places, CHUNK).any())
        return read(region, places, CHUNK)

    def _show(self, index: Array, waves: int) -> None:
        """Show the checks what is read, chunk after chunk over the lanes of a group."""
        frame = self.frame
        width = waves * frame.shape[2]
        padded = np.concatenate([index, np.repeat(index[:, -1:], -index.shape[1] % width, axis=1)], axis=1)
        for first in range(0, padded.shape[1], width):
            address = padded[:, first : first + width].reshape(frame.shape).astype(np.uint64)
            pieces = self.pieces("shared", address, CHUNK, "read", self.mask)
            access = Access("shared", pieces, CHUNK, "read", engine=True)
            for observe in self.observers.access:
                observe(self, access)
            flying = self.batch.copies.outstanding or self.batch.engines.outstanding
            for observe in self.observers.access_in_flight if flying else ():
                observe(self, access)


def _poison_of(region: Region, places: Array, size: int) -> Array:
    if region.poison is None:
        return np.zeros(places.shape, ELEMENTS[size])
    return gather_poison(region, places, size)


@lru_cache(maxsize=_DESCRIPTORS)
def _index(tile: DescribedTile, descriptor: int, of: GroupProduct | None, lanes: int) -> Array:
    """Flat byte addresses of a tile's chunks, those of B in the order of the accumulators where a chunk belongs to one column."""
    places = tile.places(descriptor)
    if of is not None and tile.along_k:
        places = places[held_order(of, lanes)]
    return np.ascontiguousarray(places).reshape(-1)
