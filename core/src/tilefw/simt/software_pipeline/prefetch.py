"""Prefetched loads of one loop: their prologue, their steady state, and where the body finds the values."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.ir import SSAValue

from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.simt.software_pipeline.early_load import Values, copy, guarded
from tilefw.simt.software_pipeline.emitter import Emitter, always
from tilefw.simt.software_pipeline.epilogue import Epilogue
from tilefw.simt.software_pipeline.loop_frame import LoopFrame
from tilefw.simt.software_pipeline.other_values import with_other_values
from tilefw.simt.software_pipeline.plan import LoadChain
from tilefw.tile import types
from tilefw.tile.dialect.shared_ops import AllocSharedOp, CommitOp, LoadSharedOp, SlotOp, StoreSharedOp, WaitOp, shared


class PrefetchedLoads(ABC):
    """A chain of levels. The state of a level is the loop-carried values that its slice needs, by index, for its next iteration."""

    def __init__(self, frame: LoopFrame, chain: LoadChain) -> None:
        self.frame = frame
        self.chain = chain
        self.states = [{index: frame.loop.iter_args[index] for index in level.slice.carried} for level in chain.levels]
        self.loaded: list[dict[Load, SSAValue]] = [{} for _ in chain.levels]  # what addresses are computed from

    @abstractmethod
    def issue(self, emitter: Emitter, values: Values, when: SSAValue, iteration: int | None) -> None:
        """Issue the loads on other operands: for an `iteration` of the prologue or, with None, for a later one than the loop's
        own."""

    @abstractmethod
    def begin_iteration(self) -> None:
        """Add what the loop does first in an iteration."""

    @abstractmethod
    def use(self) -> None:
        """Have the body read the loaded values from where they wait."""

    @abstractmethod
    def in_epilogue(self, load: Load, emitter: Emitter, epilogue: Epilogue) -> SSAValue:
        """The value of a load in one of the last iterations, where those are peeled."""

    @property
    def issue_point(self) -> Emitter:
        """Where the loop issues the loads."""
        return self.frame.top

    def prologue(self) -> None:
        """Issue the loads of the first iterations, deeper levels first."""
        levels = self.chain.levels
        for iteration in range(levels[-1].distance):
            induction, when = self.frame.first(iteration)
            for depth in reversed(range(len(levels))):
                if iteration < levels[depth].distance:
                    inner = self.loaded[depth + 1] if depth + 1 < len(levels) else {}
                    self._run(depth, self.frame.outside, induction, when, inner, iteration)

    def steady_state(self) -> None:
        """The steady state: what the loop issues in each iteration. `use` follows when all parts of a plan have come so far: a load
        of one may be what another computes addresses from."""
        self.begin_iteration()
        frame = self.frame
        for number, loaded in enumerate(self.loaded):
            self.loaded[number] = {load: frame.carry(value, named(load, "ahead")) for load, value in loaded.items()}
        for number, state in enumerate(self.states):
            names = {index: frame.body.args[1 + index].name_hint for index in state}
            self.states[number] = {index: frame.carry(value, names[index]) for index, value in state.items()}
        carried = [*self.loaded[1:], {}]
        for depth, level in enumerate(self.chain.levels):
            emitter = frame.top if depth else self.issue_point
            self._run(depth, emitter, *frame.ahead(emitter, level.distance), carried[depth], None)
        frame.yield_next(*(value for loaded in self.loaded for value in loaded.values()))
        frame.yield_next(*(value for state in self.states for value in state.values()))

    def _run(
        self, depth: int, emitter: Emitter, induction: SSAValue, when: SSAValue, inner: dict[Load, SSAValue], iteration: int | None
    ) -> None:
        """One level for one iteration; its state moves on."""
        level = self.chain.levels[depth]
        values, self.states[depth] = level.slice.run(self.frame.loop, emitter, induction, self.states[depth], inner)
        if depth:
            self.loaded[depth] = {load: guarded(load, emitter, values, when) for load in level.loads}
        else:
            self.issue(emitter, values, when, iteration)


class Rings(PrefetchedLoads):
    """Loads that go through rings of shared slots, which all move on together."""

    def __init__(self, frame: LoopFrame, chain: LoadChain) -> None:
        super().__init__(frame, chain)
        self.rings = {load: self._allocate(load) for load in chain.loads}
        self.read = self.write = frame.outside.constant(0, types.i32)

    def _allocate(self, load: Load) -> SSAValue:
        type = load.result.type
        ring = shared(self.chain.slots, types.shape_of(type), types.element_of(type))
        value = self.frame.outside.insert(AllocSharedOp(ring), load.location).results[0]
        value.name_hint = named(load, "ring")
        return value

    def slot(self, emitter: Emitter, load: Load, iteration: int | None) -> SSAValue:
        """The slot to fill for an `iteration` of the prologue or, with None, for a later one than the loop's own."""
        slot = self.write if iteration is None else emitter.constant(iteration, types.i32)
        phase = self.chain.distance if iteration is None else None
        view = emitter.insert(SlotOp(self.rings[load], slot, phase), load.location).results[0]
        view.name_hint = named(load, "next")
        return view

    def use(self) -> None:
        for load in self.rings:
            emitter = Emitter(load, self.frame.outside)
            load.result.replace_all_uses_with(self.taken(load, self._landed(load, emitter, self.read, 0), emitter))

    def in_epilogue(self, load: Load, emitter: Emitter, epilogue: Epilogue) -> SSAValue:
        slot = self.frame.after(self.read) if self.frame.slot is None else epilogue.value(self.frame.slot)
        return self.taken(load, self._landed(load, emitter, slot, None), emitter)

    def _landed(self, load: Load, emitter: Emitter, slot: SSAValue, phase: int | None) -> SSAValue:
        """What a slot holds for a load."""
        view = emitter.insert(SlotOp(self.rings[load], slot, phase)).results[0]
        view.name_hint = named(load, "slot")
        value = emitter.insert(LoadSharedOp(view)).results[0]
        value.name_hint = load.result.name_hint
        return value

    def taken(self, load: Load, value: SSAValue, emitter: Emitter) -> SSAValue:
        """What was read from a slot as the load itself would give it."""
        return value


class AsyncCopies(Rings):
    """Rings that asynchronous copies fill."""

    @property
    def issue_point(self) -> Emitter:
        return self.frame.end if self.chain.compact else self.frame.top

    def begin_iteration(self) -> None:
        self.frame.top.insert(WaitOp(self.chain.distance - 1))
        frame, zero, count = self.frame, self.read, self.chain.slots
        for epilogue in frame.epilogues:
            if epilogue.following:  # before the last one stands a wait for all, whether there is an iteration or not
                epilogue.begin_with(WaitOp(epilogue.following))
        if count == 1:
            return
        if frame.slot is None:
            self.read = frame.carry(zero, "read_slot")
            frame.yield_next(next_slot(frame.end, self.read, zero, count))
        else:
            self.read = frame.slot
        self.write = self.read
        if not self.chain.compact:  # the slot to fill is the one that was read last
            self.write = frame.carry(frame.outside.constant(count - 1, types.i32), "write_slot")
            frame.yield_next(self.read)

    def issue(self, emitter: Emitter, values: Values, when: SSAValue, iteration: int | None) -> None:
        for load in self.rings:
            if always(when) is False:
                continue
            view = self.slot(emitter, load, iteration)
            emitter.insert(copy(load, view, values, None if always(when) else when), load.location)
        emitter.insert(CommitOp())

    def taken(self, load: Load, value: SSAValue, emitter: Emitter) -> SSAValue:
        return with_other_values(load, value, emitter)


class StagedStores(Rings):
    """Rings of one slot, or of two in alternation, filled at the end of an iteration with what was loaded at its top."""

    def begin_iteration(self) -> None:
        if self.chain.slots > 1:
            frame = self.frame
            self.read = frame.carry(self.read, "read_slot")
            self.write = frame.end.row("subi", frame.end.constant(1, types.i32), self.read)
            frame.yield_next(self.write)

    def issue(self, emitter: Emitter, values: Values, when: SSAValue, iteration: int | None) -> None:
        loaded = {load: guarded(load, emitter, values, when) for load in self.rings}
        store_point = emitter if iteration is not None else self.frame.end
        for load, value in loaded.items():
            store_point.insert(StoreSharedOp(self.slot(store_point, load, iteration), value), load.location)


class LoadedRegisters(PrefetchedLoads):
    """Loads whose tiles the loop carries until their iteration: `waiting`, the next iteration's first."""

    def __init__(self, frame: LoopFrame, chain: LoadChain) -> None:
        super().__init__(frame, chain)
        self.waiting: list[dict[Load, SSAValue]] = []

    def begin_iteration(self) -> None:
        self.waiting = [{load: self.frame.carry(v, named(load, "ahead")) for load, v in row.items()} for row in self.waiting]

    def issue(self, emitter: Emitter, values: Values, when: SSAValue, iteration: int | None) -> None:
        self.waiting.append({load: guarded(load, emitter, values, when) for load in self.chain.loads})
        if iteration is None:
            self.frame.yield_next(*(value for row in self.waiting[1:] for value in row.values()))

    def use(self) -> None:
        for load, value in self.waiting[0].items():
            load.result.replace_all_uses_with(value)

    def in_epilogue(self, load: Load, emitter: Emitter, epilogue: Epilogue) -> SSAValue:
        return self.frame.after(self.waiting[0][load])


def next_slot(emitter: Emitter, slot: SSAValue, zero: SSAValue, count: int) -> SSAValue:
    """The slot behind one of a ring of so many."""
    more = emitter.row("addi", slot, emitter.constant(1, types.i32))
    return emitter.row("select", emitter.row("eqi", more, emitter.constant(count, types.i32)), zero, more)


def named(load: Load, what: str) -> str | None:
    """A name for what belongs to a load."""
    return None if load.result.name_hint is None else f"{load.result.name_hint}_{what}"
