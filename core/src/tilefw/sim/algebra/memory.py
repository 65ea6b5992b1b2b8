"""Memory primitives of the lane algebra: addresses to regions, checked, then vectorised gathers and scatters.

The fast path is one region for all lanes, no lane masked: two reductions check bounds and alignment, one `take` loads. All
else (masks, several regions, faults) goes through `_pieces`, which says for each region touched which lanes go there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import numpy as np

from tilefw.sim.algebra.primitives import Algebra
from tilefw.sim.counters import Counters
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.frame import Frame
from tilefw.sim.engine.observers import Observers
from tilefw.sim.engine.state import LaunchState
from tilefw.sim.floats import UNSIGNED, Array
from tilefw.sim.memory.access import Access, AccessKind, Piece
from tilefw.sim.memory.atomics import perform
from tilefw.sim.memory.regions import ELEMENTS, Region, gather, gather_poison, scatter
from tilefw.sim.memory.reservations import Reservations
from tilefw.sim.memory.spaces import copy_of
from tilefw.sim.program import Instruction
from tilefw.sim.report import LaunchStopped
from tilefw.sim.tracking.polls import Poll, PolledLoads

_WORD = 4  # bytes of the narrowest atomics of most chips


class MemoryLanes(Algebra):
    """Loads, stores, atomics and generic addresses over `launch` and `batch`; see `Algebra` for their meaning."""

    launch: LaunchState
    batch: Batch
    frame: Frame
    mask: Array | None
    instruction: Instruction
    observers: Observers
    counters: Counters
    tainted: bool
    polls: int
    idle_polls: int
    """Atomics that left memory as it was since one that did not, and strong loads that found what they had found before: whoever
    makes them waits for somebody else."""
    vain_polls: dict[tuple[int, bytes], Poll]
    """Those of the turn of a batch, by where they are and what for."""
    polled_loads: PolledLoads
    stores: int
    """To memory that other workgroups see."""
    by_words: bool
    """True while pairs of floats of 16 bits are loaded, of which one alone may be asked for."""
    quiet: bool
    """True while a step is repeated for its poison: nothing is counted or reported twice."""

    # --- where an access goes ----------------------------------------------------------------------------------------

    def pieces(
        self, space: str, address: Array, size: int, kind: AccessKind, mask: Array | None, alignment: int | None = None
    ) -> list[Piece]:
        """The regions that an access of `size` bytes touches; faults are reported and end the launch. Addresses are multiples of
        `alignment`, or of the size."""
        if address.dtype != np.uint64:
            address = address.astype(np.uint64)
        if space == "generic":
            return self._generic(address, size, kind, mask, alignment)
        if space == "global":
            return self._global(address, size, kind, mask, alignment)
        if space == "cluster":
            return self.cluster_pieces(address, size, kind, mask, alignment)
        memory = self.batch.memory
        region = memory.region(space)
        if mask is None:
            flat, lanes = address, None
            copy = self._copy(space)
        else:
            lanes = np.broadcast_to(mask, self.frame.shape)
            flat = np.broadcast_to(address, self.frame.shape)[lanes]
            copy = np.broadcast_to(self._copy(space), self.frame.shape)[lanes]
        if flat.size and (region.size < size or int(flat.max()) > region.size - size):
            self._out_of_bounds(space, address, size, kind, mask, region)
        self._show_address(address, flat, alignment or size, size, mask)
        index = flat.view(np.int64)
        if space in memory.owners:
            index = index + copy * region.stride
        return [Piece(region, index, lanes)]

    def cluster_pieces(
        self, address: Array, size: int, kind: AccessKind, mask: Array | None, alignment: int | None
    ) -> list[Piece]:
        """`pieces` of the shared memory of a cluster."""
        raise NotImplementedError

    def locate(self, a: int, b: int, lane: int) -> tuple[tuple[int, int, int], int, int]:
        """(workgroup, wave, lane) of a position in the running frame."""
        raise NotImplementedError

    def _copy(self, space: str) -> Array:
        """Which copy of a space a lane has."""
        if space == "shared":  # most accesses: without a call
            return self.frame.group
        return copy_of(self.batch.memory.owners.get(space), self.frame, self.batch.frame.shape)

    def _show_address(self, address: Array, flat: Array, multiple: int, size: int, mask: Array | None) -> None:
        for observe in self.observers.address:
            observe(self, address, flat, multiple, size, mask)

    def _out_of_bounds(
        self, space: str, address: Array, size: int, kind: AccessKind, mask: Array | None, region: Region | None
    ) -> NoReturn:
        for observe in self.observers.out_of_bounds:
            observe(self, space, address, size, kind, mask, region)
        raise LaunchStopped

    def _global(self, address: Array, size: int, kind: AccessKind, mask: Array | None, alignment: int | None) -> list[Piece]:
        if mask is None:
            flat, lanes = address, None
        else:
            lanes = np.broadcast_to(mask, self.frame.shape)
            flat = np.broadcast_to(address, self.frame.shape)[lanes]
            if not flat.size:
                return []
        self._show_address(address, flat, alignment or size, size, mask)
        region = self.launch.memory.allocations.find(int(flat.flat[0]))
        if region is not None and self._extent(region, kind) >= size:
            # One comparison does both ends: an address below the base wraps to a huge offset.
            offset = flat - np.uint64(region.base)
            if int(offset.max()) <= self._extent(region, kind) - size:
                self._check_writable(region, kind, address, mask)
                return [Piece(region, offset.view(np.int64), lanes)]
        return self._several(address, size, kind, mask)

    def _extent(self, region: Region, kind: AccessKind) -> int:
        """How far accesses may reach. An atomic on 16 bits goes to the aligned word around them where a chip has no narrower one
        (as LLVM's AtomicExpand has it), and no two allocations share a word: drivers align to 256 bytes at least. So does a load
        of all copies of such a float."""
        return region.size + -region.size % _WORD if kind == "atomic" or self.by_words else region.size

    def _check_writable(self, region: Region, kind: AccessKind, address: Array, mask: Array | None) -> None:
        if region.readonly and kind != "read":
            for observe in self.observers.write_to_readonly:
                observe(self, region, address, mask)
            raise LaunchStopped

    def _several(self, address: Array, size: int, kind: AccessKind, mask: Array | None) -> list[Piece]:
        """Lanes of one access in several allocations."""
        full = np.broadcast_to(address, self.frame.shape)
        open_lanes = np.ones(self.frame.shape, dtype=np.bool_) if mask is None else np.broadcast_to(mask, self.frame.shape).copy()
        found: list[Piece] = []
        while open_lanes.any():
            first = full[open_lanes][0]
            region = self.launch.memory.allocations.find(int(first))
            offset = full - np.uint64(region.base if region is not None else 0)
            extent = 0 if region is None else self._extent(region, kind)
            inside = open_lanes & (offset <= np.uint64(max(0, extent - size))) if region is not None else open_lanes
            if region is None or extent < size or not inside.any() or not inside.flat[np.argmax(open_lanes)]:
                self._out_of_bounds("global", address, size, kind, mask, region)
            assert region is not None
            self._check_writable(region, kind, address, mask)
            found.append(Piece(region, offset[inside].view(np.int64), inside))
            open_lanes &= ~inside
        return found

    def _generic(self, address: Array, size: int, kind: AccessKind, mask: Array | None, alignment: int | None) -> list[Piece]:
        found: list[Piece] = []
        elsewhere = np.zeros((1, 1, 1), dtype=np.bool_)
        for window, (base, extent) in self.launch.chip.windows.items():
            space = "cluster" if window == "shared" and self.launch.geometry.cluster_workgroups > 1 else window
            inside = (address - np.uint64(base)) < np.uint64(extent)
            if not inside.any():
                continue
            elsewhere = elsewhere | inside
            if inside.all():
                return self.pieces(space, address - np.uint64(base), size, kind, mask, alignment)
            lanes = inside if mask is None else inside & mask
            if np.any(lanes):
                found += self.pieces(space, address - np.uint64(base), size, kind, lanes, alignment)
        if not elsewhere.any():
            return self._global(address, size, kind, mask, alignment)
        rest = ~elsewhere if mask is None else ~elsewhere & mask
        return found + (self._global(address, size, kind, rest, alignment) if np.any(rest) else [])

    @contextmanager
    def narrowed(self, where: Array | None) -> Iterator[None]:
        """Only lanes in which the predicate holds act meanwhile."""
        mask = self.mask
        if where is not None and not where.all():
            self.mask = where if mask is None else mask & where
        try:
            yield
        finally:
            self.mask = mask

    # --- loads and stores --------------------------------------------------------------------------------------------

    def load(
        self, space: str, address: Array, bits: int, count: int = 1, *, order: str = "weak", scope: str = "workgroup",
        lanes: int | None = None, alignment: int | None = None, where: Array | None = None,
    ) -> tuple[Array, ...]:
        if where is not None:
            with self.narrowed(where):
                return self.load(space, address, bits, count, order=order, scope=scope, lanes=lanes, alignment=alignment)
        size = bits * count // 8
        mask = self._first_lanes(lanes)
        pieces = self.pieces(space, address, size, "read", mask, alignment)
        if not self.quiet:
            self._before(space, pieces, size, "read", order, scope)
        if len(pieces) == 1 and pieces[0].lanes is None:
            raw = gather(pieces[0].region, pieces[0].index, size)
        else:
            raw = np.zeros(self.frame.shape, dtype=ELEMENTS[size])
            for piece in pieces:
                raw[piece.lanes] = gather(piece.region, piece.index, size)
        if order != "weak" and not self.quiet:
            self.polls += 1
            if self.polled_loads.again(self.instruction, pieces, raw):
                self._polled_in_vain(pieces, size)
        if self.observers.loaded and not self.quiet:
            raw = np.array(np.broadcast_to(raw, self.frame.shape))
            for observe in self.observers.loaded:
                observe(self, Access(space, pieces, size, "read", order, scope), raw)
        if not self.quiet and self.observers.follows_undefined and self._any_poison(pieces, size):
            self.tainted = True
        elif order != "weak":
            self._after(space, pieces, size, "read", order, scope)
        return _elements(raw, bits, count)

    def _first_lanes(self, lanes: int | None) -> Array | None:
        if lanes is None or lanes >= self.wave_size:
            return self.mask
        first = self.frame.lane < lanes
        return first if self.mask is None else first & self.mask

    def _any_poison(self, pieces: list[Piece], size: int) -> bool:
        return any(
            p.region.poison is not None and bool(gather_poison(p.region, p.index, size).any()) for p in pieces
        )

    def load_poison(
        self, space: str, address: Array, bits: int, count: int, lanes: int | None, alignment: int | None
    ) -> tuple[Array, ...]:
        """The poison of what `load` gives; lanes that did not load are wholly poison when `lanes` left them out."""
        size = bits * count // 8
        raw = np.zeros(self.frame.shape, dtype=ELEMENTS[size])
        for piece in self.pieces(space, address, size, "read", self._first_lanes(lanes), alignment):
            if piece.region.poison is None:
                continue
            taken = gather_poison(piece.region, piece.index, size)
            if piece.lanes is None:
                raw[...] = taken
            else:
                raw[piece.lanes] = taken
        return _elements(raw, bits, count)

    def store(
        self, space: str, address: Array, values: Sequence[Array], *, order: str = "weak", scope: str = "workgroup",
        alignment: int | None = None, where: Array | None = None,
    ) -> None:
        with self.narrowed(where):
            self.store_poisoned(space, address, values, None, order, scope, alignment)

    def store_poisoned(
        self, space: str, address: Array, values: Sequence[Array], poison: Sequence[Array] | None, order: str, scope: str,
        alignment: int | None,
    ) -> None:
        """`store`, with undefined bits beside the values."""
        raw = _packed(values)
        size = raw.dtype.itemsize
        pieces = self.pieces(space, address, size, "write", self.mask, alignment)
        self._before(space, pieces, size, "write", order, scope, raw)
        raw_poison = None if poison is None else _packed(poison)
        for piece in pieces:
            self.stores += piece.region.base != 0
            self._write(piece, raw, raw_poison, size)
        for observe in self.observers.stored:
            observe(self, Access(space, pieces, size, "write", order, scope))
        if order != "weak":
            self._after(space, pieces, size, "write", order, scope)

    def _write(self, piece: Piece, raw: Array, poison: Array | None, size: int) -> None:
        region = piece.region
        if self.launch.memory.reservations is not None and region.base:  # of global memory
            self.launch.memory.reservations.end(region.base, piece.index, size)
        index, values = self._matched(piece, raw)
        scatter(region.data, region.view(size), index, values, size)
        if poison is None:
            if region.poison is not None:
                scatter(region.poison, region.poison_view(size), index, np.zeros((1,), dtype=ELEMENTS[size]), size)
            return
        if region.poison is None:
            if not poison.view(np.uint8).any():
                return
            region.poison = np.zeros(len(region.data), dtype=np.uint8)
        index, marks = self._matched(piece, poison)  # lanes may agree in one of values and marks
        scatter(region.poison, region.poison_view(size), index, marks, size)

    def _matched(self, piece: Piece, raw: Array) -> tuple[Array, Array]:
        """Offsets and values of the same lanes, in ascending order of lanes."""
        if piece.lanes is not None:
            return piece.index, np.broadcast_to(raw, self.frame.shape)[piece.lanes]
        if piece.index.shape == raw.shape:
            return piece.index, raw
        index, values = np.broadcast_arrays(piece.index, raw)
        return index, values

    def _before(
        self, space: str, pieces: list[Piece], size: int, kind: AccessKind, order: str, scope: str, raw: Array | None = None,
        element: int = 0,
    ) -> None:
        """Count the access and show it to the checks that watch memory."""
        for piece in pieces:
            count = self.frame.threads if piece.lanes is None else piece.index.size
            self.counters.access(space, kind, size, count)
        observers = self.observers
        if observers.access:
            access = Access(space, pieces, size, kind, order, scope, raw, element=element)
            for observe in observers.access:
                observe(self, access)
        if observers.access_in_flight and (self.batch.copies.outstanding or self.batch.engines.outstanding):
            access = Access(space, pieces, size, kind, order, scope, raw)
            for observe in observers.access_in_flight:
                observe(self, access)

    def _after(self, space: str, pieces: list[Piece], size: int, kind: AccessKind, order: str, scope: str) -> None:
        """Show an access that is more than weak once it has happened."""
        for observe in self.observers.accessed:
            observe(self, Access(space, pieces, size, kind, order, scope))

    def report_undefined(self, what: str, bad: Array) -> None:
        """Undefined bits decide something that cannot be taken back: `what`, in lanes `bad`."""
        for observe in self.observers.undefined:
            observe(self, what, bad)

    def report_wrapped(
        self, space: str, address: Array, integers: Array, size: int, kind: AccessKind, bad: Array
    ) -> None:
        """Lanes `bad` make an access elsewhere than at the integers that are meant."""
        for observe in self.observers.wrapped:
            observe(self, space, address, integers, size, kind, bad)

    # --- atomics -----------------------------------------------------------------------------------------------------

    def atomic(
        self, space: str, address: Array, op: str, operands: Sequence[Array], fmt: str = "", *, order: str = "relaxed",
        scope: str = "device", where: Array | None = None, ftz: bool = False,
    ) -> Array:
        if where is not None:
            with self.narrowed(where):
                return self.atomic(space, address, op, operands, fmt, order=order, scope=scope, ftz=ftz)
        size = operands[0].dtype.itemsize
        # Every lane acts for itself, also where address and operands are uniform.
        mask = np.ones((1, 1, 1), dtype=np.bool_) if self.mask is None else self.mask
        pieces = self.pieces(space, address, size, "atomic", np.broadcast_to(mask, self.frame.shape))
        old = np.zeros(self.frame.shape, dtype=operands[0].dtype)
        if (random := self.launch.schedule.random) is not None:
            for piece in pieces:
                piece.turns = random.permutation(len(piece.index))
        self._before(space, pieces, size, "atomic", order, scope, element=size // 2 if fmt.endswith("x2") else size)
        changed = False
        for piece in pieces:
            self._check_atomic_poison(piece, size)
            if self.launch.memory.reservations is not None and piece.region.base:
                self.launch.memory.reservations.end(piece.region.base, piece.index, size)
            values = [np.broadcast_to(v, self.frame.shape)[piece.lanes] for v in operands]
            old[piece.lanes], altered = perform(piece.region, piece.index, size, op, values, fmt, piece.turns, ftz)
            changed = changed or altered
        self.polls += 1
        if changed:
            self.idle_polls = 0
        else:
            self._polled_in_vain(pieces, size)
        self._after(space, pieces, size, "atomic", order, scope)
        self.counters.add("atomics", sum(p.index.size for p in pieces))
        return old

    def _polled_in_vain(self, pieces: list[Piece], size: int) -> None:
        self.idle_polls += 1
        poll = Poll(self.instruction, self.frame, pieces, size)
        self.vain_polls[poll.key] = poll

    def load_reserved(
        self, space: str, address: Array, bits: int, *, order: str = "relaxed", scope: str = "device"
    ) -> Array:
        (value,) = self.load(space, address, bits, order=order, scope=scope)
        memory, lanes = self.launch.memory, self.acting_lanes()
        if memory.reservations is None:
            geometry = self.launch.geometry
            memory.reservations = Reservations(geometry.workgroups * geometry.waves * geometry.wave_size)
        memory.reservations.begin(self._threads()[lanes], np.broadcast_to(address, self.frame.shape)[lanes])
        return value

    def store_conditional(
        self, space: str, address: Array, value: Array, *, order: str = "relaxed", scope: str = "device"
    ) -> Array:
        stored = np.zeros(self.frame.shape, dtype=np.bool_)
        held, lanes = self.launch.memory.reservations, self.acting_lanes()
        if held is not None:
            places = np.broadcast_to(address, self.frame.shape)[lanes]
            stored[lanes] = held.take(self._threads()[lanes], places, self.launch.schedule.random)
        if stored.any():
            with self.narrowed(stored):
                self.atomic(space, address, "exchange", [value], order=order, scope=scope)
        else:
            self.polls += 1
            self.idle_polls += 1
        return stored

    def acting_lanes(self) -> Array:
        return np.broadcast_to(np.True_ if self.mask is None else self.mask, self.frame.shape)

    def _threads(self) -> Array:
        """A number for each lane that no other of the launch has."""
        waves, lanes = self.batch.frame.shape[1:]
        workgroup = self.batch.workgroups[self.frame.group]
        return np.broadcast_to((workgroup * waves + self.frame.wave) * lanes + self.frame.lane, self.frame.shape)

    def _check_atomic_poison(self, piece: Piece, size: int) -> None:
        region = piece.region
        if region.poison is None or not self.observers.follows_undefined:
            return
        bad = gather_poison(region, piece.index, size)
        if bad.view(np.uint8).any():
            for observe in self.observers.undefined_memory:
                observe(self, piece, bad)
            scatter(region.poison, region.poison_view(size), piece.index, np.zeros((1,), dtype=ELEMENTS[size]), size)

    def fence(self, order: str = "acq_rel", scope: str = "device") -> None:
        for observe in self.observers.fence:
            observe(self, order, scope)

    # --- generic addresses -------------------------------------------------------------------------------------------

    def to_generic(self, address: Array, space: str) -> Array:
        base, _ = self.launch.chip.windows.get(space, (0, 0))
        return address.astype(np.uint64) + np.uint64(base)

    def from_generic(self, address: Array, space: str, bits: int = 64) -> Array:
        base, _ = self.launch.chip.windows.get(space, (0, 0))
        return (address.astype(np.uint64) - np.uint64(base)).astype(UNSIGNED[bits])

    def is_space(self, address: Array, space: str) -> Array:
        windows = self.launch.chip.windows
        if space in windows:
            base, extent = windows[space]
            return (address - np.uint64(base)) < np.uint64(extent)
        result = np.ones((1, 1, 1), dtype=np.bool_)
        for base, extent in windows.values():
            result = result & ~((address - np.uint64(base)) < np.uint64(extent))
        return result


def _elements(raw: Array, bits: int, count: int) -> tuple[Array, ...]:
    """The elements of wide words, lowest first."""
    if count == 1:
        return (raw,)
    parts = np.ascontiguousarray(raw)[..., None].view(ELEMENTS[bits // 8])
    return tuple(parts[..., i] for i in range(count))


def _packed(values: Sequence[Array]) -> Array:
    """Elements side by side as one wide word."""
    if len(values) == 1:
        return values[0]
    shape = np.broadcast_shapes(*(v.shape for v in values))
    stacked = np.empty((*shape, len(values)), dtype=values[0].dtype)
    for i, value in enumerate(values):
        stacked[..., i] = value
    return stacked.view(ELEMENTS[values[0].dtype.itemsize * len(values)])[..., 0]
