"""What a check is: an observer of one launch. It overrides the methods of the events that it wants; the others cost nothing.

Example, a check that counts stores to shared memory:

    class SharedStores(Check):
        name = "shared_stores"

        def access(self, lanes, access):
            if access.space == "shared" and access.kind == "write":
                self.launch.diagnostics.counters.add("shared_stores", 1)

A plugin registers it with the hook `tilefw_checks`.
"""

from __future__ import annotations

from typing import ClassVar, Self

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.state import CountedBlock, LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, AccessKind, Piece
from tilefw.sim.memory.copies import Copy
from tilefw.sim.memory.engine_copies import EngineCopy
from tilefw.sim.memory.regions import Region
from tilefw.sim.program import Instruction, Program
from tilefw.sim.tracking.history import Tracker


class Check:
    """One check of one launch.

    `lanes` are those that execute now: `lanes.frame` says where they are, `lanes.mask` which of them act (None: all), and
    `lanes.instruction` what they execute. Masks and values are arrays [workgroups, waves, lanes] of the frame, or of shapes that
    broadcast to it.
    """

    name: ClassVar[str]
    """The check's name, as findings carry it."""
    follows_undefined: ClassVar[bool] = False
    """Whether registers and memory carry undefined bits beside their values in a launch with this check."""
    follows_offsets: ClassVar[bool] = False
    """Whether registers that offsets are made of carry their exact integers beside their values, as far as the program has promises
    (`Program.promises`)."""
    orders_accesses: ClassVar[bool] = False
    """Whether waves keep the clocks that say which of their accesses are ordered (`Batch.clocks`)."""
    bytes_per_byte: ClassVar[int] = 0
    """What it keeps for each byte of a workgroup's memory: fewer workgroups are in flight then."""

    def __init__(self, launch: LaunchState) -> None:
        self.launch = launch

    @classmethod
    def made_for(cls, launch: LaunchState) -> Self | None:
        """The check for a launch; None where there is nothing that it could find."""
        return cls(launch)

    @classmethod
    def tracker(cls, program: Program) -> Tracker | None:
        """What follows facts along the waves' paths for this check (tracking/history.py). It is kept with the program."""
        return None

    # --- a launch ------------------------------------------------------------------------------------------------------

    def begin(self, batch: Batch) -> None:
        """A batch of workgroups begins."""

    def end(self, batch: Batch) -> None:
        """Every thread of a batch has ended."""

    def finish(self) -> None:
        """Every batch has ended, and no fault has stopped the launch."""

    def close(self) -> None:
        """The launch is over, whatever its end: let go of what memory regions hold."""

    # --- blocks --------------------------------------------------------------------------------------------------------

    def block(self, batch: Batch, block: CountedBlock, mask: Array | None) -> None:
        """Lanes `mask` (of the batch; None: all that have not ended) run a block of straight-line code from its first
        instruction on."""

    # --- instructions --------------------------------------------------------------------------------------------------

    def step(self, lanes: NumpyLanes, instruction: Instruction, sources: tuple[Array, ...], results: tuple[Array, ...]) -> None:
        """An instruction with a meaning was executed: what it read and what it gave. `lanes.mask` are those that acted. A launch
        with such a check runs slower than one without."""

    def undefined(self, lanes: NumpyLanes, what: str, bad: Array) -> None:
        """Undefined bits decide something that cannot be taken back: `what` (an address, a condition, a stored value), in lanes
        `bad`."""

    def undefined_memory(self, lanes: NumpyLanes, piece: Piece, poison: Array) -> None:
        """An atomic works on memory that was never written: `poison` are its undefined bits, flat by lane of the piece."""

    # --- memory --------------------------------------------------------------------------------------------------------

    def out_of_bounds(
        self, lanes: NumpyLanes, space: str, address: Array, size: int, kind: AccessKind, mask: Array | None, region: Region | None
    ) -> None:
        """An access of `size` bytes has no memory behind it in some lane of `mask`; `region` is where it began. It ends the
        launch."""

    def write_to_readonly(self, lanes: NumpyLanes, region: Region, address: Array, mask: Array | None) -> None:
        """A store or atomic on a read-only allocation. It ends the launch."""

    def address(self, lanes: NumpyLanes, address: Array, flat: Array, multiple: int, size: int, mask: Array | None) -> None:
        """An access of `size` bytes at `address` wants multiples of `multiple`; `flat` are the addresses of lanes that act."""

    def wrapped(
        self, lanes: NumpyLanes, space: str, address: Array, integers: Array, size: int, kind: AccessKind, bad: Array
    ) -> None:
        """Lanes `bad` access `size` bytes at `address`, where other `integers` are meant: the offset has wrapped around."""

    def access(self, lanes: NumpyLanes, access: Access) -> None:
        """A load, store or atomic, before it happens."""

    def access_in_flight(self, lanes: NumpyLanes, access: Access) -> None:
        """`access`, while asynchronous copies of the batch are unfinished."""

    def accessed(self, lanes: NumpyLanes, access: Access) -> None:
        """A load, store or atomic that is not weak, after it happened."""

    def loaded(self, lanes: NumpyLanes, access: Access, raw: Array) -> None:
        """A load has its values: `raw`, an array of the frame's shape with an element of `access.size` bytes a lane, which may be
        changed to others that memory has held."""

    def stored(self, lanes: NumpyLanes, access: Access) -> None:
        """A store has happened."""

    def fence(self, lanes: NumpyLanes, order: str, scope: str) -> None:
        """The acting lanes execute a fence."""

    def copy_read(self, lanes: NumpyLanes, access: Access) -> None:
        """An asynchronous copy reads its source."""

    def copy_started(self, lanes: NumpyLanes, copy: Copy) -> None:
        """An asynchronous copy may write its destination from now on."""

    def copy_landed(self, lanes: NumpyLanes, copy: Copy) -> None:
        """A wait covers it: its bytes are there."""

    def copy_left(self, lanes: NumpyLanes, copy: Copy, committed: bool) -> None:
        """No wait covered it before its thread ended. `committed`: it belongs to a group that could have been waited for."""

    # --- barriers ------------------------------------------------------------------------------------------------------

    def arrived(self, batch: Batch, mask: Array, instruction: Instruction) -> None:
        """Lanes `mask` (of the batch) come to a barrier that is aligned: all lanes of a wave must come together."""

    def barrier(self, batch: Batch, slot: int, waves: Array) -> None:
        """Waves (numbers) of workgroup number `slot` of the batch have met."""

    def barrier_all(self, batch: Batch) -> None:
        """All waves of every workgroup of the batch have met."""

    def barrier_made(self, lanes: NumpyLanes, piece: Piece) -> None:
        """The lanes of a piece make barriers that count at these places."""

    def barrier_used(self, lanes: NumpyLanes, piece: Piece) -> None:
        """The lanes of a piece arrive at, ask, or give to an engine barriers that count at these places."""

    def barrier_passed(self, lanes: NumpyLanes, piece: Piece) -> None:
        """The lanes of a piece know that a phase of a barrier that counts, at these places, is over."""

    def cluster_met(self, lanes: NumpyLanes, threads: Array, order: str, passed: bool) -> None:
        """Threads (numbers in the batch) come to the barrier of their cluster, or have `passed` it."""

    # --- engines -------------------------------------------------------------------------------------------------------

    def engine_started(self, lanes: NumpyLanes, copy: EngineCopy) -> None:
        """An engine may read a copy's source and write its destination from now on."""

    def engine_landed(self, batch: Batch, copy: EngineCopy) -> None:
        """An engine's copy has ended: its bytes are there."""

    def engine_left(self, batch: Batch, copy: EngineCopy) -> None:
        """No wait has covered it before the batch ended."""

    def view_fence(self, lanes: NumpyLanes) -> None:
        """What the acting waves have written, and know to be written, is for engines to see from now on."""

    def descriptor(self, lanes: NumpyLanes, places: set[tuple[int, int]], event: str) -> None:
        """Descriptors at (workgroup of the batch, address) are written, acquired or used."""
