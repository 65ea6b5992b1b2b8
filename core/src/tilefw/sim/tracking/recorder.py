"""Records an execution trace (`LaunchOptions.trace`): which blocks waves run, and which memory each access touches."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tilefw.api.execution_trace import CHUNK, AccessTrace, BarrierTrace, BatchTrace, BlockRun, ExecutionTrace
from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.bank_conflicts import BANK_BYTES, passes_of
from tilefw.sim.checks.check import Check
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.state import CountedBlock, LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, Piece
from tilefw.sim.memory.engine_copies import EngineCopy


class TraceRecorder(Check):
    """Observes a launch and writes down what happens; it reports nothing."""

    name = "trace"

    def __init__(self, launch: LaunchState) -> None:
        super().__init__(launch)
        geometry = launch.geometry
        self.trace = launch.diagnostics.trace = ExecutionTrace(
            launch.program.instructions, geometry.grid, geometry.waves, lanes=launch.chip.wave_size
        )
        self._batches: dict[int, BatchTrace] = {}

    def begin(self, batch: Batch) -> None:
        made = BatchTrace(tuple(map(int, batch.workgroups)), self.trace.waves)
        self._batches[id(batch)] = made
        self.trace.batches.append(made)

    def end(self, batch: Batch) -> None:
        del self._batches[id(batch)]

    def block(self, batch: Batch, block: CountedBlock, mask: Array | None) -> None:
        waves = batch.alive.any(axis=2) if mask is None else np.broadcast_to(mask, batch.alive.shape).any(axis=2)
        run = BlockRun(block.start, block.size, waves, filled=self._filled(batch, block, mask))
        self._batches[id(batch)].runs.append(run)

    def _filled(self, batch: Batch, block: CountedBlock, mask: Array | None) -> Array | None:
        """The part of each wave's lanes that execute a block: by the mask of its path, or, where a wave has one way, by the guard
        of an instruction that it begins with."""
        if self.launch.chip.pc_per_lane:
            if mask is None:
                return None
            there = batch.alive.sum(axis=2)
            return np.broadcast_to(mask, batch.alive.shape).sum(axis=2) / np.maximum(there, 1)
        first = self.launch.program.instructions[block.start]
        if first.guard is None or first.wave:
            return None
        held = np.broadcast_to(batch.frame.registers[first.guard.register.index], batch.frame.shape).astype(np.bool_)
        return (held ^ first.guard.negated).mean(axis=2)

    def access(self, lanes: NumpyLanes, access: Access) -> None:
        self._record(lanes, access)

    def accessed(self, lanes: NumpyLanes, access: Access) -> None:
        """Whether an access that has an order, which was written down when it began if it is of any lane, left memory as it was."""
        accesses = self._batches[id(lanes.batch)].runs[-1].accesses
        if access.kind != "atomic" or not accesses:
            return
        if accesses[-1].words is not None and accesses[-1].instruction == lanes.instruction.index:
            accesses[-1].changed = lanes.idle_polls == 0

    def fence(self, lanes: NumpyLanes, order: str, scope: str) -> None:
        """A fence, of the waves that execute it."""
        frame = lanes.frame
        mask = np.ones((1, 1, 1), dtype=np.bool_) if lanes.mask is None else lanes.mask
        acting = np.broadcast_to(mask, frame.shape).any(axis=2).reshape(-1)
        if not acting.any():
            return
        waves = np.zeros(lanes.batch.alive.shape[:2], dtype=np.bool_)
        group, wave = (np.broadcast_to(a, (*frame.shape[:2], 1)).reshape(-1) for a in (frame.group, frame.wave))
        waves[group[acting], wave[acting]] = True
        none = np.zeros(int(acting.sum()), dtype=np.int64)
        nowhere = np.full((len(none), 0), -1, dtype=np.int64)
        made = AccessTrace(lanes.instruction.index, "fence", waves, nowhere, none, none, order=order)
        self._batches[id(lanes.batch)].runs[-1].accesses.append(made)

    def copy_read(self, lanes: NumpyLanes, access: Access) -> None:
        self._record(lanes, access)

    def engine_started(self, lanes: NumpyLanes, copy: EngineCopy) -> None:
        """What an engine writes to arrays, of each wave that started it; of what it reads there the trace says nothing."""
        if not copy.destination.base:  # shared memory's
            return
        shape, width = lanes.batch.alive.shape[:2], lanes.batch.alive.shape[2]
        starter = copy.thread // width
        waves = np.zeros(shape, dtype=np.bool_)
        waves.reshape(-1)[starter] = True
        places = (copy.destination_index + copy.destination.base) // CHUNK
        inside = np.ones(places.shape, dtype=np.bool_) if copy.inside is None else copy.inside
        found = [np.unique(places[starter == wave][inside[starter == wave]]) for wave in np.flatnonzero(waves)]
        chunks = np.full((len(found), max(map(len, found))), -1, dtype=np.int64)
        for row, touched in enumerate(found):
            chunks[row, : len(touched)] = touched
        counts = np.array([int(inside[starter == wave].sum()) for wave in np.flatnonzero(waves)])
        none = np.zeros(len(found), dtype=np.int64)
        run = self._batches[id(lanes.batch)].runs[-1]
        run.accesses.append(AccessTrace(lanes.instruction.index, "write", waves, chunks, none, counts * copy.size))

    def barrier_used(self, lanes: NumpyLanes, piece: Piece) -> None:
        """Each wave at each barrier once, as of before what the instruction does there."""
        batch, frame = lanes.batch, lanes.frame
        acting = np.ones(frame.shape, dtype=np.bool_) if piece.lanes is None else piece.lanes
        group, wave = (np.broadcast_to(numbers, frame.shape)[acting] for numbers in (frame.group, frame.wave))
        group, wave, place = np.unique(np.stack([group, wave, piece.index]), axis=1)
        owner, address = np.divmod(place, max(1, piece.region.stride))
        ended = np.array([batch.barrier_waits.ended(each) for each in place.tolist()], dtype=np.int64)
        self._batches[id(batch)].runs[-1].barriers.append(
            BarrierTrace(lanes.instruction.index, group, wave, np.asarray(batch.workgroups)[owner], address, ended)
        )

    def _record(self, lanes: NumpyLanes, access: Access) -> None:
        run = self._batches[id(lanes.batch)].runs[-1]
        shared = lanes.batch.memory.region("shared")
        addresses = np.full(lanes.frame.shape, -1, dtype=np.int64)
        words = np.full(lanes.frame.shape, -1, dtype=np.int64)
        mask = lanes.mask
        for piece in access.pieces:
            if piece.region is shared:
                place, value = words, piece.index % max(1, piece.region.stride)
            elif access.space in ("global", "generic"):
                place, value = addresses, piece.index + piece.region.base
            else:
                continue
            if piece.lanes is not None:
                place[piece.lanes] = value
            elif mask is None:
                place[...] = value
            else:
                place[...] = np.where(mask, value, -1)
        self._add(run, lanes, access, addresses, words)

    def _add(self, run: BlockRun, lanes: NumpyLanes, access: Access, addresses: Array, words: Array) -> None:
        frame, width = lanes.frame, addresses.shape[2]
        rows, placed = addresses.reshape(-1, width), words.reshape(-1, width)
        lane_acts = (rows >= 0) | (placed >= 0)
        acting = lane_acts.any(axis=1)
        if not acting.any():
            return
        waves = np.zeros(lanes.batch.alive.shape[:2], dtype=np.bool_)
        group, wave = (np.broadcast_to(a, (*frame.shape[:2], 1)).reshape(-1) for a in (frame.group, frame.wave))
        waves[group[acting], wave[acting]] = True
        order = np.lexsort((wave[acting], group[acting]))
        rows, placed, counts = rows[acting][order], placed[acting][order], lane_acts[acting].sum(axis=1)[order]
        banks = lanes.launch.chip.shared_banks
        if access.engine:  # units take what they read in an order of their own
            passes = -(-(placed >= 0).sum(axis=1) * access.size // (BANK_BYTES * banks))
        else:
            passes = passes_of(placed, access.size, banks)
        made = AccessTrace(
            lanes.instruction.index, access.kind, waves, _chunks(rows, access.size), passes, counts * access.size,
            access.size, _repeats(rows) if access.kind == "atomic" else None,
        )
        if access.strong:
            made.words = [tuple(np.unique(row[row >= 0]).tolist()) for row in rows]
            made.moment = next(self.launch.memory.allocations.moments)
            made.changed, made.order = access.kind == "write", access.order
        run.accesses.append(made)


def _repeats(addresses: Array) -> Array:
    """The most lanes of each row that want one address."""
    return np.array([max(Counter(row[row >= 0].tolist()).values(), default=0) for row in addresses], dtype=np.int64)


def _chunks(addresses: Array, size: int) -> Array:
    """The chunks that lanes touch, by row: each once, in order, -1 behind the last."""
    there = addresses >= 0
    if not there.any():
        return np.full((len(addresses), 0), -1, dtype=np.int64)
    steps = range(0, size - 1 + CHUNK, CHUNK)  # the last byte's chunk may be one more
    nowhere = np.iinfo(np.int64).max
    found = np.concatenate([np.where(there, (addresses + min(step, size - 1)) // CHUNK, nowhere) for step in steps], axis=1)
    found.sort(axis=1)
    fresh = np.ones(found.shape, dtype=np.bool_)
    fresh[:, 1:] = found[:, 1:] != found[:, :-1]
    fresh &= found != nowhere
    result = np.full((len(found), int(fresh.sum(axis=1).max())), -1, dtype=np.int64)
    row, _ = np.nonzero(fresh)
    result[row, (np.cumsum(fresh, axis=1) - 1)[fresh]] = found[fresh]
    return result
