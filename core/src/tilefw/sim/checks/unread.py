"""leftovers, second half: of what a wave writes to shared memory by one instruction, all is read, or nothing.

A store that nobody reads is legal, and compilers make such stores: the last wave's share of a scan, a buffer that another path
fills again. What is read in part is almost always the shadow of a mistake elsewhere: a load at a wrong address reads some
bytes twice and leaves others. So a store is told of only where the same wave's stores by the same instruction are read as well.
It is looked for when races are, at their cost. Bytes that an asynchronous copy fills with zeros beyond its source do not count:
pipelines prefetch past their end that way. Neither do zeros that are stored: descriptors begin as zeros. Nor do barriers that are
made: a loop of few rounds does not come to all of its ring's. It is not looked for on chips whose code masks lanes itself:
compilers move a load under the mask where its value is needed there, and leave the rest of what was stored unread. """

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Self

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.compiled.pricing import LazyFunction, address_of, numbers
from tilefw.sim.compiled.unread_stores import OK, WORDS, unread
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.frame import Frame
from tilefw.sim.engine.state import LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, Piece
from tilefw.sim.memory.copies import Copy
from tilefw.sim.memory.counting_barriers import BYTES
from tilefw.sim.memory.engine_copies import EngineCopy
from tilefw.sim.memory.regions import Region, common_alignment
from tilefw.sim.program import Instruction

CODE = "TFW0815"


class Unread(Check):
    """One record a batch."""

    name = "leftovers"

    def __init__(self, launch: LaunchState) -> None:
        super().__init__(launch)
        self._records: dict[int, _Record] = {}
        self._compiled = LazyFunction(unread, 0, len(WORDS))

    @classmethod
    def made_for(cls, launch: LaunchState) -> Self | None:
        watched = "races" in launch.options.checks and launch.memory.shared_bytes and launch.chip.pc_per_lane
        return cls(launch) if watched else None

    def begin(self, batch: Batch) -> None:
        instructions = self.launch.program.instructions
        shared = batch.memory.region("shared")
        self._records[id(batch)] = _Record(shared, instructions, self.launch.geometry.waves, self._compiled)

    def end(self, batch: Batch) -> None:
        self._records.pop(id(batch)).finish(batch)

    def access(self, lanes: NumpyLanes, access: Access) -> None:
        if access.space not in ("shared", "generic"):
            return
        record = self._records[id(lanes.batch)]
        for piece in access.pieces:
            if piece.region is record.region:
                record.access(lanes, piece, access.size, access.kind, access.values)

    def barrier_made(self, lanes: NumpyLanes, piece: Piece) -> None:
        self._records[id(lanes.batch)].engine(np.zeros(0, dtype=np.int64), piece.index, BYTES)

    def copy_landed(self, lanes: NumpyLanes, copy: Copy) -> None:
        record = self._records[id(lanes.batch)]
        if record.region is copy.destination:
            record.copied(lanes, copy)

    def engine_started(self, lanes: NumpyLanes, copy: EngineCopy) -> None:
        record, none = self._records[id(lanes.batch)], np.zeros(0, dtype=np.int64)
        read = copy.source_index.reshape(-1) if copy.source is record.region else none  # a box is read whole
        record.engine(read, copy.written if copy.destination is record.region else none, copy.size)


class _Record:
    """For each granule of one batch's shared memory, who wrote it and was not read yet: instruction * waves + wave + 1."""

    def __init__(self, region: Region, instructions: Sequence[Instruction], waves: int, compiled: LazyFunction) -> None:
        self.region = region
        self._compiled = compiled
        self._instructions = instructions
        self._waves = waves
        self._granule = 4
        self._writers = np.zeros(len(region.data) // 4, dtype=np.int32)
        self._read = np.zeros(len(instructions) * waves + 1, dtype=np.bool_)
        self._lost: dict[int, list[int]] = {}
        """By writer: how many granules nobody read, and the first of them."""

    def _granules(self, index: Array, size: int) -> Array:
        part = common_alignment(index, min(size, self._granule))
        if part < self._granule:
            factor = self._granule // part
            self._writers = np.repeat(self._writers, factor)
            self._lost = {writer: [n, first * factor] for writer, (n, first) in self._lost.items()}
            self._granule = part
        return index[..., None] // self._granule + np.arange(max(1, size // self._granule))

    def access(self, lanes: NumpyLanes, piece: Piece, size: int, kind: str, values: Array | None = None) -> None:
        """A load or atomic reads; a store must not find its own place unread."""
        if not self._compiled_access(lanes, piece, size, kind, values):
            self._compiled.plainly(partial(self._plain_access, lanes, piece, size, kind, values))

    def _compiled_access(self, lanes: NumpyLanes, piece: Piece, size: int, kind: str, values: Array | None) -> bool:
        """The same in compiled form; false where NumPy's form must do it, and nothing has changed."""
        if not self._compiled.ready():
            return False
        frame = lanes.frame
        index = np.broadcast_to(piece.index, frame.shape) if piece.lanes is None else piece.index
        threads = None if piece.lanes is None else np.flatnonzero(piece.lanes)
        site = None if kind != "write" else lanes.instruction.index
        nobody = values is not None and not np.any(values)
        return self._in_compiled_form(frame, index, threads, size, site, nobody)

    def _in_compiled_form(
        self, frame: Frame, index: Array, threads: Array | None, size: int, site: int | None, nobody: bool = False
    ) -> bool:
        """Threads (numbers in the frame; None: all) load, or store by instruction `site`; false where NumPy's form must do it, and
        nothing has changed. Of stores by `nobody` it does not matter whether they are read. The function must be ready."""
        granules, lanes = size // self._granule, frame.shape[2]
        if not granules or lanes & (lanes - 1):
            return False
        index = np.ascontiguousarray(index)
        threads = numbers(index.size) if threads is None else np.ascontiguousarray(threads)
        waves = np.ascontiguousarray(np.broadcast_to(frame.wave[:, :, 0], frame.shape[:2]))
        writer = 0 if site is None or nobody else site * self._waves + 1
        words = [
            address_of(index), address_of(threads), lanes.bit_length() - 1, address_of(waves), self._granule.bit_length() - 1,
            address_of(self._writers), address_of(self._read), site is not None, writer,
        ]
        return self._compiled.call(words, index.size, granules) == OK

    def _plain_access(self, lanes: NumpyLanes, piece: Piece, size: int, kind: str, values: Array | None) -> None:
        granules = self._granules(piece.index, size)
        if kind != "write":
            self._mark_read(granules)
            return
        wave = np.broadcast_to(lanes.frame.wave, lanes.frame.shape)
        if piece.lanes is not None:
            wave = wave[piece.lanes]
        granules = np.broadcast_to(granules, (*wave.shape, granules.shape[-1]))
        self._written(lanes, granules, lanes.instruction.index, wave[..., None])
        if values is not None and not np.any(values):
            self._writers[granules] = 0

    def engine(self, read: Array, written: Array, size: int) -> None:
        """An engine reads and writes at these offsets, and nobody need read what it writes."""
        if len(read):
            self._mark_read(self._granules(read, size))
        if len(written):
            granules = self._granules(written, size)  # may make granules, and so writers, anew
            self._writers[granules] = 0

    def copied(self, lanes: NumpyLanes, copy: Copy) -> None:
        """An asynchronous copy has landed. Elements that are zeros from beyond its source do not count."""
        site, frame = copy.instruction.index, lanes.batch.frame
        compiled = self._compiled.ready() and not copy.filled.any()
        if not compiled or not self._in_compiled_form(frame, copy.index, copy.thread, copy.size, site):
            self._compiled.plainly(partial(self._plain_copied, lanes, copy))

    def _plain_copied(self, lanes: NumpyLanes, copy: Copy) -> None:
        index, filled = copy.index, copy.filled
        _, waves, width = lanes.batch.frame.shape
        wave = copy.thread[~filled] // width % waves
        self._written(lanes, self._granules(index[~filled], copy.size), copy.instruction.index, wave[:, None])
        granules = self._granules(index[filled], copy.size)
        self._writers[granules] = 0

    def _mark_read(self, granules: Array) -> None:
        self._read[self._writers[granules]] = True
        self._writers[granules] = 0

    def _written(self, lanes: NumpyLanes, granules: Array, site: int, wave: Array) -> None:
        lost = self._writers[granules]
        if lanes.launch.schedule.random is not None:
            # Waves that hold copies store the same bytes by one instruction, under a seed one after the other.
            lost = np.where((lost - 1) // self._waves == site, 0, lost)
        if lost.any():
            self._lose(granules[lost != 0], lost[lost != 0])
        self._writers[granules] = site * self._waves + wave + 1

    def _lose(self, granules: Array, writers: Array) -> None:
        for writer, count in zip(*np.unique(writers, return_counts=True), strict=True):
            known = self._lost.setdefault(int(writer), [0, int(granules[np.argmax(writers == writer)])])
            known[0] += int(count)

    def finish(self, batch: Batch) -> None:
        """The batch has ended."""
        left = np.nonzero(self._writers)[0]
        self._lose(left, self._writers[left])
        for writer, (count, granule) in self._lost.items():
            if not self._read[writer]:
                continue
            site, wave = divmod(writer - 1, self._waves)
            instruction: Instruction = self._instructions[site]
            slot, address = divmod(granule * self._granule, max(1, self.region.stride))
            batch.launch.diagnostics.reporter.add(
                "leftovers", CODE, "part of what this writes to shared memory is never read", instruction, count=count,
                where=(batch.workgroup(slot), wave, 0), address=address, severity="warning",
            )
