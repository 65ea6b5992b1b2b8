"""Selection of barriers that count: who makes them, arrives, waits."""

from __future__ import annotations

from collections.abc import Callable

from tilefw.machine.inst import Slice
from tilefw.simt import lane
from tilefw.simt.select import declared
from tilefw.simt.select.code import Code
from tilefw.simt.select.memory import MemorySelection


class CountingBarrierSelection:
    """Emits what concerns counting barriers, in order."""

    def __init__(self, memory: MemorySelection) -> None:
        self.memory = memory
        self.code: Code = memory.code
        self.chip = memory.chip
        self.cluster = memory.cluster

    def begin(self, op: lane.BeginBarriersOp) -> None:
        """The first thread of each workgroup makes its own."""
        code, chip, first = self.code, self.chip, self._first_thread()
        base, offset = code.displacement(self.memory.register(op.operands[0], 0))
        size = chip.description.barrier_bytes
        for number in range(op.number):
            at = offset + number * size
            self._act(lambda at=at: chip.begin_barrier(code, base, at, op.count, first))

    def show(self) -> None:
        """By the thread that made them."""
        first = self._first_thread()
        self._act(lambda: self.chip.show_barriers(self.code, first))

    def _first_thread(self) -> Slice:
        first = self.code("eqi.i32", self.chip.thread_id(self.code), self.code.i32(0))
        assert isinstance(first, Slice)
        return first

    def arrive(self, op: lane.ArriveOp) -> None:
        """Once for each thread."""
        base, offset = self.code.displacement(self.memory.register(op.address, 0))
        when, announced = self.memory.guard(op.part("when"), 0), op.part("announced")
        number = op.bytes if announced is None else self.memory.register(announced, 0)
        if not (when is None or isinstance(when, Slice)):
            return
        if self.cluster.workgroups == 1:
            self._act(lambda: self.chip.arrive(self.code, base, offset, number, op.copies, when))
            return
        for peer in self.cluster.peers(base, 1 if op.first else self.cluster.workgroups):
            self._act(lambda peer=peer: self.chip.arrive_at_peer(self.code, peer, offset, number, when))

    def wait(self, op: lane.WaitPhaseOp) -> None:
        """Until the phase is over."""
        base, offset = self.code.displacement(self.memory.register(op.address, 0))
        parity = self.memory.register(op.parity, 0)
        self._act(lambda: self.chip.wait_phase(self.code, base, offset, parity))

    def _act(self, emit: Callable[[], None]) -> None:
        declared.act(self.chip, self.code, "barriers that count", emit)
