"""A loop carries the sums of what it advances and an invariant, and nothing else changes."""

from __future__ import annotations

import pytest
from library_on_chips import lowered
from test_offsets import BOUNDED
from xdsl.dialects.builtin import UnknownLoc
from xdsl.dialects.scf import YieldOp
from xdsl.ir import Block

from tilefw.simt import lane
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.lane.memory import access_properties
from tilefw.simt.lane.promises import promise_of
from tilefw.simt.lower.buffer_bounds import OUTSIDE, literal
from tilefw.simt.lower.linear import carry_linear
from tilefw.simt.lower.loop_carried import Moved, move_offsets, start_with_invariants
from tilefw.tile import types
from tilefw.tile.dialect.base import dense_i64


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


class Accesses(Loop):
    """A loop that loads from what it carries, at `offsets` of each lane that the body does not change."""

    def load(self, offsets, limit=None):
        parts = {"address": offsets, "base": self.carried, **({} if limit is None else {"limit": limit})}
        count = types.shape_of(offsets.type)[0]
        properties = access_properties(",".join(parts), 1, range(count), [0] * count, 0)
        load = lane.LoadOp.create(
            operands=list(parts.values()), result_types=[lane.vector(count, types.f32)], properties=properties
        )
        return self.builder.insert(load)

    def offsets(self, count):
        """Offsets from outside of the loop."""
        values = {"values": dense_i64(tuple(range(count)))}
        return self.before(lane.ConstantsOp.create(result_types=[lane.vector(count, types.i32)], properties=values))

    def before(self, op):
        """The result of an op outside of the loop."""
        self.outer.add_op(op)
        return op.results[0]

    def close(self, centered=False, step=64):
        """What the loop moves, after it has ended; a step of None is not known."""
        step = self.one if step is None else self.before(lane.ConstantOp(step, types.i64))
        self.builder.insert(YieldOp(self.builder.op("addi", self.carried, step)))
        self.builder.leave(self.back)
        return move_offsets(self.builder, self.body, [self.init], [False], {self.carried} if centered else set())


def test_few_offsets_move_in_place_of_their_base():
    loop = Accesses()
    offsets = loop.offsets(2)
    load = loop.load(offsets)
    moved = loop.close()
    assert moved.dropped == {0} and moved.starts == [offsets]
    (carried,) = loop.body.args[1:]
    assert load.operands[0] is carried and load.operands[1] is loop.init
    (following,) = loop.body.last_op.operands
    assert following.owner.operands[0] is carried and isinstance(following.owner.operands[1].owner, lane.ConstantOp)


def test_chosen_offsets_are_chosen_of_the_moving_ones():
    loop = Accesses()
    offsets = loop.offsets(1)
    outside = loop.before(lane.ConstantOp(literal(OUTSIDE), offsets.type))
    mask = loop.builder.op("lts", loop.builder.splat(loop.body.args[0], 1), offsets)
    load = loop.load(loop.builder.op("select", mask, offsets, outside))
    assert loop.close().starts == [offsets]
    assert list(load.operands[0].owner.operands) == [mask, loop.body.args[1], outside]


def test_many_offsets_stay():
    loop = Accesses()
    load = loop.load(loop.offsets(5))
    assert not loop.close().dropped and load.part("base") is loop.carried


def test_a_limit_that_would_move_keeps_its_base():
    loop = Accesses()
    loop.load(loop.offsets(1), loop.builder.constant(100, types.i32))
    assert not loop.close().dropped


@pytest.mark.parametrize(
    ("centered", "step", "moves"), [(False, -64, False), (True, -64, True), (False, None, False), (True, None, True)]
)
def test_a_base_that_may_shrink_moves_only_from_far_below(centered, step, moves):
    """Offsets have no sign: what lies below the first base is reached only if that stands below all of it."""
    loop = Accesses()
    loop.load(loop.offsets(1))
    assert bool(loop.close(centered, step).dropped) is moves


def test_the_loads_of_a_product_have_bases_that_stay():
    function, *_ = lowered("matmul", {}, BOUNDED, True)
    (loop,) = [op for op in function.walk() if op.name == "scf.for"]
    loads = [op for op in loop.walk() if isinstance(op, lane.LoadOp) and not op.shared]
    assert loads and not any(load.part("base") in loop.body.block.args for load in loads)
    assert all(argument.type != types.i64 for argument in loop.body.block.args)


def test_a_mask_from_outside_of_a_loop_is_compared_with_the_rest():
    loop = Loop()
    mask, x = (loop.outer.insert_arg(lane.vector(1, element), 3) for element in (types.i1, types.i32))
    loop.builder.leave(loop.back)
    loop.builder.enter(loop.body, loop=True)
    compared = loop.builder.op("lts", x, loop.builder.splat(loop.body.args[0], 1))
    gated = loop.builder.op("andi", compared, mask)
    inside, most = gated.owner.operands[0].owner.operands[:2], gated.owner.operands[0].owner.operands[2]
    assert gated.owner.name == "lane.lts" and list(inside) == [mask, x] and most.owner.value == (1 << 31) - 1
    assert loop.builder.op("andi", gated, compared).owner.name == "lane.andi"  # neither is from outside


def test_a_part_of_an_offset_that_is_carried_keeps_its_promise():
    outer = Block(arg_types=[types.i32])
    builder = LaneBuilder(outer, UnknownLoc())
    lower, step = builder.constant(0, types.i32), builder.constant(32, types.i32)
    body = Block(arg_types=[types.i32])
    back = builder.enter(body)
    with builder.promising():
        part = builder.op("addi", builder.op("shl", body.args[0], builder.constant(1, types.i32)), outer.args[0])
    used = builder.splat(part, 1)
    builder.insert(YieldOp())
    builder.leave(back)
    moved = Moved()
    carry_linear(builder, body, lower, step, moved)
    (start,), following = moved.starts, body.last_op.operands[0]
    assert used.owner.operands[0] is body.args[1]
    assert promise_of(start.owner) == "exact" and promise_of(following.owner) == "exact"


def test_what_is_computed_of_a_carried_scalar_starts_from_its_start():
    """`left` is asked for itself, and `last` is computed of it: both are carried, and both begin before the loop."""
    outer = Block(arg_types=[types.i32, types.i32])
    end, more = outer.args
    builder = LaneBuilder(outer, UnknownLoc())
    lower, step = builder.constant(0, types.i32), builder.constant(1, types.i32)
    body = Block(arg_types=[types.i32])
    back = builder.enter(body)
    left = builder.op("subi", end, body.args[0])
    last = builder.op("addi", builder.op("muli", left, builder.constant(4, types.i32)), more)
    builder.op("xori", left, last)
    builder.insert(YieldOp())
    builder.leave(back)
    moved = Moved()
    carry_linear(builder, body, lower, step, moved)
    assert len(moved.starts) == 2
    assert {v.owner for op in outer.ops for v in op.operands if isinstance(v.owner, Block)} <= {outer}
