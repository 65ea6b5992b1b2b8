"""Which values stand in memory: each rule of the plan on a few lines of tile IR."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from tilefw.loops.effects import Effects
from tilefw.loops.plan import StoragePlan, hides_waiting, plan_of
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.text.module import parse

_HEAD = "func.func @k(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %s: i32) {\n%i = tile.iota 0 to 64\n"
_ADD = "{\n^bb0(%a: f32, %b: f32):\n%c = tile.addf %a, %b : f32\ntile.reduce_return %c : f32\n}"


def stored(body: str, disjoint: bool = False) -> list[str]:
    """The names of the stored values of a body."""
    return sorted(str(value.name_hint) for value in planned(body, disjoint).stored)


def planned(body: str, disjoint: bool = False) -> StoragePlan:
    """The plan of a body."""
    module = parse(f"builtin.module {{\n{_HEAD}{body}func.return\n}}\n}}", "test.mlir")
    (function,) = [op for op in nested_ops(module) if isinstance(op, FuncOp)]
    return plan_of(function, Effects(disjoint))


_COPY = "%v = tile.load %x[%i] : !tile.ptr<f32>[tensor<64xi32>]\n%w = tile.addf %v, %v : tensor<64xf32>\n"
_STORE = "tile.store %y[%i], %w : !tile.ptr<f32>[tensor<64xi32>]\n"


def test_a_load_that_one_store_reads_is_read_in_its_loop_where_the_buffers_are_apart() -> None:
    assert stored(_COPY + _STORE, disjoint=True) == []


def test_a_load_is_stored_where_the_store_may_write_what_it_reads() -> None:
    assert stored(_COPY + _STORE) == ["v"]


def test_a_load_is_stored_where_something_between_may_write_what_it_reads() -> None:
    assert stored(_COPY + "tile.barrier\n" + _STORE, disjoint=True) == ["v"]


def test_a_load_before_a_wait_is_stored_since_another_program_may_write_behind_it() -> None:
    wait = "%f = tile.load %y volatile : !tile.ptr<f32>\n"
    assert stored(_COPY + wait + _STORE, disjoint=True) == ["v"]
    assert stored(_COPY + wait.replace("volatile", 'cache ".ca"') + _STORE, disjoint=True) == []


def test_a_load_that_two_statements_read_is_stored_and_cheap_arithmetic_is_not() -> None:
    assert stored(_COPY + _STORE + _STORE, disjoint=True) == ["v"]


def test_dear_arithmetic_that_two_statements_read_is_stored() -> None:
    body = "%v = tile.load %x[%i] : !tile.ptr<f32>[tensor<64xi32>]\n%w = tile.exp %v : tensor<64xf32>\n"
    assert stored(body + _STORE, disjoint=True) == []
    assert stored(body + _STORE + _STORE, disjoint=True) == ["w"]


def test_a_reduction_reads_elements_and_its_result_is_stored() -> None:
    rows = "%t = tile.reshape %v : tensor<64xf32> to tensor<4x16xf32>\n%r = tile.reduce %t axis 1 : tensor<4x16xf32> " + _ADD + "\n"
    load = "%v = tile.load %x[%i] : !tile.ptr<f32>[tensor<64xi32>]\n"
    use = "%j = tile.iota 0 to 4\ntile.store %y[%j], %r : !tile.ptr<f32>[tensor<4xi32>]\n"
    assert stored(load + rows + use, disjoint=True) == ["r"]


def test_dear_arithmetic_is_stored_before_a_loop_that_reads_it() -> None:
    body = (
        "%z = tile.splat %n : i32 to tensor<64xi32>\n%q = tile.divs %i, %z : tensor<64xi32>\n"
        "%p = tile.addi %i, %z : tensor<64xi32>\nscf.for %k = %n to %s step %s : i32 {\n"
        "%f = tile.s2f %q : tensor<64xi32> to tensor<64xf32>\ntile.store %y[%p], %f : !tile.ptr<f32>[tensor<64xi32>]\n}\n"
    )
    assert stored(body) == ["q"]


def test_what_memory_holds_along_another_dim_is_not_written_by_the_reduction_that_reads_it_first() -> None:
    def written_by(strides: str) -> int:
        block = f"%v = tile.load_block %x at (%z, %z : i32, i32) strides ({strides}) : !tile.ptr<f32>, tensor<16x16xf32>\n"
        head = "%z = tile.constant 0 : i32\n%one = tile.constant 1 : i32\n%wide = tile.constant 16 : i32\n"
        use = "%r = tile.reduce %v axis 1 : tensor<16x16xf32> " + _ADD + "\n%s2 = tile.reduce %v axis 1 : tensor<16x16xf32> " + _ADD
        return len(planned(head + block + use + "\n", disjoint=True).written_by)

    assert written_by("%wide, %one : i32, i32") == 1
    assert written_by("%one, %wide : i32, i32") == 0


def test_an_element_hides_the_wait_for_an_addition_where_it_is_dear_and_made() -> None:
    load = "%v = tile.load %x[%i] : !tile.ptr<f32>[tensor<64xi32>]\n"
    plan = planned(load + "%w = tile.exp %v : tensor<64xf32>\n%u = tile.addf %w, %w : tensor<64xf32>\n" + 2 * _STORE, disjoint=True)
    named = {str(value.name_hint): value for op in plan.position for value in op.results}
    assert named["w"] in plan.stored
    assert [hides_waiting(named[name], plan, ()) for name in "vwu"] == [False, False, False]
    assert [hides_waiting(named[name], plan, [named["w"]]) for name in "vwu"] == [False, True, True]
