"""Barriers that count, of the lane algebra: made, arrived at and asked; see `EnginePrimitives` for their meaning."""

from __future__ import annotations

import numpy as np

from tilefw.sim.algebra.copying import CopyingLanes
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Piece
from tilefw.sim.memory.counting_barriers import BYTES, MOST_ARRIVALS, MOST_BYTES, BarrierWords, described
from tilefw.sim.memory.regions import Region, gather, scatter
from tilefw.sim.report import LaunchStopped, first_true


class CountingLanes(CopyingLanes):
    """Changes barriers lane after lane, and shows checks who has arrived and who has passed."""

    def barrier_begin(self, space: str, address: Array, count: Array) -> None:
        piece = self._barriers(space, address, "write")
        if piece is None:
            return
        wanted = np.broadcast_to(count, self.frame.shape)[piece.lanes].astype(np.int64)
        self._require(piece, (wanted >= 1) & (wanted <= MOST_ARRIVALS), f"a barrier wants 1 to {MOST_ARRIVALS} arrivals a phase")
        self._show_barrier(space, piece, "write", "weak", "workgroup")
        for observe in self.observers.barrier_made:
            observe(self, piece)
        self._put(piece.region, piece.index, BarrierWords.begun(wanted).words())
        self.batch.barrier_waits.made(piece.index)

    def barrier_end(self, space: str, address: Array) -> None:
        piece = self._barriers(space, address, "write")
        if piece is None:
            return
        self._made(piece)
        self._show_barrier(space, piece, "write", "weak", "workgroup")
        self._put(piece.region, piece.index, np.zeros(len(piece.index), dtype=np.uint64))

    def barrier_arrive(
        self, space: str, address: Array, count: Array, *, expect: Array | None = None, drop: bool = False,
        order: str = "release", scope: str = "workgroup",
    ) -> Array:
        states = np.zeros(self.frame.shape, dtype=np.uint64)
        piece = self._barriers(space, address, "atomic")
        if piece is None:
            return states
        counts = np.broadcast_to(count, self.frame.shape)[piece.lanes].astype(np.int64)
        announced = None if expect is None else np.broadcast_to(expect, self.frame.shape)[piece.lanes].astype(np.int64)
        self._require(piece, counts >= 1, "an arrival counts at least one")
        self._show_barrier(space, piece, "atomic", order, scope)
        states[piece.lanes] = self._changed(piece, counts, announced, drop)
        self._after(space, [piece], BYTES, "atomic", order, scope)
        return states

    def barrier_expect(self, space: str, address: Array, count: Array) -> None:
        self._bytes(space, address, count, 1)

    def barrier_deliver(self, space: str, address: Array, count: Array, *, order: str = "relaxed") -> None:
        self._bytes(space, address, count, -1, order)

    def _bytes(self, space: str, address: Array, count: Array, sign: int, order: str = "relaxed") -> None:
        piece = self._barriers(space, address, "atomic")
        if piece is None:
            return
        amount = sign * np.broadcast_to(count, self.frame.shape)[piece.lanes].astype(np.int64)
        self._show_barrier(space, piece, "atomic", order, "cluster")
        self._changed(piece, np.zeros_like(amount), amount, False)
        self._after(space, [piece], BYTES, "atomic", order, "cluster")

    def barrier_passed(
        self, space: str, address: Array, phase: Array, by: str, *, order: str = "acquire", scope: str = "workgroup"
    ) -> Array:
        passed = np.zeros(self.frame.shape, dtype=np.bool_)
        piece = self._barriers(space, address, "read")
        if piece is None:
            return passed
        self._made(piece)
        self._show_use(piece)
        self._show_barrier(space, piece, "read", "relaxed", scope)
        wanted = np.broadcast_to(phase, self.frame.shape)[piece.lanes]
        named = BarrierWords.of(wanted).phase if by == "state" else wanted.astype(np.int64)
        self._require(piece, named <= 1, "a parity is 0 or 1")
        over = BarrierWords.of(gather(piece.region, piece.index, BYTES)).phase != named
        passed[piece.lanes] = over
        overrun = self.batch.barrier_waits.waits(self.batch.copies.threads(self.frame, piece.lanes), piece.index, over)
        self._require(
            piece, overrun == 0, "a barrier has ended the phase that this wait is for and another one, and the wait goes on: "
            "whoever arrives must know that the waiting threads have passed",
        )
        if order != "relaxed" and over.any():
            assert piece.lanes is not None
            through = piece.lanes.copy()
            through[piece.lanes] = over
            for observe in self.observers.barrier_passed:
                observe(self, Piece(piece.region, piece.index[over], through))
        if not over.all():
            asked = self.batch.asked.setdefault(self.instruction.index, [])
            asked.append(Piece(piece.region, piece.index[~over], None))
        return passed

    def barrier_wanted(self, state: Array) -> Array:
        return BarrierWords.of(state).pending.astype(np.uint32)

    # --- parts -------------------------------------------------------------------------------------------------------------

    def _barriers(self, space: str, address: Array, kind: str) -> Piece | None:
        """Where the barriers of the acting lanes are, None where no lane acts."""
        mask = self.acting_lanes()
        if not mask.any():
            return None
        pieces = self.pieces(space, address, BYTES, kind, mask)  # type: ignore[arg-type]
        if len(pieces) > 1 or pieces[0].region is not self.batch.memory.region("shared"):
            self.trap("a barrier that counts lies in shared memory, and this address does not")
        return pieces[0]

    def _show_barrier(self, space: str, piece: Piece, kind: str, order: str, scope: str) -> None:
        self._before(space, [piece], BYTES, kind, order, scope)  # type: ignore[arg-type]

    def _show_use(self, piece: Piece) -> None:
        for observe in self.observers.barrier_used:
            observe(self, piece)

    def _put(self, region: Region, index: Array, words: Array) -> None:
        scatter(region.data, region.view(BYTES), index, words, BYTES)
        if region.poison is not None:
            scatter(region.poison, region.poison_view(BYTES), index, np.zeros(1, dtype=np.uint64), BYTES)
        self.batch.barriers_changed = True

    def _require(self, piece: Piece, good: Array, message: str) -> None:
        if good.all():
            return
        assert piece.lanes is not None
        bad = piece.lanes.copy()
        bad[piece.lanes] = ~good
        self.launch.diagnostics.reporter.add(
            "barriers", "TFW0824", message, self.instruction, count=int((~good).sum()), where=self.locate(*first_true(bad)),
            address=int(piece.index[~good][0]) % max(1, piece.region.stride),
        )
        raise LaunchStopped

    def _made(self, piece: Piece) -> None:
        made = BarrierWords.of(gather(piece.region, piece.index, BYTES)).made
        self._require(piece, made, "there is no barrier here: it was not made yet, or has been ended")

    def _changed(self, piece: Piece, counts: Array, announced: Array | None, drop: bool) -> Array:
        """Arrivals and bytes of each lane, one lane after the other; gives the words that each found."""
        self._made(piece)
        self._show_use(piece)
        places, of = np.unique(piece.index, return_inverse=True)
        of = of.reshape(-1)
        words = gather(piece.region, places, BYTES)
        parts = BarrierWords.of(words)
        arrivals = np.bincount(of, counts, len(places)).astype(np.int64)
        amounts = np.zeros_like(arrivals) if announced is None else np.bincount(of, announced, len(places)).astype(np.int64)
        if (arrivals <= parts.pending).all():
            found = words[of] - _earlier(counts, of, arrivals).astype(np.uint64)  # arrivals are the lowest bits of a word
            parts.bytes, parts.pending = parts.bytes + amounts, parts.pending - arrivals
            if drop:
                parts.expected = parts.expected - arrivals
            self._in_range(piece, (np.abs(parts.bytes) <= MOST_BYTES)[of], parts, of)
            self.batch.barrier_waits.advanced(places, parts.advance())
            self._put(piece.region, places, parts.words())
            return found
        found = np.empty(len(counts), dtype=np.uint64)
        for lane in range(len(counts)):
            one = np.array([piece.index[lane]])
            found[lane] = gather(piece.region, one, BYTES)[0]
            part = BarrierWords.of(found[lane : lane + 1])
            part.bytes = part.bytes + (0 if announced is None else announced[lane])
            good = (part.pending >= counts[lane]) & (np.abs(part.bytes) <= MOST_BYTES)
            self._in_range(piece, np.broadcast_to(good, counts.shape), part, np.zeros_like(of))
            part.pending = part.pending - counts[lane]
            part.expected = part.expected - counts[lane] if drop else part.expected
            self.batch.barrier_waits.advanced(one, part.advance())
            self._put(piece.region, one, part.words())
        return found

    def _in_range(self, piece: Piece, good: Array, parts: BarrierWords, of: Array) -> None:
        if good.all():
            return
        word = int(parts.words()[of[int(np.argmin(good))]])
        self._require(
            piece, good, f"more arrivals or bytes than a phase of the barrier can count: {described(word)}, and does not get it"
        )


def _earlier(counts: Array, of: Array, totals: Array) -> Array:
    """Of each lane the arrivals of lanes before it at the same barrier, number `of`, whose lanes arrive so often in all."""
    order = np.argsort(of, kind="stable")
    sums = np.cumsum(counts[order]) - counts[order]
    found = np.empty_like(counts)
    found[order] = sums - (np.cumsum(totals) - totals)[of[order]]
    return found
