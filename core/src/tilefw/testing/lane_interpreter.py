"""Executes lane IR in NumPy, a workgroup at a time: tests of the lowering to lanes ask it before any chip is there.

A scalar is an array of shape (1,), a vector one of (threads or 1, N); numbers are held as in the reference interpreter, and
rounded after each op. Faults (`LaneFault`) are what no lowering may do: memory that was never written or is out of bounds,
waves that race on shared memory, copies read before their wait, branches that threads disagree on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Block, Operation, SSAValue

from tilefw.api.device import DescribedArray
from tilefw.api.integers import round_up
from tilefw.copy_descriptors import CopyDescriptor
from tilefw.multicast_window import MulticastWindow
from tilefw.simt import lane
from tilefw.simt.description import LaneMachine
from tilefw.simt.lane.memory import AccessOp
from tilefw.simt.layout import atoms
from tilefw.testing import (
    lane_atomics,
    lane_barriers,
    lane_bulk_copies,
    lane_bulk_stores,
    lane_fragments,
    lane_products,
    lane_values,
)
from tilefw.testing.lane_memory import LaneAsyncCopy, LaneFault, LaneGlobalMemory, LaneSharedMemory, element_bytes, grown
from tilefw.tile import numbers, types
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.value import Array, EvaluatedValue

__all__ = ["LaneFault", "run"]

_WORD = 0xFFFFFFFF


def run(
    function: FuncOp, arguments: Sequence[Array | int | float], grid: tuple[int, ...], machine: LaneMachine,
    multicast: MulticastWindow | None = None,
) -> None:
    """Execute a lowered kernel for every workgroup of `grid`; pointer arguments are C-contiguous arrays, written in place, or
    addresses: the k-th array begins at (k + 1) << 40, << 24 on chips of 32 bits. Addresses of `multicast` stand for its copies."""
    buffers = [a for a in arguments if isinstance(a, np.ndarray)]
    if not all(b.flags.c_contiguous for b in buffers):
        raise ValueError("the lane interpreter takes C-contiguous arrays")
    memory = LaneGlobalMemory(buffers, 40 if machine.chip.pointer_bits == 64 else 24, multicast)
    x, y, z = (*grid, 1, 1, 1)[:3]
    descriptors = lane_bulk_copies.descriptors(function, arguments, memory)
    parameters = [parameter for parameter in function.body.block.args if parameter not in descriptors]
    for k, j, i in product(range(z), range(y), range(x)):
        workgroup = _Workgroup(machine, memory, (i, j, k), (x, y, z))
        workgroup.descriptors = descriptors
        index = 0
        for parameter, value in zip(parameters, arguments, strict=True):
            if isinstance(value, np.ndarray):
                workgroup.values[parameter] = np.array([memory.address(index)])
                index += 1
            elif types.is_pointer(parameter.type):
                workgroup.values[parameter] = np.array([value])
            else:
                workgroup.values[parameter] = lane_values.typed_constant(value, parameter.type)
        workgroup.block(function.body.block)
        workgroup.finish()


class _Workgroup:
    def __init__(self, machine: LaneMachine, memory: LaneGlobalMemory, position: tuple[int, ...], grid: tuple[int, ...]) -> None:
        self.machine = machine
        self.memory = memory
        self.position = position
        self.grid = grid
        self.values: dict[SSAValue, Array] = {}
        self.waves = np.arange(machine.threads) // machine.lanes
        self.here = np.ones(machine.threads, np.bool_)  # the threads that have not left
        self.shared = LaneSharedMemory(machine.chip.shared_bytes)
        self.next_shared = 0
        self.groups: list[list[LaneAsyncCopy | lane_barriers.LandingCopy]] = [[]]
        self.descriptors: dict[SSAValue, tuple[CopyDescriptor, DescribedArray]] = {}
        self.stores = lane_bulk_stores.EngineStores(memory)
        self.products = lane_products.ProductsUnderWay(machine, self.shared)
        self.barriers = lane_barriers.LaneBarriers(machine.chip.barrier_bytes)

    def block(self, block: Block) -> list[Array]:
        """Run a block; gives the operands of its terminator."""
        for op in block.ops:
            if isinstance(op, ReturnOp | YieldOp | ConditionOp):
                return [self.values[v] for v in op.operands]
            self.op(op)
        return []

    def finish(self) -> None:
        if any(self.groups):
            raise LaneFault("the kernel ends while copies are under way")
        self.stores.end()
        self.products.finish()
        self.barriers.finish()

    def op(self, op: Operation) -> None:
        self.products.check(op, self.values)
        if isinstance(op, ElementwiseOp):
            self.values[op.results[0]] = self.elementwise(op)
            return
        handler = _HANDLERS.get(op.name)
        if handler is None:
            raise LaneFault(f"the lane interpreter does not execute {op.name}")
        try:
            handler(self, op)
        except LaneFault as fault:
            fault.add_note(f"in {op}" if not op.regions else f"in the {op.name} around it")
            raise

    def elementwise(self, op: ElementwiseOp) -> Array:
        operands = [EvaluatedValue(self.values[v]) for v in op.operands]
        row = op.row
        if row.name in ("ptr_to_int", "int_to_ptr"):
            return operands[0].x
        source, result = types.dtype_of(op.operands[row.typed_by].type), types.dtype_of(op.results[0].type)
        found = evaluate(row, operands, source, result, rounding=op.rounding, fusion=False).x
        return numbers.in_format(found, result) if result.is_float else found

    def threads(self, value: Array) -> Array:
        """A vector, or a scalar, as (threads, n)."""
        value = value.reshape(1, -1) if value.ndim == 1 else value
        return np.broadcast_to(value, (self.machine.threads, value.shape[1]))

    def uniform(self, value: Array) -> Any:
        """The one number of a scalar or of a vector on which all threads agree."""
        flat = (value[self.here] if len(value) == len(self.here) else value).reshape(-1)
        if not ((flat == flat[0]) | ((flat != flat) & (flat[0] != flat[0]))).all():
            raise LaneFault("threads disagree on a value that is to be uniform")
        return flat[0]

    # -- memory

    def mask(self, op: AccessOp, k: int) -> Array:
        mask = op.part("mask")
        if mask is None:
            return self.here
        values = self.threads(self.values[mask])
        return values[:, k if values.shape[1] > 1 else 0].astype(np.bool_) & self.here

    def addresses(self, address: SSAValue, slot: int, immediate: int, base: SSAValue | None = None) -> Array:
        own = self.threads(self.values[address])[:, slot].astype(np.int64)
        if base is not None:
            own = (own & _WORD) + int(self.uniform(self.values[base]))
        return own + immediate

    def inside(self, op: lane.MemoryOp, k: int, end: int) -> Array:
        """The threads for which what ends `end` bytes from the address of an access is within the op's limit; a mask beside it says
        the same."""
        limit, address = op.part("limit"), op.part("address")
        if limit is None or address is None:
            return np.ones(self.machine.threads, np.bool_)
        own = self.threads(self.values[address])[:, op.slots[k]].astype(np.int64) & _WORD
        inside = (own + op.immediates[k] + end <= int(self.uniform(self.values[limit])) & _WORD) & self.here
        if op.part("mask") is not None and (inside != self.mask(op, k)).any():
            raise LaneFault(f"access {k} is masked differently from its limit")
        return inside

    def parts(self, op: lane.MemoryOp, width: int, size: int) -> list[tuple[int, int]]:
        """The bytes of an access that are within a limit or not by themselves: (first, count)."""
        apart = op.part("limit") is not None and self.machine.chip.bound_bytes
        return [(i * size, size) for i in range(width)] if apart else [(0, width * size)]

    def read(self, op: lane.MemoryOp, addresses: Array, count: int, rows: Array) -> Array:
        if op.shared:
            return self.shared.read(addresses, count, self.waves[rows])
        return self.memory.read(addresses, count)

    def load(self, op: lane.LoadOp) -> None:
        dtype = types.dtype_of(op.accessed)
        n, width, size = (types.shape_of(op.accessed) or (1,))[0], op.width, dtype.storage_bits // 8
        other, address = op.part("other"), op.part("address")
        assert address is not None
        raw = np.full((self.machine.threads, n * size), 0xA5, np.uint8)
        if other is not None:
            raw[:] = element_bytes(self.threads(self.values[other]), dtype, n)
        for k, (slot, immediate) in enumerate(zip(op.slots, op.immediates, strict=True)):
            if op.part("limit") is not None and other is None:
                raw[:, k * width * size : (k + 1) * width * size] = 0
            for first, count in self.parts(op, width, size):
                rows = np.flatnonzero(self.mask(op, k) & self.inside(op, k, first + count))
                at = self.addresses(address, slot, immediate, op.part("base"))[rows] + first
                if len(rows):
                    begin = k * width * size + first
                    raw[rows, begin : begin + count] = self.read(op, at, count, rows)
        values = numbers.from_bytes(raw.reshape(-1), dtype).reshape(self.machine.threads, n)
        scalar = not types.shape_of(op.accessed)
        self.values[op.results[0]] = np.array([self.uniform(values)], values.dtype) if scalar else values

    def store(self, op: lane.StoreOp) -> None:
        value, address = op.part("value"), op.part("address")
        assert value is not None and address is not None
        dtype = types.dtype_of(value.type)
        n, width, size = (types.shape_of(value.type) or (1,))[0], op.width, dtype.storage_bits // 8
        raw = element_bytes(self.threads(self.values[value]), dtype, n)
        for k, (slot, immediate) in enumerate(zip(op.slots, op.immediates, strict=True)):
            for first, count in self.parts(op, width, size):
                rows = np.flatnonzero(self.mask(op, k) & self.inside(op, k, first + count))
                at = self.addresses(address, slot, immediate, op.part("base"))[rows] + first
                begin = k * width * size + first
                data = raw[rows, begin : begin + count]
                if not len(rows):
                    continue
                if op.shared:
                    self.shared.write(at, data, self.waves[rows])
                else:
                    self.memory.write(at, data)

    def atomic(self, op: lane.AtomicOp) -> None:
        awaited = op.part("awaited")
        while True:
            found = self.atomic_once(op)
            old = found[self.mask(op, 0)][:, 0]
            if awaited is None or not lane_atomics.holds(op.word("again"), old, self.uniform(self.values[awaited])):
                break
        if op.results:
            self.values[op.results[0]] = found

    def fence(self, op: lane.FenceOp) -> None:
        """Threads run one after the other here, and see all that was stored."""

    def atomic_once(self, op: lane.AtomicOp) -> Array:
        """The accesses of all threads; what they found."""
        dtype, (n,), address = types.dtype_of(op.accessed), types.shape_of(op.accessed), op.part("address")
        compare, size = op.part("compare"), dtype.storage_bits // 8
        assert address is not None
        raw = element_bytes(self.threads(self.values[op.value]), dtype, n)
        expected = raw if compare is None else element_bytes(self.threads(self.values[compare]), dtype, n)
        found = np.full((self.machine.threads, n * size), 0xA5, np.uint8)
        for i in reversed(range(n)):  # the last elements and threads first: nobody may rely on another order
            k, begin = i // op.width, i * size
            at = self.addresses(address, op.slots[k], op.immediates[k]) + i % op.width * size
            for row in np.flatnonzero(self.mask(op, k))[::-1]:
                given = (each[row, begin : begin + size].copy() for each in (raw, expected))
                found[row, begin : begin + size] = lane_atomics.access(self.memory, op.kind, dtype, int(at[row]), *given)
        return numbers.from_bytes(found.reshape(-1), dtype).reshape(self.machine.threads, n)

    def alloc(self, op: lane.AllocOp) -> None:
        offset = op.offset
        if offset is None:  # not placed yet: every allocation has its own bytes, as many as it takes
            offset = round_up(self.next_shared, op.align)
            self.next_shared = offset + op.bytes
            if self.next_shared > len(self.shared.data):
                self.shared = grown(self.shared, self.next_shared)
        self.values[op.results[0]] = np.array([offset], np.int32)

    def copy_async(self, op: lane.CopyAsyncOp) -> None:
        target, source, here = op.part("address"), op.part("source"), self.when(op)
        assert target is not None and source is not None
        if not here.any():
            return
        places = zip(op.slots, op.immediates, op.source_slots, op.source_immediates, strict=True)
        for k, (slot, immediate, source_slot, source_immediate) in enumerate(places):
            data = self.copied(op, source, source_slot, source_immediate, self.mask(op, k) & here)
            at, waves = self.addresses(target, slot, immediate) + self.piece(op), self.waves
            at, waves = at[here], waves[here]
            self.shared.begin_copy(at, op.bytes, waves)
            self.groups[-1].append(LaneAsyncCopy(at, data[here], waves))

    def copied(self, op: lane.CopyAsyncOp, source: SSAValue, slot: int, immediate: int, active: Array) -> Array:
        """The bytes that each thread copies: zeros where it is not active or reaches beyond a limit."""
        data, limit = np.zeros((self.machine.threads, op.bytes), np.uint8), op.part("limit")
        if limit is not None:
            end = (self.addresses(source, slot, 0) & _WORD) + immediate + op.bytes
            active = active & (end <= int(self.uniform(self.values[limit])) & _WORD)
        if active.any():
            data[active] = self.memory.read(self.addresses(source, slot, immediate, op.part("base"))[active], op.bytes)
        return data

    def piece(self, op: lane.CopyAsyncOp) -> Array:
        """What a thread's place adds to the address of a copy, where those of a wave land one behind the other."""
        place = np.zeros(self.machine.threads, np.int64)
        if not op.consecutive:
            return place
        wave = op.part("wave")
        if wave is not None:
            place += self.threads(self.values[wave])[:, 0]
        return place + np.arange(self.machine.threads) % self.machine.lanes * op.bytes

    def commit(self, op: lane.CommitOp) -> None:
        self.groups.append([])

    def wait(self, op: lane.WaitOp) -> None:
        while len(self.groups) - 1 > op.pending:
            for copy in self.groups.pop(0):
                self._land(copy)

    def _land(self, copy: LaneAsyncCopy | lane_barriers.LandingCopy) -> None:
        if isinstance(copy, lane_barriers.LandingCopy):
            self.shared.land(copy.at, copy.data)
        else:
            self.shared.end_copy(copy.addresses, copy.data, copy.waves)

    def hand_over(self, op: lane.HandOverOp) -> None:
        """Of a program that is not divided: its own copies have landed, and all threads know."""
        for group in self.groups:
            for copy in group:
                self._land(copy)
        self.groups = [[]]
        self.shared.barrier()

    def barrier(self, op: lane.BarrierOp) -> None:
        self.shared.barrier()
        self.barriers.barrier()

    def begin_barriers(self, op: lane.BeginBarriersOp) -> None:
        self.barriers.begin(self.shared, int(self.uniform(self.values[op.operands[0]])), op.number, op.count)

    def when(self, op: AccessOp) -> Array:
        """The threads for which an op's condition holds."""
        when = op.part("when")
        return self.here if when is None else self.threads(self.values[when])[:, 0].astype(np.bool_) & self.here

    def bulk_copy(self, op: lane.BulkCopyOp) -> None:
        threads = int(self.when(op).sum())
        if threads > 1:
            raise LaneFault(f"{threads} threads start one copy of an engine")
        if not threads:
            return
        recipe, array = self.descriptors[op.needed("descriptor")]
        address, *at = (int(self.uniform(self.values[value])) for value in (op.needed("address"), *op.at))
        engine = self.machine.chip.copy_engine
        copy = lane_bulk_copies.started(engine, array, recipe.element_bytes, self.memory, self.shared, address, at)
        if copy.data.size != op.bytes:
            raise LaneFault(f"an engine's copy of {copy.data.size} bytes, not {op.bytes}")
        barrier = op.part("barrier")
        if barrier is None:
            self.groups[-1].append(copy)
        else:
            self.barriers.copy(int(self.uniform(self.values[barrier])), copy)

    def bulk_store(self, op: lane.BulkStoreOp) -> None:
        threads = np.flatnonzero(self.when(op))
        if len(threads) > 1:
            raise LaneFault(f"{len(threads)} threads start one store of an engine")
        for wave in self.waves[threads].tolist():
            recipe, array = self.descriptors[op.needed("descriptor")]
            address, *at = (int(self.uniform(self.values[value])) for value in (op.needed("address"), *op.at))
            engine = self.machine.chip.copy_engine
            self.stores.start(engine, array, recipe.element_bytes, self.shared, address, at, op.bytes, wave)

    def bulk_store_wait(self, op: lane.BulkStoreWaitOp) -> None:
        if self.when(op).any():
            self.stores.wait(self.shared, op.written)

    def arrive(self, op: lane.ArriveOp) -> None:
        here, announced = self.when(op), op.part("announced")
        if not here.any():
            return
        numbers = np.full(len(here), op.bytes) if announced is None else self.threads(self.values[announced])[:, 0]
        address = int(self.uniform(self.values[op.address]))
        self.barriers.arrive(address, int(here.sum()), int(numbers[here].sum()))

    def wait_phase(self, op: lane.WaitPhaseOp) -> None:
        address, parity = (int(self.uniform(self.values[value])) for value in (op.address, op.parity))
        self.barriers.wait(self.shared, address, parity)

    # -- across lanes

    def leave(self, op: lane.LeaveOp) -> None:
        self.here = self.here & (np.arange(self.machine.threads) & op.bits == 0)

    def shuffle(self, op: lane.ShuffleOp) -> None:
        value = self.threads(self.values[op.operands[0]])
        lanes = self.machine.lanes
        here = np.arange(self.machine.threads)[:, None]
        own = here % lanes
        amount: Any = op.amount
        if amount is None:
            amount = self.threads(self.values[op.operands[1]]).astype(np.int64)
        source = {
            "xor": own ^ amount, "index": own * 0 + amount, "up": own - amount, "down": own + amount,
            "lower": (own | amount - 1) & ~amount, "upper": own & -amount | amount,
        }[op.mode]
        outside = (source < 0) | (source >= lanes)
        if op.mode in ("up", "down"):
            source = np.where(outside, own, source)
        elif outside.any():
            raise LaneFault(f"lane {int(source[outside][0])} of {lanes}")
        self.values[op.results[0]] = np.take_along_axis(value, np.broadcast_to(here - own + source, value.shape), axis=0)

    def make_uniform(self, op: Any) -> None:
        value = self.values[op.operands[0]]
        self.values[op.results[0]] = np.array([self.uniform(value)], value.dtype)

    def atom(self, op: lane.AtomOp) -> None:
        try:
            found = atoms.find_atom(self.machine.chip, op.atom)
        except KeyError:
            raise LaneFault(f"the chip has no atom {op.atom}") from None
        a, b, c, *scales = (self.threads(self.values[v]) for v in op.operands)
        result = np.array(c)
        names = ("a", "b", "d", *op.SCALES[: len(scales)])
        for firsts in zip(*(op.firsts(name) for name in names), strict=True):
            lane_products.multiply(found, 1 << len(found.d_layout.lane), (a, b, *scales), result, firsts)
        self.values[op.results[0]] = result

    def async_atom(self, op: lane.AsyncAtomOp) -> None:
        self.products.shared = self.shared
        names = ("a", "b", "a_address", "b_address")
        given = {name: self.threads(self.values[value]) for name in names if (value := op.part(name)) is not None}
        self.values[op.results[0]] = self.products.begin(op, given, self.threads(self.values[op.acc]))

    def atom_wait(self, op: lane.AtomWaitOp) -> None:
        self.products.wait(op.pending)

    def fence_view(self, op: lane.FenceViewOp) -> None:
        self.shared.fence()

    def fragment_load(self, op: lane.FragmentLoadOp) -> None:
        address, chip = op.part("address"), self.machine.chip
        assert address is not None
        turned = next((f for f in chip.transposed_loads if f.name == op.load), None)
        load = None if turned is not None else next(f for f in chip.fragment_loads if f.name == op.load)
        waves, lanes = self.machine.waves, self.machine.lanes
        registers = []
        for slot, immediate in zip(op.slots, op.immediates, strict=True):
            at = self.addresses(address, slot, immediate)
            if turned is not None:
                registers.append(lane_fragments.columns(self.shared.read(at, turned.bytes, self.waves), turned))
            elif load is not None:
                at, rows = at.reshape(waves, lanes), load.rows * op.count
                found = self.shared.read(at[:, :rows].reshape(-1), load.row_bytes, np.repeat(np.arange(waves), rows))
                found = found.reshape(waves, op.count, load.rows, load.row_bytes)
                registers.append(lane_fragments.fragments(found, load, op.transposed))
        raw = np.ascontiguousarray(np.concatenate(registers, axis=1))
        dtype = types.dtype_of(op.results[0].type)
        self.values[op.results[0]] = numbers.from_bytes(raw.reshape(-1), dtype).reshape(waves * lanes, -1)

    def fragment_store(self, op: lane.FragmentStoreOp) -> None:
        address, chip = op.part("address"), self.machine.chip
        assert address is not None
        store = next(f for f in chip.fragment_stores if f.name == op.store)
        waves, lanes, dtype = self.machine.waves, self.machine.lanes, types.dtype_of(op.value.type)
        raw = element_bytes(self.threads(self.values[op.value]), dtype, types.shape_of(op.value.type)[0])
        for k, (slot, immediate) in enumerate(zip(op.slots, op.immediates, strict=True)):
            at, rows = self.addresses(address, slot, immediate).reshape(waves, lanes), store.rows * op.count
            given = raw[:, k * op.count * 4 : (k + 1) * op.count * 4]
            written = lane_fragments.rows_of(given.reshape(waves, lanes, -1), store, op.transposed)
            self.shared.write(at[:, :rows].reshape(-1), written.reshape(-1, store.row_bytes), np.repeat(np.arange(waves), rows))

    # -- control flow

    def for_loop(self, op: ForOp) -> None:
        index, upper, step = (int(self.uniform(self.values[v])) for v in (op.lb, op.ub, op.step))
        carried = [self.values[v] for v in op.iter_args]
        body = op.body.block
        while index < upper:
            self.values[body.args[0]] = lane_values.typed_constant(index, op.lb.type)
            self.values.update(zip(body.args[1:], carried, strict=True))
            carried = self.block(body)
            index += step
        self.values.update(zip(op.results, carried, strict=True))

    def if_op(self, op: IfOp) -> None:
        region = op.true_region if self.uniform(self.values[op.cond]) else op.false_region
        results = self.block(region.block) if region.blocks else []
        self.values.update(zip(op.results, results, strict=True))

    def while_loop(self, op: WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        carried = [self.values[v] for v in op.arguments]
        while True:
            self.values.update(zip(before.args, carried, strict=True))
            condition, *passed = self.block(before)
            if not self.uniform(condition):
                break
            self.values.update(zip(after.args, passed, strict=True))
            carried = self.block(after)
        self.values.update(zip(op.results, passed, strict=True))


_HANDLERS: dict[str, Callable[[_Workgroup, Any], None]] = {
    "lane.load": _Workgroup.load, "lane.store": _Workgroup.store, "lane.atomic": _Workgroup.atomic, "lane.fence": _Workgroup.fence,
    "lane.alloc": _Workgroup.alloc, "lane.copy_async": _Workgroup.copy_async, "lane.commit": _Workgroup.commit,
    "lane.wait": _Workgroup.wait, "lane.hand_over": _Workgroup.hand_over,
    "lane.barrier": _Workgroup.barrier, "lane.begin_barriers": _Workgroup.begin_barriers,
    "lane.show_barriers": lambda workgroup, op: workgroup.barriers.show(), "lane.arrive": _Workgroup.arrive,
    "lane.bulk_copy": _Workgroup.bulk_copy, "lane.bulk_store": _Workgroup.bulk_store,
    "lane.bulk_store_wait": _Workgroup.bulk_store_wait, "lane.fragment_store": _Workgroup.fragment_store,
    "lane.wait_phase": _Workgroup.wait_phase, "lane.leave": _Workgroup.leave,
    "lane.shuffle": _Workgroup.shuffle, "lane.uniform": _Workgroup.make_uniform,
    "lane.atom": _Workgroup.atom, "lane.fragment_load": _Workgroup.fragment_load, "lane.async_atom": _Workgroup.async_atom,
    "lane.atom_wait": _Workgroup.atom_wait, "lane.fence_view": _Workgroup.fence_view,
    **lane_values.VALUE_HANDLERS, "scf.for": _Workgroup.for_loop, "scf.if": _Workgroup.if_op, "scf.while": _Workgroup.while_loop,
}
