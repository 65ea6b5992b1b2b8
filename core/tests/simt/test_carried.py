"""A loop carries the sums of what it advances and an invariant, and nothing else changes."""

from __future__ import annotations

from test_chips import lowered
from test_offsets import BOUNDED
from xdsl.dialects.builtin import UnknownLoc
from xdsl.dialects.scf import YieldOp
from xdsl.ir import Block

from tilefw.simt import lane
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.lower.carried import start_with_invariants
from tilefw.tile import types


class Loop:
    """A body that carries one i64, which it advances by 64; `before` and `inside` add to it what stands there."""

    def __init__(self) -> None:
        self.outer = Block(arg_types=[types.i64, types.i64, types.i64])
        self.init, self.one, self.other = self.outer.args
        self.builder = LaneBuilder(self.outer, UnknownLoc())
        self.body = Block(arg_types=[types.i32, types.i64])
        self.carried = self.body.args[1]
        self.back = self.builder.enter(self.body)  # a branch's region, so that invariants are not moved by the builder itself

    def plus(self, value):
        return self.builder.op("addi", self.carried, value)

    def end(self, wanted=False):
        """The start, after the loop has ended."""
        self.builder.insert(YieldOp(self.builder.op("addi", self.carried, self.builder.constant(64, types.i64))))
        self.builder.leave(self.back)
        (start,) = start_with_invariants(self.builder, self.body, [self.init], [wanted])
        return start

    def sums(self):
        return sum(isinstance(op, lane.ELEMENTWISE["addi"]) for op in self.body.ops)


def test_the_start_has_the_invariant():
    loop = Loop()
    use = loop.builder.op("muli", loop.plus(loop.one), loop.one)
    start = loop.end()
    assert list(start.owner.operands) == [loop.init, loop.one] and start.owner.parent is loop.outer
    assert use.owner.operands[0] is loop.carried and loop.sums() == 1


def test_two_invariants_stay_in_the_loop():
    loop = Loop()
    loop.builder.op("muli", loop.plus(loop.one), loop.plus(loop.other))
    assert loop.end() is loop.init and loop.sums() == 3


def test_what_is_taken_as_it_is_stays():
    loop = Loop()
    loop.builder.op("muli", loop.plus(loop.one), loop.carried)
    assert loop.end() is loop.init and loop.sums() == 2


def test_what_the_body_makes_is_not_invariant():
    loop = Loop()
    loop.plus(loop.builder.op("exts", loop.body.args[0], result=types.i64))
    assert loop.end() is loop.init and loop.sums() == 2


def test_a_last_value_that_is_wanted_stays():
    loop = Loop()
    loop.plus(loop.one)
    assert loop.end(wanted=True) is loop.init and loop.sums() == 2


def test_a_sum_that_is_also_handed_on_stays():
    loop = Loop()
    step = loop.builder.constant(64, types.i64)
    loop.builder.op("muli", loop.plus(step), loop.one)
    assert loop.end() is loop.init and loop.sums() == 1


def test_the_bases_of_a_product_are_added_up_before_its_loop():
    function, *_ = lowered("matmul", {}, BOUNDED, True)
    (loop,) = [op for op in function.walk() if op.name == "scf.for"]
    loads = [op for op in loop.walk() if isinstance(op, lane.LoadOp) and not op.shared]
    assert loads and all(load.part("base") in loop.body.block.args for load in loads)
