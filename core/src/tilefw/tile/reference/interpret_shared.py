"""Shared buffers in the reference interpreter: strict about which copies have landed, and about what a slot's phase promises.

A copy takes its values when it is issued and writes them at the wait that covers its group, so that what reads earlier meets
the old contents, and a finding. Contents that nothing has written are free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tilefw.tile import numbers, types
from tilefw.tile.dialect.shared_ops import (
    AllocSharedOp,
    CommitOp,
    CopyBlockOp,
    CopyOp,
    LoadSharedOp,
    SharedType,
    SlotOp,
    StoreSharedOp,
    WaitOp,
)
from tilefw.tile.reference.findings import FindingCollector
from tilefw.tile.reference.interpret_ops import Handler, address_of, block_address
from tilefw.tile.reference.value import Array, EvaluatedValue, either, some


class SharedBuffer:
    """One execution of an alloc: for each of its programs and slots a tile, whether it was filled, and copies under way."""

    def __init__(self, type: SharedType, programs: Array) -> None:
        dtype = types.dtype_of(type.element)
        self.programs = programs  # in ascending order
        self.slots = max(1, type.slots)
        self.is_float = dtype.is_float
        shape = (len(programs), self.slots)
        self.x: Array = np.zeros((*shape, *type.shape), np.float64 if dtype.is_float else numbers.int_type(dtype.bits))
        self.err: Array | None = None
        self.free: Array | None = None
        self.filled = np.zeros(shape, np.bool_)
        self.under_way = np.zeros(shape, np.int64)
        self.run: object = None  # the execution of a loop in which slots with phases were last taken
        self.iteration = np.zeros(len(programs), np.int64)
        self.origin = np.full(len(programs), -1, np.int64)  # the slot of phase 0 in that iteration; -1 for none yet

    def rows(self, programs: Array) -> Array:
        """Where programs stand in the arrays."""
        return np.searchsorted(self.programs, programs)

    def write(self, rows: Array, slots: Array, value: EvaluatedValue) -> None:
        """Fill the slots of some programs."""
        shape = (len(rows), *self.x.shape[2:])
        self.x[rows, slots] = np.broadcast_to(value.x, shape)
        for name, blank, dtype in (("err", 0.0, np.float64), ("free", False, np.bool_)):
            part, fresh = getattr(self, name), getattr(value, name)
            if part is None and fresh is not None:
                part = np.full(self.x.shape, blank, dtype)
                setattr(self, name, part)
            if part is not None:
                part[rows, slots] = blank if fresh is None else np.broadcast_to(fresh, shape)
        self.filled[rows, slots] = True

    def read(self, rows: Array, slots: Array) -> EvaluatedValue:
        """What the slots of some programs hold; free where nothing was written."""
        x = self.x[rows, slots]
        err = None if self.err is None else self.err[rows, slots]
        free = None if self.free is None else some(self.free[rows, slots])
        bare = np.broadcast_to(~self.filled[rows, slots].reshape(-1, *(1,) * (x.ndim - 1)), x.shape)
        if bare.any():
            free = either(free, bare)
            err = np.where(bare, np.inf, 0.0 if err is None else err) if self.is_float else None
        return EvaluatedValue(x, err, free)


class SharedValue(EvaluatedValue):
    """A buffer (`x` is 0), or a slot of one (`x` is its number), for a group of programs."""

    __slots__ = ("buffer",)

    def __init__(self, x: Array, buffer: SharedBuffer) -> None:
        super().__init__(x)
        self.buffer = buffer

    def apply(self, function: Callable[[Array], Array]) -> SharedValue:
        return SharedValue(function(self.x), self.buffer)


@dataclass(slots=True)
class UnfinishedCopy:
    """A copy under way, of programs to one slot each; `groups` are the numbers of their commit groups."""

    op: Operation
    buffer: SharedBuffer
    programs: Array
    slots: Array
    groups: Array
    value: EvaluatedValue

    def take(self, chosen: Array) -> UnfinishedCopy:
        """The copy of some of its programs."""
        kept = np.flatnonzero(chosen)
        return UnfinishedCopy(
            self.op, self.buffer, self.programs[kept], self.slots[kept], self.groups[kept],
            self.value.apply(lambda part: part if part.shape[0] == 1 else part[kept]),
        )


class SharedBuffers:
    """A launch's copies under way and commit groups; `name` gives a program's place in the grid."""

    def __init__(self, findings: FindingCollector, name: Callable[[int], tuple[int, int, int]]) -> None:
        self.findings = findings
        self.name = name
        self.copies: list[UnfinishedCopy] = []
        self.committed = np.zeros(0, np.int64)  # by program

    def groups(self, programs: Array) -> Array:
        """How many groups each program has committed."""
        missing = int(programs[-1]) + 1 - len(self.committed)
        if missing > 0:
            self.committed = np.concatenate([self.committed, np.zeros(missing, np.int64)])
        return self.committed[programs]

    def commit(self, programs: Array) -> None:
        """The open group of each program is closed."""
        self.groups(programs)
        self.committed[programs] += 1

    def issue(self, op: Operation, view: SharedValue, value: EvaluatedValue, programs: Array) -> None:
        """A copy into a slot begins, in the open group."""
        rows, slots = self.reach(op, view, programs, "is filled")
        view.buffer.under_way[rows, slots] += 1
        self.copies.append(UnfinishedCopy(op, view.buffer, programs, slots, self.groups(programs), value))

    def wait(self, programs: Array, pending: int) -> None:
        """What the programs committed before their `pending` latest groups lands, in order."""
        self.groups(programs)
        limit = np.full(len(self.committed), -1, np.int64)
        limit[programs] = self.committed[programs] - pending
        left: list[UnfinishedCopy] = []
        for copy in self.copies:
            lands = copy.groups < limit[copy.programs]
            if lands.any():
                self._land(copy if lands.all() else copy.take(lands))
            if not lands.all():
                left.append(copy if not lands.any() else copy.take(~lands))
        self.copies = left

    @staticmethod
    def _land(copy: UnfinishedCopy) -> None:
        rows = copy.buffer.rows(copy.programs)
        copy.buffer.write(rows, copy.slots, copy.value)
        copy.buffer.under_way[rows, copy.slots] -= 1

    def reach(self, op: Operation, view: SharedValue, programs: Array, doing: str) -> tuple[Array, Array]:
        """Rows and slots of a view; reported when a copy into one of them is under way."""
        rows = view.buffer.rows(programs)
        slots = np.broadcast_to(view.x, (len(programs),))
        busy = view.buffer.under_way[rows, slots] > 0
        if busy.any():
            self.report("pending", op, f"a slot {doing} while a copy into it is under way", programs[busy])
        return rows, slots

    def report(self, check: str, op: Operation, message: str, programs: Array) -> None:
        """One finding, of as many programs."""
        self.findings.add(check, op, message, count=len(programs), program=self.name(int(programs[0])))

    def end(self, programs: Array) -> None:
        """The programs have ended: copies of theirs still under way were never waited for."""
        for copy in self.copies:
            if copy.programs[0] in programs:
                self.report("pending", copy.op, "the program ends while a copy of it is under way", copy.programs)
        self.copies = [copy for copy in self.copies if copy.programs[0] not in programs]


def _alloc(launch: Any, op: AllocSharedOp, frame: Any) -> list[EvaluatedValue]:
    return [SharedValue(np.zeros(1, np.int64), SharedBuffer(op.type, frame.programs))]


def _slot(launch: Any, op: SlotOp, frame: Any) -> list[EvaluatedValue]:
    buffer, programs = frame[op.ring].buffer, frame.programs
    index = np.broadcast_to(frame[op.index].x.astype(np.int64), (len(programs),))
    wrong = (index < 0) | (index >= buffer.slots)
    if wrong.any():
        launch.shared.report("bounds", op, f"a slot out of the ring's {buffer.slots}", programs[wrong])
        index = index % buffer.slots
    if op.phase is not None:
        _check_phase(launch, op, buffer, frame, index, op.phase)
    return [SharedValue(index, buffer)]


def _check_phase(launch: Any, op: SlotOp, buffer: SharedBuffer, frame: Any, index: Array, phase: int) -> None:
    """Phases of one iteration agree on the slot of phase 0, and it moves on by one slot an iteration."""
    rows = buffer.rows(frame.programs)
    run, iteration = frame.iteration or (None, 0)
    if buffer.run is not run:
        buffer.run = run
        buffer.origin[:] = -1
    origin = (index - phase) % buffer.slots
    expected = (buffer.origin[rows] + iteration - buffer.iteration[rows]) % buffer.slots
    wrong = (buffer.origin[rows] >= 0) & (origin != expected)
    if wrong.any():
        launch.shared.report("phase", op, f"the slot is not the one of phase {phase}", frame.programs[wrong])
    buffer.origin[rows], buffer.iteration[rows] = origin, iteration


def _issuing(op: Any, frame: Any) -> Any:
    """The programs that issue a copy; None when there are none."""
    if op.when is None:
        return frame
    chosen = np.flatnonzero(np.broadcast_to(frame[op.when].x, (len(frame.programs),)))
    return frame.split(chosen) if len(chosen) else None


def _copy(launch: Any, op: CopyOp, frame: Any) -> list[EvaluatedValue]:
    frame = _issuing(op, frame)
    if frame is not None:
        mask = None if op.mask is None else frame[op.mask]
        _issue(launch, op, frame, address_of(op, frame), mask)
    return []


def _copy_block(launch: Any, op: CopyBlockOp, frame: Any) -> list[EvaluatedValue]:
    frame = _issuing(op, frame)
    if frame is not None:
        _issue(launch, op, frame, *block_address(op, frame))
    return []


def _issue(launch: Any, op: CopyOp | CopyBlockOp, frame: Any, at: EvaluatedValue, mask: EvaluatedValue | None) -> None:
    type = op.view.type
    assert isinstance(type, SharedType)
    dtype = types.dtype_of(type.element)
    zero = EvaluatedValue(np.zeros((1,) * (1 + len(type.shape)), np.float64 if dtype.is_float else numbers.int_type(dtype.bits)))
    value = launch.access.load(op, at, mask, zero, dtype, frame.programs)
    launch.shared.issue(op, frame[op.view], value, frame.programs)


def _commit(launch: Any, op: CommitOp, frame: Any) -> list[EvaluatedValue]:
    launch.shared.commit(frame.programs)
    return []


def _wait(launch: Any, op: WaitOp, frame: Any) -> list[EvaluatedValue]:
    launch.shared.wait(frame.programs, op.pending)
    return []


def _load_shared(launch: Any, op: LoadSharedOp, frame: Any) -> list[EvaluatedValue]:
    view = frame[op.view]
    rows, slots = launch.shared.reach(op, view, frame.programs, "is read")
    bare = ~view.buffer.filled[rows, slots]
    if bare.any():
        launch.shared.report("initialisation", op, "load of shared memory that nothing has written", frame.programs[bare])
    return [view.buffer.read(rows, slots)]


def _store_shared(launch: Any, op: StoreSharedOp, frame: Any) -> list[EvaluatedValue]:
    view = frame[op.view]
    rows, slots = launch.shared.reach(op, view, frame.programs, "is overwritten")
    view.buffer.write(rows, slots, frame[op.value])
    return []


SHARED_HANDLERS: dict[type[Operation], Handler] = {
    AllocSharedOp: _alloc,
    SlotOp: _slot,
    CopyOp: _copy,
    CopyBlockOp: _copy_block,
    CommitOp: _commit,
    WaitOp: _wait,
    LoadSharedOp: _load_shared,
    StoreSharedOp: _store_shared,
}
