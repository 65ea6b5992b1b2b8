"""Which loads of a loop are copied a turn early: those that nothing in it changes, at places that are known a turn before."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from tilefw.loops.early import early_loads
from tilefw.loops.effects import Effects
from tilefw.loops.plan import plan_of
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.text.module import parse

_HEAD = "func.func @k(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %z: !tile.ptr<i32>, %n: i32) {\n%zero = tile.constant 0 : i32\n"
_ONE = "%one = tile.constant 1 : i32\n"


def _load(name: str, at: str) -> str:
    return f"%{name} = tile.load_block %x at ({at} : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<64xf32>\n"


def _store(base: str, value: str) -> str:
    return f"tile.store_block %{base}, %{value} at (%i : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<64xf32>\n"


def early(body: str, disjoint: bool = True, carried: str = "", end: str = "") -> tuple[int, int]:
    """How many loads are copied, and how many of them early."""
    loop = f"scf.for %i = %zero to %n step %one {carried} : i32 {{\n{body}{end}}}\n"
    head = "%result = " if carried else ""
    module = parse(f"builtin.module {{\n{_HEAD}{_ONE}{head}{loop}func.return\n}}\n}}", "test.mlir")
    (function,) = [op for op in nested_ops(module) if isinstance(op, FuncOp)]
    plan = plan_of(function, Effects(disjoint), copies=True)
    return len(plan.copied), len(early_loads(plan, Effects(disjoint)))


def test_a_load_at_the_counter_is_early_where_the_loop_writes_elsewhere() -> None:
    body = _load("v", "%i") + _store("y", "v")
    assert early(body) == (1, 1)
    assert early(body, disjoint=False) == (1, 0)


def test_a_load_of_what_the_loop_writes_is_not_early() -> None:
    assert early(_load("v", "%i") + _store("x", "v")) == (1, 0)


def test_a_place_that_is_computed_or_carried_is_known_a_turn_before_and_one_that_is_loaded_is_not() -> None:
    computed = "%j = tile.muli %i, %n : i32\n" + _load("v", "%j") + _store("y", "v")
    assert early(computed) == (1, 1)
    carried = _load("v", "%k") + _store("y", "v") + "%l = tile.addi %k, %n : i32\n"
    assert early(carried, carried="iter_args(%k = %zero) -> (i32)", end="scf.yield %l : i32\n") == (1, 1)
    number = "%p = tile.addptr %z, %i : !tile.ptr<i32>, i32\n%j = tile.load %p : !tile.ptr<i32>\n"
    assert early(number + _load("v", "%j") + _store("y", "v")) == (1, 0)


def test_a_load_behind_a_barrier_of_the_loop_is_not_early() -> None:
    assert early("tile.barrier\n" + _load("v", "%i") + _store("y", "v")) == (1, 0)


def test_a_load_of_a_loop_that_polls_is_not_early() -> None:
    poll = "%p = tile.addptr %z, %i : !tile.ptr<i32>, i32\n%f = tile.load %p volatile : !tile.ptr<i32>\n"
    assert early(poll + _load("v", "%i") + _store("y", "v")) == (1, 0)
    assert early(poll.replace(" volatile", "") + _load("v", "%i") + _store("y", "v")) == (1, 1)
