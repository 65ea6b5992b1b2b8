"""Copy engines of the lane algebra: copies started, committed to groups, waited for; see `EnginePrimitives` for their meaning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tilefw.sim.algebra.boxes import Box, BoxShape, places
from tilefw.sim.algebra.cluster import OFFSETS, ClusterLanes
from tilefw.sim.algebra.pixels import PixelShape, within
from tilefw.sim.engine.engines import landed
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Piece
from tilefw.sim.memory.counting_barriers import BYTES, BarrierWords
from tilefw.sim.memory.engine_copies import EngineCopy
from tilefw.sim.memory.reductions import Reduction
from tilefw.sim.memory.regions import Region, gather
from tilefw.sim.report import LaunchStopped, first_true

_MOST_EXTENT, _MOST_STEP, _MOST_SWIZZLE, _MOST_PIXELS = 256, 8, 3, 1024
_SHARED_ALIGNMENT = 128


class EngineLanes(ClusterLanes):
    """Starts copies by engines, and shows checks what they will read and write."""

    def engine_copy(
        self, destination_space: str, destination: Array, source_space: str, source: Array, size: Array, *,
        barrier: Array | None = None, barrier_space: str = "shared", reduction: Reduction | None = None,
        multicast: Array | None = None,
    ) -> None:
        acting = self.acting_lanes()
        sizes = np.broadcast_to(size, self.frame.shape)
        for amount in np.unique(sizes[acting]).tolist():
            lanes = acting & (sizes == amount)
            self._good(lanes, np.full(self.frame.shape, amount % 16 == 0), f"{amount} bytes are not a multiple of 16")
            if not amount:
                continue
            for part in self.pieces(source_space, source, amount, "read", lanes, 16):
                assert part.lanes is not None
                places = part.index[:, None] + np.arange(0, amount, 16)
                self._to(
                    destination_space, destination, part, places, amount, barrier, barrier_space, reduction, multicast,
                )

    def _to(
        self, space: str, destination: Array, source: Piece, source_index: Array, amount: int, barrier: Array | None,
        barrier_space: str, reduction: Reduction | None, multicast: Array | None,
    ) -> None:
        """A plain copy from one region, to as many as there are."""
        rows = np.arange(len(source.index))
        assert source.lanes is not None
        numbers = np.zeros(self.frame.shape, dtype=np.int64)
        numbers[source.lanes] = rows
        for part in self.pieces(space, destination, amount, "write", source.lanes, 16):
            assert part.lanes is not None
            chosen = numbers[part.lanes]
            size = 16 if reduction is None else reduction.bytes
            step = np.arange(0, amount, size)
            index = source.index[chosen][:, None] + step
            self._start(
                part.lanes, source.region, index if reduction else source_index[chosen], part.region, part.index[:, None] + step,
                size, np.full(len(chosen), amount), None, False, 0, self._barrier_of(barrier_space, barrier, part.lanes),
                reduction, multicast,
            )

    def engine_box(
        self, box: Box, shared_space: str, shared: Array, coordinates: Sequence[Array], *, store: bool,
        barrier: Array | None = None, barrier_space: str = "shared", reduction: Reduction | None = None,
        multicast: Array | None = None, where: Array | None = None,
    ) -> None:
        acting = self.acting_lanes() if where is None else self.acting_lanes() & where
        if not acting.any():
            return

        def rows(values: Sequence[Array]) -> Array:
            return np.stack([np.broadcast_to(v, self.frame.shape)[acting].astype(np.int64) for v in values], axis=1)

        rank = len(coordinates)
        listing = box.pixels.values if box.pixels else ()
        facts = rows([*box.extents, *box.steps, box.element_bytes, box.swizzle, box.fill, *listing])
        starts = rows([c.astype(np.uint32).view(np.int32) for c in coordinates])
        sizes, strides = rows(box.sizes), rows([box.element_bytes, *box.strides])
        lanes_of = np.flatnonzero(acting)
        for fact in np.unique(facts, axis=0):
            chosen = (facts == fact).all(axis=1)
            lanes = np.zeros(self.frame.shape, dtype=np.bool_)
            lanes.reshape(-1)[lanes_of[chosen]] = True
            numbers = fact.tolist()
            extents, steps, (element_bytes, swizzle, fill, *listed) = numbers[:rank], numbers[rank : 2 * rank], numbers[2 * rank :]
            pixels = PixelShape.of(listed) if listed else None
            shape = BoxShape(tuple(extents), tuple(steps), element_bytes, swizzle, fill, pixels)
            self._check_box(box, shape, lanes, strides[chosen])
            if pixels is not None:
                self._check_pixels(pixels, lanes, sizes[chosen], starts[chosen])
            if store:
                self._check_stored(pixels, lanes, starts[chosen])
            self._box(
                box, shape, lanes, shared_space, shared, sizes[chosen], strides[chosen], starts[chosen], store, barrier,
                barrier_space, reduction, multicast,
            )

    def _check_box(self, box: Box, shape: BoxShape, lanes: Array, strides: Array) -> None:
        """What the description of a box must keep to: see the manual of the chip."""
        everywhere = np.ones(self.frame.shape, dtype=np.bool_)
        fields = (
            (all(1 <= n <= _MOST_STEP for n in shape.steps), f"a box takes every element, up to every {_MOST_STEP}th"),
            (shape.swizzle <= _MOST_SWIZZLE, f"a swizzle permutes by 0 to {_MOST_SWIZZLE} bits, not by {shape.swizzle}"),
            (shape.fill <= 1, f"what lies outside is filled with zeros (0) or NaN (1), not with {shape.fill}"),
        )
        for good, message in fields:
            self._good(lanes, everywhere & good, message)
        rules = (
            (all(1 <= n <= _MOST_EXTENT for n in shape.extents), f"a box has 1 to {_MOST_EXTENT} elements along a dimension"),
            (shape.counts[0] * shape.element_bytes % 16 == 0, "the rows of a box are a multiple of 16 bytes"),
            (
                not shape.swizzle or shape.counts[0] * shape.element_bytes <= 16 << shape.swizzle,
                f"the rows of a box are at most the {16 << shape.swizzle} bytes that its swizzle permutes",
            ),
            (not (strides[:, 1:] % 16).any(), "the strides of an array are multiples of 16 bytes"),
        )
        for good, message in rules:
            self._good(lanes, everywhere & good, f"{message}; this one has {shape.extents} of {shape.element_bytes} bytes")
        base = np.broadcast_to(box.base, self.frame.shape)
        self._good(lanes, base % np.uint64(16) == 0, "an array that an engine copies begins at a multiple of 16 bytes")

    def _check_pixels(self, pixels: PixelShape, lanes: Array, sizes: Array, starts: Array) -> None:
        """What the description of a list of pixels must keep to."""
        everywhere = np.ones(self.frame.shape, dtype=np.bool_)
        few = f"a list has 1 to {_MOST_PIXELS} pixels, not {pixels.count}"
        self._good(lanes, everywhere & (1 <= pixels.count <= _MOST_PIXELS), few)
        good = everywhere.copy()
        good[lanes] = within(pixels, sizes, starts)
        window = f"of corners {pixels.lower} and {pixels.upper}"
        self._good(lanes, good, f"the first pixel of a list lies outside of the window {window} of its image")

    def _check_stored(self, pixels: PixelShape | None, lanes: Array, starts: Array) -> None:
        """What engines ask of a copy to an array: see the manual of the chip ("Restriction on Tensor Copy instructions")."""
        everywhere = np.ones(self.frame.shape, dtype=np.bool_)
        good = everywhere.copy()
        good[lanes] = (starts >= 0).all(axis=1)
        self._good(lanes, good, "what an engine stores begins at coordinates that are 0 or more")
        if pixels is not None:
            inside = all(n >= 0 for n in pixels.lower) and all(n <= 0 for n in pixels.upper)
            window = f"of corners {pixels.lower} and {pixels.upper}"
            self._good(lanes, everywhere & inside, f"the window {window} of pixels that an engine stores goes beyond its image")

    def _box(
        self, box: Box, shape: BoxShape, lanes: Array, shared_space: str, shared: Array, sizes: Array, strides: Array,
        starts: Array, store: bool, barrier: Array | None, barrier_space: str, reduction: Reduction | None, multicast: Array | None,
    ) -> None:
        memory = self.batch.memory.region("shared")
        address = np.broadcast_to(shared, self.frame.shape).astype(np.int64) & OFFSETS
        self._good(lanes, address % _SHARED_ALIGNMENT == 0, f"a box in shared memory begins at a multiple of {_SHARED_ALIGNMENT}")
        line = 16 << shape.swizzle  # within which the swizzle moves pieces
        whole_lines, kind = -(-shape.bytes // line) * line, "read" if store else "write"
        (whole,) = self.pieces(shared_space, shared, whole_lines, kind, lanes, _SHARED_ALIGNMENT)
        found = places(shape, sizes, strides, starts, address[lanes], reduction is not None)
        own = (whole.index - address[lanes])[:, None] + found.shared
        bases = np.broadcast_to(box.base, self.frame.shape)[lanes]
        at = np.flatnonzero(lanes)
        for region, rows in self._arrays(bases, lanes):
            index = found.array[rows] + (bases[rows].view(np.int64) - region.base)[:, None]
            inside = None if found.inside is None else found.inside[rows]
            mask = np.zeros(self.frame.shape, dtype=np.bool_)
            mask.reshape(-1)[at[rows]] = True
            self._within(region, index, inside, found.unit, mask, store)
            here, there = (own[rows], index) if store else (index, own[rows])
            fill = _not_a_number(shape.element_bytes, found.unit) if shape.fill else 0
            source, destination = (memory, region) if store else (region, memory)
            self._start(
                mask, source, here, destination, there, found.unit, np.full(len(here), shape.bytes), inside, not store, fill,
                self._barrier_of(barrier_space, barrier, mask), reduction, multicast,
            )

    def _arrays(self, bases: Array, lanes: Array) -> Iterator[tuple[Region, Array]]:
        """The regions in which arrays begin, each with the rows whose array does."""
        found: dict[int, tuple[Region, list[int]]] = {}
        for row, base in enumerate(bases.tolist()):
            region = self.launch.memory.allocations.find(base)
            if region is None:
                self._out_of_bounds("global", np.full(self.frame.shape, base, dtype=np.uint64), 16, "read", lanes, None)
            found.setdefault(id(region), (region, []))[1].append(row)
        for region, rows in found.values():
            yield region, np.array(rows)

    def _within(self, region: Region, index: Array, inside: Array | None, unit: int, mask: Array, store: bool) -> None:
        """All elements of the array that a box takes lie in the allocation in which it begins."""
        bad = (index < 0) | (index > region.size - unit)
        if inside is not None:
            bad &= inside
        kind = "write" if store else "read"
        if bad.any():
            row = int(np.argmax(bad.any(axis=1)))
            wrong = region.base + int(index[row][bad[row]][0])
            self._out_of_bounds("global", np.full(self.frame.shape, wrong, dtype=np.uint64), unit, kind, mask, region)
        self._check_writable(region, kind, np.full(self.frame.shape, region.base, dtype=np.uint64), mask)

    def _barrier_of(self, space: str, barrier: Array | None, lanes: Array) -> Piece | None:
        if barrier is None:
            return None
        (piece,) = self.pieces(space, barrier, BYTES, "atomic", lanes)
        self._require(
            piece, BarrierWords.of(gather(piece.region, piece.index, BYTES)).made,
            "there is no barrier here for the copy to complete on: it was not made yet, or has been ended",
        )
        self._show_use(piece)
        return piece

    def _start(
        self, lanes: Array, source: Region, source_index: Array, destination: Region, destination_index: Array, size: int,
        amounts: Array, inside: Array | None, filling: bool, fill: int, barrier: Piece | None, reduction: Reduction | None,
        multicast: Array | None,
    ) -> None:
        batch = self.batch
        threads = batch.copies.threads(self.frame, lanes)
        _, waves, width = batch.frame.shape
        copy = EngineCopy(
            self.instruction, threads, batch.engines.group(threads),
            batch.clocks[threads // (waves * width), threads // width % batch.clocks.shape[1]].copy(), size, source, source_index,
            destination, destination_index, amounts, inside, filling, fill, None if barrier is None else barrier.region,
            None if barrier is None else barrier.index, reduction,
        )
        self.counters.add("engine_bytes", int(amounts.sum()))
        for one in [copy] if multicast is None else self.multicast(copy, np.broadcast_to(multicast, self.frame.shape)[lanes]):
            for observe in self.observers.engine_started:
                observe(self, one)
            batch.engines.start(one)

    def _good(self, lanes: Array, good: Array, message: str) -> None:
        bad = lanes & ~good
        if not bad.any():
            return
        self.launch.diagnostics.reporter.add(
            "bounds", "TFW0825", message, self.instruction, count=int(bad.sum()), where=self.locate(*first_true(bad))
        )
        raise LaunchStopped

    # --- groups ------------------------------------------------------------------------------------------------------------

    def engine_commit(self) -> None:
        self.batch.engines.commit(self.batch.copies.threads(self.frame, self.mask))

    def engine_wait(self, pending: int, reads: bool) -> None:
        engines = self.batch.engines
        if not engines.outstanding:
            return
        threads = self.batch.copies.threads(self.frame, self.mask)
        if reads:
            engines.read_up_to(threads, pending)
            return
        landed(self.batch, engines.finish_up_to(threads, pending, self.launch.schedule.random))

    def barrier_arrive_behind_copies(self, space: str, address: Array, count: bool) -> None:
        """The arrival comes at once, and so do the copies: the earliest moment that there is, as waits for them may come first."""
        self.wait_group(-1)
        if not count:
            self.barrier_arrive(space, address, self.const(1, 32))
        elif (piece := self._barriers(space, address, "atomic")) is not None:
            self._made(piece)

    def descriptor(self, address: Array, event: str) -> None:
        acting = self.acting_lanes()
        for observe in self.observers.descriptor if acting.any() else ():
            groups = np.broadcast_to(self.frame.group, self.frame.shape)[acting]
            places = np.broadcast_to(address, self.frame.shape)[acting]
            observe(self, set(zip(groups.tolist(), places.tolist(), strict=True)), event)

    def view_fence(self) -> None:
        for observe in self.observers.view_fence:
            observe(self)


def _not_a_number(element: int, unit: int) -> int:
    """A unit of elements with every bit but the sign: NaN in each format."""
    one = ((1 << (8 * element - 1)) - 1).to_bytes(element, "little")
    return int.from_bytes(one * (unit // element), "little")
