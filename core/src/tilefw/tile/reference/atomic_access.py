"""Atomics of the reference interpreter: one element after the other, in the order of programs and, within a tile, of elements.

The values left in memory are those of that order; only an addition of floats has a bound that holds for any other order
too. The old values that an atomic gives are those of that order as well: what a kernel makes of them must not depend on it.
"""

from __future__ import annotations

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.tile import types
from tilefw.tile.dialect import atomic_ops
from tilefw.tile.dialect.multicast_op import MulticastOp
from tilefw.tile.elementwise import ROWS
from tilefw.tile.elementwise import meaning as m
from tilefw.tile.reference.access import BufferAccess, anything, freed, index_of, overlay, perhaps, select_elements
from tilefw.tile.reference.evaluate import evaluate, select
from tilefw.tile.reference.memory import RefBuffer
from tilefw.tile.reference.memory_sums import ElementSums
from tilefw.tile.reference.ordering import REACH
from tilefw.tile.reference.rounds import rounds
from tilefw.tile.reference.value import Array, EvaluatedValue, either, settle, some

# Kinds of tile IR on integers: the row of the elementwise table that they compute.
_INTEGER_ROWS = {"add": "addi", "and": "andi", "or": "ori", "xor": "xori"} | {k: k for k in ("maxs", "maxu", "mins", "minu")}
_FLOAT_EXTREMES = {"maxf": m.maximum_number, "minf": m.minimum_number}

ElementAtomic = atomic_ops.AtomicRmwOp | atomic_ops.AtomicCasOp | MulticastOp


def atomic(
    access: BufferAccess, op: ElementAtomic, address: EvaluatedValue, operands: list[EvaluatedValue],
    mask: EvaluatedValue | None, programs: Array,
) -> EvaluatedValue:
    """Carry out an atomic on the elements at `address`; `operands` are its values in order. Gives the old elements."""
    dtype = types.dtype_of(types.pointee_of(op.pointer.type))
    shape = (len(programs), *types.shape_of(op.results[0].type))
    at = np.broadcast_to(address.x, shape)
    active, unsure = np.ones(shape, np.bool_), None
    if mask is not None:
        unsure = None if mask.free is None else np.broadcast_to(mask.free, shape)
        active = np.broadcast_to(mask.x, shape)
    access.atomics += 1
    access.check_address(op, address, active, programs)
    found: EvaluatedValue | None = None
    doubtful = [
        _OnBuffer(access, op, buffer, at, chosen, dtype, programs)
        for buffer, chosen in access.doubtful(op, address, at, active, unsure, dtype, programs)
    ]
    for part in doubtful:  # before the others, which find what it leaves
        part.doubt(operands)
    for buffer, chosen in access.buffers(op, at, active, dtype, programs):
        if buffer.readonly:
            access.report(op, "readonly", chosen, at, programs, f"atomic access to {buffer.label}, which is read-only", buffer)
            continue
        old = _OnBuffer(access, op, buffer, at, chosen, dtype, programs).run(operands, unsure)
        found = old if found is None else overlay(found, old, chosen)
    if isinstance(op, atomic_ops.AtomicCasOp) or op.kind == "xchg":  # which leave what the last of them wrote
        for part in doubtful:
            part.doubt(operands)
    found = found or anything(shape, dtype)
    given = active if unsure is None else active & ~unsure
    return freed(found, ~given) if not given.all() else found


class _OnBuffer:
    """One atomic op on the chosen elements of one buffer."""

    def __init__(
        self, access: BufferAccess, op: ElementAtomic, buffer: RefBuffer, at: Array, chosen: Array, dtype: DType,
        programs: Array,
    ) -> None:
        self.access, self.op, self.buffer, self.at, self.chosen, self.dtype = access, op, buffer, at, chosen, dtype
        self.programs = programs
        buffer.view(dtype)
        self.index = index_of(at, buffer, dtype)[chosen]
        self.owner = np.broadcast_to(programs.reshape(-1, *([1] * (at.ndim - 1))), at.shape)[chosen].astype(np.int32)
        self.reach = REACH[op.scope]

    def run(self, operands: list[EvaluatedValue], unsure: Array | None) -> EvaluatedValue:
        """The old elements, in the shape of the access."""
        self._check_initialised()
        self._check_races()
        access = self.access
        access.check_loads(self.op, self.buffer, self.at, self.chosen, self.index, self.owner, self.programs)
        values = [select_elements(operand, self.chosen, self.at.shape) for operand in operands]
        doubtful = None if unsure is None else unsure[self.chosen]
        old = self._read(self.index)
        changed = np.zeros(self.index.shape, np.bool_)
        for chosen_round in rounds(self.index):
            before = self._read(self.index[chosen_round])
            _put_part(old, chosen_round, before)
            after, writes = self._changed(
                before, [value.apply(lambda part, chosen_round=chosen_round: part[chosen_round]) for value in values], chosen_round
            )
            if doubtful is not None:
                after = perhaps(after, self.buffer, self.index[chosen_round], doubtful[chosen_round], self.dtype)
            self.access.put(self.buffer, self.index[chosen_round], after, keep_sums=self._is_sum and doubtful is None)
            self.access.changes += int((after.x != before.x).any())
            changed[chosen_round] = writes
        self._order(changed)
        return self._spread(old)

    def doubt(self, operands: list[EvaluatedValue]) -> None:
        """Widen what is known of elements that the atomic may change, and does not here."""
        values = [select_elements(operand, self.chosen, self.at.shape) for operand in operands]
        for chosen_round in rounds(self.index):
            index = self.index[chosen_round]
            before = self._read(index)
            after, _ = self._changed(
                before, [value.apply(lambda part, chosen_round=chosen_round: part[chosen_round]) for value in values], chosen_round
            )
            self.access.doubt(self.buffer, index, after, self.dtype)

    @property
    def _is_sum(self) -> bool:
        return not isinstance(self.op, atomic_ops.AtomicCasOp) and self.op.kind == "add" and self.dtype.is_float

    def _changed(self, before: EvaluatedValue, values: list[EvaluatedValue], chosen_round: Array) -> tuple[EvaluatedValue, Array]:
        """The new elements of one round, and which of them are written at all."""
        everywhere = np.ones(before.x.shape, np.bool_)
        if isinstance(self.op, atomic_ops.AtomicCasOp):
            compare, value = values
            equal = _same_code(before, compare)
            return select(equal, value, before), equal.x if equal.free is None else equal.x | equal.free
        kind, (value,) = self.op.kind, values
        if kind == "xchg":
            return value, everywhere
        if self._is_sum:
            if self.buffer.sums is None:
                self.buffer.sums = ElementSums(self.buffer.x.size)
            return self.buffer.sums.add(self.index[chosen_round], before, value, self.dtype), everywhere
        if kind in _FLOAT_EXTREMES:
            return _extreme(kind, before, value), everywhere
        return evaluate(ROWS[_INTEGER_ROWS[kind]], [before, value], self.dtype, self.dtype), everywhere

    def _read(self, index: Array) -> EvaluatedValue:
        buffer = self.buffer
        err = None if buffer.err is None else buffer.err[index]
        return EvaluatedValue(buffer.x[index], err, None if buffer.free is None else buffer.free[index])

    def _spread(self, old: EvaluatedValue) -> EvaluatedValue:
        """Elements in order as the access's shape; what was not accessed is free."""
        found = anything(self.at.shape, self.dtype)
        assert found.free is not None
        found.free = ~self.chosen
        if found.err is not None:
            found.err = np.where(self.chosen, 0.0, np.inf)
        _put_part(found, self.chosen, old)
        found.free = some(found.free)
        return found

    def _check_initialised(self) -> None:
        if self.buffer.initialised is None:
            return
        bare = ~self.buffer.initialised[self.index]
        if bare.any():
            message = f"atomic access to elements of {self.buffer.label} that nothing has written"
            self.access.report(self.op, "initialisation", self._marked(bare), self.at, self.programs, message, self.buffer)
            self.access.put(self.buffer, self.index[bare], anything((int(bare.sum()),), self.dtype))

    def _check_races(self) -> None:
        record, ordering = self.buffer.record, self.access.ordering
        if record is None or not self.access.findings.wants("races"):
            return
        clash = ordering.unseen(record, self.index, self.owner)
        if clash.any() and self.reach:
            # Both are atomic for each other: in the scope of their device, or, of two devices, of the system.
            needed = REACH["device"] + ordering.apart(record, self.index)
            clash &= np.minimum(record.reach[self.index], self.reach) < needed
        if not clash.any():
            return
        rival, theirs = int(record.writer(self.index)[clash][0]), int(record.reach[self.index][clash][0])
        self.access.report(
            self.op, "races", self._marked(clash), self.at, self.programs,
            f"atomic access to an element of {self.buffer.label} that {self._rivalry(theirs)}",
            self.buffer, other=f"written by {self.access.agent(rival)}",
        )

    def _rivalry(self, theirs: int) -> str:
        """What the other side does, whose write reaches so far."""
        if not self.reach:
            scope = "scope `workgroup` (Triton's cta)"
            return f"another program of the launch writes; an atomic of {scope} is one for its own program alone"
        if not theirs:
            return "another program of the launch stores without an order between them"
        return "another rank accesses too; an atomic of scope `device` (Triton's gpu) is one for its own rank alone"

    def _marked(self, hit: Array) -> Array:
        marked = np.zeros(self.at.shape, np.bool_)
        marked[self.chosen] = hit
        return marked

    def _order(self, changed: Array) -> None:
        """Note the writes, and what was acquired and released; programs that run all at once order nothing."""
        ordering = self.access.ordering
        written = self.index[changed]
        if len(self.programs) == 1 and self.reach:
            program, addresses = int(self.programs[0]), self.at[self.chosen]
            if self.op.acquires:
                ordering.acquire(program, addresses, self.reach)
            else:
                ordering.read(program, addresses, self.reach)
            ordering.wrote(self.buffer.recorded(), written, self.owner[changed], self.reach)
            if written.size:
                (ordering.release if self.op.releases else ordering.publish)(program, addresses[changed], self.reach)
            return
        ordering.wrote(self.buffer.recorded(), written, self.owner[changed], self.reach)


def _put_part(into: EvaluatedValue, where: Array, part: EvaluatedValue) -> None:
    """Write some elements of a value."""
    into.x[where] = part.x
    for name, blank in (("err", 0.0), ("free", False)):
        whole, fresh = getattr(into, name), getattr(part, name)
        if whole is None and fresh is not None:
            whole = np.full(into.x.shape, blank)
            setattr(into, name, whole)
        if whole is not None:
            whole[where] = blank if fresh is None else fresh


def _same_code(a: EvaluatedValue, b: EvaluatedValue) -> EvaluatedValue:
    """Whether the codes are equal; nobody knows where a value is within a bound, or both are NaN."""
    free = either(a.free, b.free)
    if a.x.dtype != np.float64:
        return EvaluatedValue(a.x == b.x, free=free)
    slack = (0.0 if a.err is None else a.err) + (0.0 if b.err is None else b.err)
    close = (slack > 0) & ~(np.abs(a.x - b.x) > slack)
    equal = (a.x == b.x) & (np.signbit(a.x) == np.signbit(b.x))
    return EvaluatedValue(equal, free=either(free, some(close | (np.isnan(a.x) & np.isnan(b.x)))))


def _extreme(kind: str, a: EvaluatedValue, b: EvaluatedValue) -> EvaluatedValue:
    """The larger or smaller float; either of the two where one is NaN."""
    errors = [value.err for value in (a, b) if value.err is not None]
    err = np.maximum.reduce(errors) if errors else np.zeros(a.x.shape)
    mixed = np.isnan(a.x) ^ np.isnan(b.x)
    return settle(EvaluatedValue(_FLOAT_EXTREMES[kind](a.x, b.x), np.where(mixed, np.inf, err)), either(a.free, b.free))
