"""Programs that threads run on shared memory, drawn at random: every two accesses of a buffer meet in different waves.

Access number r of a program goes, in thread t, to word (t + r · lanes) of its buffer; in a loop the waves change from iteration to
iteration as well. Every store writes words that were never written before. So two accesses without a barrier between them
are a race whenever at least one is a store, and the lane interpreter sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnknownLoc
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ForOp, IfOp, YieldOp
from xdsl.ir import Block, Region, SSAValue

from tilefw.simt import lane
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.tile import types

LANES, ACCESSES = 1, 32
CHIP = ChipDescription("narrow", lanes=LANES, pointer_bits=64, access_bytes=16, shared_bytes=1 << 14)
MACHINE = LaneMachine(CHIP, 4 * ACCESSES)  # two more bits of the wave: the parity of the loops' iterations
WORDS = MACHINE.threads
BUFFERS = 3
_VEC = lane.vector(1, types.i32)


@dataclass(frozen=True)
class Access:
    """A load or store of a buffer."""

    buffer: int
    store: bool


@dataclass(frozen=True)
class Loop:
    """Runs up to 3 times, as two bits of the first argument say, which no other of the first 16 loops reads."""

    body: tuple[Any, ...]


@dataclass(frozen=True)
class Branch:
    """Takes one way or the other as a bit of the second argument says: another one in each iteration."""

    then: tuple[Any, ...]
    other: tuple[Any, ...]


@dataclass(frozen=True)
class Scratch:
    """A buffer of its own, written and read."""


def programs() -> st.SearchStrategy[tuple[Any, ...]]:
    """Statements of a function."""
    leaves = st.builds(Access, st.integers(0, BUFFERS - 1), st.booleans()) | st.just(Scratch())
    bodies = st.lists(leaves, min_size=1, max_size=2).map(tuple)
    branches = st.builds(Branch, bodies, bodies | st.just(()))
    inner = st.builds(Loop, bodies)
    loops = st.builds(Loop, st.lists(leaves | branches | inner, min_size=1, max_size=3).map(tuple))
    return st.lists(leaves | branches | loops, min_size=1, max_size=3).map(tuple)


class _Builder:
    def __init__(self) -> None:
        self.entry = Block(arg_types=[types.i32, types.i32])
        self.b = LaneBuilder(self.entry, UnknownLoc())
        self.trips, self.flags = self.entry.args
        self.loops = self.branches = 0
        self.thread = self.b.numbered("id", lambda: lane.ThreadIdOp.create(result_types=[_VEC]))
        self.iterations: list[SSAValue] = []
        self.accesses = 0
        self.buffers = [self.b.alloc(4 * WORDS, 16, f"buffer {i}") for i in range(BUFFERS)]

    def number(self, value: int) -> SSAValue:
        return self.b.constant(value, _VEC)

    def word(self) -> tuple[SSAValue, SSAValue]:
        """The word that a thread accesses next, and a number that no other access gives it."""
        b, turn = self.b, self.accesses % ACCESSES
        self.accesses += 1
        word = b.op("addi", self.thread, self.number(turn * LANES))
        salt = b.op("addi", self.thread, self.number(self.accesses << 20))
        for depth, iteration in enumerate(self.iterations):
            odd = b.op("andi", b.splat(iteration, 1), self.number(1))
            word = b.op("addi", word, b.op("muli", odd, self.number(LANES * ACCESSES << depth)))
            salt = b.op("addi", salt, b.op("muli", b.splat(iteration, 1), self.number(1 << 10 + 4 * depth)))
        return b.op("andi", word, self.number(WORDS - 1)), salt

    def access(self, buffer: lane.AllocOp, store: bool) -> None:
        b = self.b
        word, salt = self.word()
        address = b.op("addi", b.splat(buffer.result, 1), b.op("muli", word, self.number(4)))
        properties = {
            **lane.access_properties("address,value" if store else "address", 1, [0], [0], buffer.id),
            "space": StringAttr(lane.SHARED),
        }
        if store:
            b.insert(lane.StoreOp.create(operands=[address, salt], properties=properties))
        else:
            b.insert(lane.LoadOp.create(operands=[address], result_types=[_VEC], properties=properties))

    def statements(self, statements: tuple[Any, ...]) -> None:
        for statement in statements:
            if isinstance(statement, Access):
                self.access(self.buffers[statement.buffer], statement.store)
            elif isinstance(statement, Scratch):
                scratch = self.b.alloc(4 * WORDS, 16, "scratch")
                self.access(scratch, True)
                self.access(scratch, False)
            elif isinstance(statement, Loop):
                self.loop(statement)
            else:
                self.branch(statement)

    def loop(self, statement: Loop) -> None:
        trips = self.bits(self.trips, 2 * self.loops, 3)
        self.loops += 1
        body = Block(arg_types=[types.i32])
        outer = self.b.enter(body, loop=True)
        self.iterations.append(body.args[0])
        self.statements(statement.body)
        self.iterations.pop()
        self.b.insert(YieldOp())
        self.b.leave(outer)
        zero, one = (self.b.constant(i, types.i32) for i in (0, 1))
        self.b.insert(ForOp(zero, trips, one, [], Region(body)))

    def bits(self, value: SSAValue, at: int | SSAValue, mask: int) -> SSAValue:
        b = self.b
        at = b.op("andi", b.constant(at, types.i32) if isinstance(at, int) else at, b.constant(31, types.i32))
        return b.op("andi", b.op("shru", value, at), b.constant(mask, types.i32))

    def branch(self, statement: Branch) -> None:
        b = self.b
        at = b.constant(7 * self.branches, types.i32)
        self.branches += 1
        for depth, iteration in enumerate(self.iterations):
            at = b.op("addi", at, b.op("muli", iteration, b.constant(1 + 2 * depth, types.i32)))
        taken = b.op("eqi", self.bits(self.flags, at, 1), b.constant(1, types.i32))
        regions = []
        for statements in (statement.then, statement.other):
            block = Block()
            outer = self.b.enter(block)
            self.statements(statements)
            self.b.insert(YieldOp())
            self.b.leave(outer)
            regions.append(Region(block))
        self.b.insert(IfOp(taken, [], *regions))


def _used(statements: tuple[Any, ...]) -> list[int]:
    found: list[int] = []
    for statement in statements:
        if isinstance(statement, Access):
            found.append(statement.buffer)
        elif isinstance(statement, Loop):
            found += _used(statement.body)
        elif isinstance(statement, Branch):
            found += _used(statement.then) + _used(statement.other)
    return found


def build(statements: tuple[Any, ...]) -> FuncOp | None:
    """The function: every buffer that is used is written once, then the statements run. Its arguments are the trips of the loops
    and the ways at the branches.

    None for more than ACCESSES accesses, of which some would meet in the same waves.
    """
    builder = _Builder()
    for buffer in sorted(set(_used(statements))):
        builder.access(builder.buffers[buffer], True)
    builder.statements(statements)
    if builder.accesses > ACCESSES:
        return None
    builder.b.insert(ReturnOp())
    function = FuncOp("f", ([a.type for a in builder.entry.args], []), Region(builder.entry))
    function.attributes["lane.waves"] = IntegerAttr(MACHINE.waves, types.i64)  # type: ignore[arg-type]
    return function
