"""Loads and stores of the reference interpreter: element addresses to buffer elements, with every check on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from xdsl.ir import Operation

from tilefw.api.dtypes import DType
from tilefw.tile.dialect.block_ops import StoreBlockOp
from tilefw.tile.dialect.memory_ops import StoreOp
from tilefw.tile.reference.asynchronous_accesses import ENGINES, AsynchronousAccesses, program_of
from tilefw.tile.reference.findings import FindingCollector
from tilefw.tile.reference.memory import SLOT_BITS, RefBuffer, RefMemory
from tilefw.tile.reference.ordering import Ordering
from tilefw.tile.reference.rounds import rounds
from tilefw.tile.reference.value import Array, EvaluatedValue, either, some

Name = Callable[[int], tuple[int, int, int]]  # a program's place in the grid


class BufferAccess:
    """One launch's way to memory: `memory`, where findings go, and how a program is named in them.

    `atomics` counts the atomics carried out and `changes` those that changed memory: who loops with atomics that change nothing
    waits for another program. `stores` counts stores. `told` names a program of `ordering`.
    """

    def __init__(self, memory: RefMemory, findings: FindingCollector, name: Name) -> None:
        self.memory = memory
        self.findings = findings
        self.name = name
        self.ordering = Ordering()
        self.told: Callable[[int], str] = lambda program: f"program {name(program)}"
        self.asynchronous = AsynchronousAccesses(lambda: self.ordering)
        self.atomics = 0
        self.changes = 0
        self.stores = 0

    def load(
        self, op: Operation, address: EvaluatedValue, mask: EvaluatedValue | None, other: EvaluatedValue | None, dtype: DType,
        programs: Array,
    ) -> EvaluatedValue:
        """The elements at `address` (shape: programs × tile); `other`, or anything, where the mask is off."""
        at = address.x
        active = None if mask is None else np.broadcast_to(mask.x, np.broadcast_shapes(at.shape, mask.x.shape))
        shape = at.shape if active is None else active.shape
        at = np.broadcast_to(at, shape)
        self.check_address(op, address, active, programs)
        loaded: EvaluatedValue | None = None
        for buffer, chosen in self.buffers(op, at, active, dtype, programs):
            part = self._gather(op, buffer, at, chosen, dtype, programs)
            loaded = part if loaded is None else overlay(loaded, part, chosen)
        found = loaded or anything(shape, dtype)
        if address.free is not None:
            found = freed(found, np.broadcast_to(address.free, shape))
        if active is None or mask is None or (mask.free is None and active.all()):
            return found
        return _masked(found, active, mask, other)

    def store(
        self, op: Operation, address: EvaluatedValue, value: EvaluatedValue, mask: EvaluatedValue | None, dtype: DType,
        programs: Array,
    ) -> None:
        """Write the elements where the mask is on; what it may be on for, and is not here, is no longer known as well as it was."""
        shapes = [address.x.shape, value.x.shape] + ([] if mask is None else [mask.x.shape])
        shape = np.broadcast_shapes(*shapes, (len(programs), *address.x.shape[1:]))
        at = np.broadcast_to(address.x, shape)
        active = unsure = None
        if mask is not None:
            active = np.broadcast_to(mask.x, shape)
            unsure = None if mask.free is None else np.broadcast_to(mask.free, shape)
        self.stores += 1
        self.check_address(op, address, active, programs)
        for buffer, chosen in self.buffers(op, at, active, dtype, programs):
            if buffer.readonly:
                self.report(op, "readonly", chosen, at, programs, f"store to {buffer.label}, which is read-only", buffer)
                continue
            self._scatter(op, buffer, at, chosen, value, unsure, dtype, programs)
        for buffer, chosen in self.doubtful(op, address, at, active, unsure, dtype, programs):
            buffer.view(dtype)
            index, new = index_of(at, buffer, dtype)[chosen], select_elements(value, chosen, shape)
            for turn in rounds(index):
                self.doubt(buffer, index[turn], new.apply(lambda part, turn=turn: part[turn]), dtype)

    def doubtful(
        self, op: Operation, address: EvaluatedValue, at: Array, active: Array | None, unsure: Array | None, dtype: DType,
        programs: Array,
    ) -> Iterator[tuple[RefBuffer, Array]]:
        """The buffers, with the elements in them that a mask leaves out here and may not leave out on another chip.

        Addresses that only such an access would have are not looked at: a chip that makes it may have another there."""
        if unsure is None or active is None:
            return
        left_out = unsure & ~active
        if not left_out.any():
            return
        self.check_address(op, EvaluatedValue(address.x, free=address.free), left_out, programs)
        for buffer, chosen in self.buffers(op, at, left_out, dtype, programs, told=False):
            if not buffer.readonly and chosen.any():
                yield buffer, chosen

    def agent(self, number: int) -> str:
        """A program or its engine, in messages."""
        return self.told(number) if number < ENGINES else f"an asynchronous access of {self.told(program_of(number))}, not complete"

    def check_address(self, op: Operation, address: EvaluatedValue, active: Array | None, programs: Array) -> None:
        for check, marked, message, warning in (
            ("overflow", address.wrapped, "signed offset arithmetic wraps around its width", False),
            ("undecided", address.free, "the address depends on a result that rounding or the machine decides", True),
        ):
            if marked is None:
                continue
            hit = marked if active is None else marked & active
            if hit.any():
                self.report(op, check, hit, address.x, programs, message, None, warning)

    def report(
        self, op: Operation, check: str, hit: Array, at: Array, programs: Array, message: str, buffer: RefBuffer | None,
        warning: bool = False, other: str | None = None, size: int = 0,
    ) -> None:
        """Add a finding about the elements in `hit`; `size` is that of an element, where the note shall number it."""
        shape = np.broadcast_shapes(hit.shape, at.shape)
        where = np.flatnonzero(np.broadcast_to(hit, shape))
        first = np.unravel_index(where[0], shape)
        address = int(np.broadcast_to(at, shape)[first])
        program = program_of(int(programs[first[0]]) if shape[0] == len(programs) else int(programs[0]))
        note = None
        if buffer is not None:
            note = f"{buffer.label} has {buffer.nbytes} bytes; the address is at byte {address - buffer.address}"
            note += f", element {(address - buffer.address) // size}" if size else ""
        self.findings.add(
            check, op, message, count=len(where), address=address, note=note, program=self.name(program), other=other,
            warning=warning,
        )

    def buffers(
        self, op: Operation, at: Array, active: Array | None, dtype: DType, programs: Array, told: bool = True
    ) -> Iterator[tuple[RefBuffer, Array]]:
        """The buffers that the active addresses fall into, each with the mask of elements that are right to access. Others are
        findings, if `told`."""
        for buffer in self.memory.placed:
            mine = (at >= buffer.address) & (at < buffer.address + buffer.nbytes)
            mine = mine if active is None else mine & active
            if mine.any():
                yield buffer, self._inside(op, buffer, at, mine, dtype, programs, told)
                active = ~mine if active is None else active & ~mine
        picked = at if active is None else at[active]
        if picked.size == 0:
            return
        low, high = int(picked.min()) >> SLOT_BITS, int(picked.max()) >> SLOT_BITS
        slots = [low] if low == high else np.unique(picked >> SLOT_BITS).tolist()
        for slot in slots:
            mine = np.ones(at.shape, np.bool_) if active is None else active
            if len(slots) > 1:
                mine = mine & ((at >> SLOT_BITS) == slot)
            buffer = self.memory.of_slot(slot)
            if buffer is None:
                what = "the null pointer" if slot == 0 else "an address that belongs to no buffer"
                if told:
                    self.report(op, "bounds", mine, at, programs, f"access through {what}", None)
                continue
            yield buffer, self._inside(op, buffer, at, mine, dtype, programs, told)

    def _inside(
        self, op: Operation, buffer: RefBuffer, at: Array, mine: Array, dtype: DType, programs: Array, told: bool
    ) -> Array:
        size = dtype.storage_bits // 8
        offset = at - buffer.address
        picked = offset[mine]
        if size > 1 and (picked & (size - 1)).any():
            wrong = mine & ((offset & (size - 1)) != 0)
            message = f"access of {size} bytes at an address that is not a multiple of {size}"
            if told:
                self.report(op, "alignment", wrong, at, programs, message, buffer)
            mine = mine & ~wrong
        if int(picked.min()) < 0 or int(picked.max()) > buffer.nbytes - size:
            wrong = mine & ((offset < 0) | (offset > buffer.nbytes - size))
            if wrong.any():
                message = f"access of {size} bytes out of the bounds of {buffer.label}"
                if told:
                    self.report(op, "bounds", wrong, at, programs, message, buffer, size=size)
                mine = mine & ~wrong
        return mine

    def _gather(self, op: Operation, buffer: RefBuffer, at: Array, chosen: Array, dtype: DType, programs: Array) -> EvaluatedValue:
        buffer.view(dtype)
        everywhere = bool(chosen.all())
        index = index_of(at, buffer, dtype)
        if not everywhere:
            index = np.where(chosen, index, 0)
        if buffer.x.size == 0:
            return anything(at.shape, dtype)
        x = buffer.x[index]
        err = None if buffer.err is None else buffer.err[index]
        free = None if buffer.free is None else some(buffer.free[index])
        if buffer.initialised is not None:
            bare = chosen & ~buffer.initialised[index]
            if bare.any():
                message = f"load of elements of {buffer.label} that nothing has written"
                self.report(op, "initialisation", bare, at, programs, message, buffer)
                free = either(free, bare)
                err = np.where(bare, np.inf, 0.0 if err is None else err) if dtype.is_float else None
        if (buffer.stored or buffer.record is not None) and self.findings.wants("races"):
            self._check_read(op, buffer, at, chosen, index, programs)
        found = EvaluatedValue(x, err, free)
        return found if everywhere else freed(found, ~chosen)

    def _check_read(self, op: Operation, buffer: RefBuffer, at: Array, chosen: Array, index: Array, programs: Array) -> None:
        record = buffer.recorded()
        # Where all programs load the same elements, two of them show what holds for all.
        each = at.shape[0] == len(programs)
        owners = [programs.reshape(-1, *([1] * (at.ndim - 1)))] if each else [programs[:1], programs[1:2]]
        for mine in owners:
            foreign = chosen & self.ordering.unseen(record, index, mine)
            if foreign.any():
                first = int(record.writer(index)[foreign][0])
                message = f"load of an element of {buffer.label} that another program of the launch stores"
                self.report(op, "races", foreign, at, programs, message, buffer, other=f"stored by {self.agent(first)}")
                break
        for mine in owners:
            self.ordering.loaded(record, index[chosen], np.broadcast_to(mine, at.shape)[chosen])

    def check_loads(
        self, op: Operation, buffer: RefBuffer, at: Array, chosen: Array, index: Array, owner: Array, programs: Array
    ) -> None:
        """Report elements to be written that another program has loaded: `index` and `owner` are of the chosen elements."""
        record = buffer.record
        if record is None or not self.findings.wants("races"):
            return
        hit = self.ordering.unseen_loads(record, index, owner)
        if not hit.any():
            return
        wrong = np.zeros(at.shape, np.bool_)
        wrong[chosen] = hit
        rival = self.ordering.reader(int(record.readers(index)[hit][0]), int(owner[hit][0]))
        other = "loaded by several programs" if rival is None else f"loaded by {self.agent(rival)}"
        what = "store to" if isinstance(op, StoreOp | StoreBlockOp) else "atomic access to"
        message = f"{what} an element of {buffer.label} that another program of the launch loads"
        self.report(op, "races", wrong, at, programs, message, buffer, other=other)

    def _scatter(
        self, op: Operation, buffer: RefBuffer, at: Array, chosen: Array, value: EvaluatedValue, unsure: Array | None, dtype: DType,
        programs: Array,
    ) -> None:
        buffer.view(dtype)
        shape = at.shape
        index = index_of(at, buffer, dtype)[chosen]
        new = select_elements(value, chosen, shape)
        if unsure is not None:
            new = perhaps(new, buffer, index, unsure[chosen], dtype)
        owner = np.broadcast_to(programs.reshape(-1, *([1] * (len(shape) - 1))), shape)[chosen].astype(np.int32)
        self.check_loads(op, buffer, at, chosen, index, owner, programs)
        record = buffer.recorded()
        before = record.writer(index)
        differs = self.ordering.unseen(record, index, owner) & ~_same(buffer.x[index], new.x)
        self.put(buffer, index, new)
        clash = ~_same(buffer.x[index], new.x)
        self._check_same_address(op, buffer, at, chosen, clash, programs)
        hit = clash | differs
        if hit.any() and self.findings.wants("races"):
            rival = before if differs.any() else record.writer(index)
            wrong = np.zeros(shape, np.bool_)
            wrong[chosen] = hit
            first = int(rival[hit][0])
            other = f"also stored by {self.agent(first)}" if first >= 0 else None
            message = f"stores of different values to one element of {buffer.label} in one launch"
            self.report(op, "races", wrong, at, programs, message, buffer, other=other)
        self.ordering.wrote(record, index, owner, 0)

    def _check_same_address(
        self, op: Operation, buffer: RefBuffer, at: Array, chosen: Array, clash: Array, programs: Array
    ) -> None:
        """Report elements of a store (the chosen ones in `clash`) that another element of the same program has overwritten."""
        if not clash.any() or not self.findings.wants("same_address_stores"):
            return
        lost = np.zeros(at.shape, np.bool_)
        lost[chosen] = clash
        for number in np.flatnonzero(lost.reshape(lost.shape[0], -1).any(axis=1)).tolist():
            addresses, counts = np.unique(at[number][chosen[number]], return_counts=True)
            own = lost[number] & np.isin(at[number], addresses[counts > 1])
            if own.any():
                message = f"elements of one store have one address in {buffer.label} and different values"
                wrong = np.zeros(at.shape, np.bool_)
                wrong[number] = own
                self.report(op, "same_address_stores", wrong, at, programs, message, buffer)

    @staticmethod
    def put(buffer: RefBuffer, index: Array, new: EvaluatedValue, keep_sums: bool = False) -> None:
        """Elements of a buffer with all that is known of them; `keep_sums` where a sum in memory goes on."""
        buffer.x[index] = new.x
        if buffer.sums is not None and not keep_sums:
            buffer.sums.forget(index)
        for name, dtype in (("err", np.float64), ("free", np.bool_)):
            part, fresh = getattr(buffer, name), getattr(new, name)
            if part is None and fresh is not None:
                part = np.zeros(buffer.x.size, dtype)
                setattr(buffer, name, part)
            if part is not None:
                part[index] = 0 if fresh is None else fresh
        if buffer.initialised is not None:
            buffer.initialised[index] = True

    def doubt(self, buffer: RefBuffer, index: Array, new: EvaluatedValue, dtype: DType) -> None:
        """Elements, each at most once, that may become `new` and do not here: they are as initialised as before."""
        initialised = None if buffer.initialised is None else buffer.initialised[index]
        self.put(buffer, index, perhaps_kept(new, buffer, index, dtype))
        if buffer.initialised is not None:
            buffer.initialised[index] = initialised


def index_of(at: Array, buffer: RefBuffer, dtype: DType) -> Array:
    """Element numbers in the buffer; element sizes are powers of two."""
    return (at - buffer.address) >> ((dtype.storage_bits // 8).bit_length() - 1)


def _same(a: Array, b: Array) -> Array:
    equal = a == b
    return equal | (np.isnan(a) & np.isnan(b)) if a.dtype == np.float64 else equal


def select_elements(value: EvaluatedValue, chosen: Array, shape: tuple[int, ...]) -> EvaluatedValue:
    return value.apply(lambda part: np.broadcast_to(part, shape)[chosen])


def perhaps(new: EvaluatedValue, buffer: RefBuffer, index: Array, unsure: Array, dtype: DType) -> EvaluatedValue:
    """Elements that may keep what they held, which is anything where nothing was written: the interval over both."""
    bare = None if buffer.initialised is None else some(unsure & ~buffer.initialised[index])
    if not dtype.is_float:
        unknown = buffer.x[index] != new.x
        unknown = unknown if buffer.free is None else unknown | buffer.free[index]
        return EvaluatedValue(new.x, None, either(either(new.free, bare), some(unsure & unknown)))
    old_err = 0.0 if buffer.err is None else buffer.err[index]
    distance = np.abs(buffer.x[index] - new.x) + old_err + (0.0 if new.err is None else new.err)
    distance = np.where(np.isnan(distance) if bare is None else np.isnan(distance) | bare, np.inf, distance)
    err = np.where(unsure, distance, 0.0 if new.err is None else new.err)
    return EvaluatedValue(new.x, err, either(new.free, some(unsure & (err > 0))))


def perhaps_kept(new: EvaluatedValue, buffer: RefBuffer, index: Array, dtype: DType) -> EvaluatedValue:
    """What elements hold that may become `new`: their own numbers, the interval over both."""
    both = perhaps(new, buffer, index, np.ones(index.shape, np.bool_), dtype)
    return EvaluatedValue(buffer.x[index], both.err, both.free)


def anything(shape: tuple[int, ...], dtype: DType) -> EvaluatedValue:
    from tilefw.tile import numbers

    free = np.ones(shape, np.bool_)
    if dtype.is_float:
        return EvaluatedValue(np.zeros(shape), np.full(shape, np.inf), free)
    return EvaluatedValue(np.zeros(shape, numbers.int_type(dtype.bits)), None, free)


def freed(value: EvaluatedValue, where: Array) -> EvaluatedValue:
    err = value.err
    if value.x.dtype == np.float64:
        err = np.where(where, np.inf, 0.0 if err is None else err)
    return EvaluatedValue(value.x, err, either(value.free, where))


def overlay(below: EvaluatedValue, above: EvaluatedValue, where: Array) -> EvaluatedValue:
    def pick(name: str, blank: float | bool) -> Array | None:
        low, high = getattr(below, name), getattr(above, name)
        if low is None and high is None:
            return None
        return np.where(where, blank if high is None else high, blank if low is None else low)

    return EvaluatedValue(np.where(where, above.x, below.x), pick("err", 0.0), some(pick("free", False)))


def _masked(found: EvaluatedValue, active: Array, mask: EvaluatedValue | None, other: EvaluatedValue | None) -> EvaluatedValue:
    """What a masked load gives: `other` where the mask is off, or anything without one; either where it is undecided."""
    from tilefw.tile.reference.evaluate import select

    if other is None:
        other = EvaluatedValue(np.zeros((1,) * found.x.ndim, found.x.dtype))
        other = freed(other, np.ones(other.x.shape, np.bool_))
    with np.errstate(all="ignore"):
        return select(EvaluatedValue(active, free=None if mask is None else mask.free), found, other)
