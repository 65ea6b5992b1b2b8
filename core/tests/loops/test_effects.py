"""What may overlap and what may wait, asked of a few lines of tile IR."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from tilefw.loops.access import access_of
from tilefw.loops.effects import Effects
from tilefw.tile.dialect import ops
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.text.module import parse

_TEXT = """builtin.module {
func.func @k(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32) {
  %one = tile.constant 1 : i32
  %zero = tile.constant 0 : i32
  %p = tile.addptr %x, %n : !tile.ptr<f32>, i32
  %v = tile.load_block %p at (%zero : i32) strides (%one : i32) shape (%n : i32) checks [upper] : !tile.ptr<f32>, tensor<64xf32>
  %old = tile.atomic_rmw add relaxed device %y, %f : !tile.ptr<f32>
  tile.store_block %y, %v at (%zero : i32) strides (%n : i32) : !tile.ptr<f32>, tensor<64xf32>
  func.return
}
}"""


def _ops(order: str = "relaxed"):
    text = _TEXT.replace("relaxed", order).replace("%old", "%f = tile.constant 1.0 : f32\n  %old")
    module = parse(text, "test.mlir")
    (function,) = [op for op in nested_ops(module) if isinstance(op, FuncOp)]
    listed = nested_ops(function)
    (load,) = [op for op in listed if isinstance(op, ops.LoadBlockOp)]
    (store,) = [op for op in listed if isinstance(op, ops.StoreBlockOp)]
    return function, load, store


def test_arguments_overlap_unless_the_launch_says_that_they_do_not() -> None:
    function, load, store = _ops()
    x, y, _ = function.body.block.args
    assert Effects().may_overlap(load.base, store.base)
    assert not Effects(disjoint=True).may_overlap(load.base, store.base)
    assert Effects(disjoint=True).may_overlap(load.base, x) and not Effects(disjoint=True).may_overlap(x, y)


def test_a_load_waits_behind_a_relaxed_atomic_elsewhere_and_behind_no_ordered_one() -> None:
    _, load, store = _ops("relaxed")
    assert Effects(disjoint=True).may_wait(load, load.base, store)
    assert not Effects().may_wait(load, load.base, store)
    for order in ("acquire", "release", "acq_rel"):
        _, load, store = _ops(order)
        assert not Effects(disjoint=True).may_wait(load, load.base, store)


def test_the_view_of_an_access_has_its_dims_bounds_and_root() -> None:
    function, load, store = _ops()
    view = access_of(load)
    assert view.dims is not None and view.dims[0].unit and view.dims[0].bound is not None and not view.dims[0].lower
    assert view.bounded and view.roots == {function.body.block.args[0]} and view.element == "f32"
    other = access_of(store)
    assert other.dims is not None and not other.dims[0].unit and not other.bounded
