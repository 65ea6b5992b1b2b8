"""The library's collectives are right and without findings on nodes of every kind of device, for sizes that no block divides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.index import COLLECTIVES, Collective

_FORMS = [(name, form) for name, one in COLLECTIVES.items() for form in one.forms]
_NODES = [(target, ranks) for target in ("reference", "nvidia-sm80", "amd-cdna3") for ranks in (2, 3, 4, 8)]
_EACH_DAY = [("reference", 4), ("nvidia-sm80", 3), ("amd-cdna3", 2)]  # in turn, one of them with each form
_RUNS = [
    pytest.param(*form, *node, marks=() if node == _EACH_DAY[number % 3] else pytest.mark.campaign)
    for number, form in enumerate(_FORMS) for node in _NODES
]


def _sizes(one: Collective) -> tuple[int, str]:
    return one.small, one.dtypes[0]


@pytest.mark.parametrize(("name", "form", "target", "ranks"), _RUNS)
def test_every_rank_has_what_numpy_says(name: str, form: str, target: str, ranks: int) -> None:
    one = COLLECTIVES[name]
    arguments = one.draw(np.random.default_rng(len(name) + ranks), ranks, *_sizes(one))
    node = tilefw.node(target, ranks)
    checks = "all" if target == "reference" else "all,weak_memory"
    found = one.run(node, *[node.array(list(argument)) for argument in arguments], form, seed=ranks, checks=checks)
    assert one.wrong(found, arguments) == []


def test_a_ring_of_one_rank_sends_nothing() -> None:
    node = tilefw.node("reference", 1)
    x = node.array(np.arange(777, dtype=np.float32))
    assert (COLLECTIVES["all_reduce"].run(node, x, "ring", checks="all")[0] == x[0]).all()


@pytest.mark.parametrize("name", list(COLLECTIVES))
def test_a_form_that_there_is_not_is_refused(name: str) -> None:
    """By a collective that a program calls too, where another form would be right as well and go unnoticed."""
    one, node = COLLECTIVES[name], tilefw.node("reference", 2)
    arguments = one.draw(np.random.default_rng(1), 2, 3, one.dtypes[0])
    with pytest.raises(tilefw.UsageError, match=f"{name} has no form 'bulky'"):
        one.run(node, *map(node.array, map(list, arguments)), "bulky")


@pytest.mark.parametrize("name", ["all_reduce", "reduce_scatter", "rmsnorm_all_reduce"])
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_terms_that_fp32_does_not_hold_are_refused(name: str, dtype: str) -> None:
    node = tilefw.node("reference", 2)
    arrays = [node.full((2, 4), 2**24 + 1, dtype), node.zeros((4,))][: 1 + ("norm" in name)]
    with pytest.raises(tilefw.LaunchError, match=f"{name} adds up in fp32, not in {dtype}"):
        COLLECTIVES[name].run(node, *arrays)


@pytest.mark.parametrize("name", ["all_to_all", "reduce_scatter", "matmul_reduce_scatter"])
def test_what_has_no_equal_parts_is_refused(name: str) -> None:
    node = tilefw.node("reference", 2)
    with pytest.raises(tilefw.LaunchError, match="an extent of 7 has no 2 equal parts"):
        arrays = [node.zeros((7, 1)), node.zeros((1, 1))] if "matmul" in name else [node.zeros((7,))]
        COLLECTIVES[name].run(node, *arrays)


@pytest.mark.parametrize("name, shapes, said", [
    ("matmul_all_reduce", [(4, 3), (5, 4)], r"b has the shape \(5, 4\)"),
    ("rmsnorm_all_reduce", [(4, 3), (4,)], r"weight has the shape \(4,\)"),
    ("ring_attention", [(1, 4, 3), (1, 4, 3), (1, 5, 3)], r"v has the shape \(1, 5, 3\)"),
])
def test_shapes_that_do_not_go_together_are_refused(name: str, shapes: list[tuple[int, ...]], said: str) -> None:
    node = tilefw.node("reference", 2)
    with pytest.raises(tilefw.LaunchError, match=said):
        COLLECTIVES[name].run(node, *[node.zeros(shape) for shape in shapes])


def test_more_keys_than_there_is_room_for_are_refused() -> None:
    node = tilefw.node("reference", 2)
    q, k, v = node.zeros((1, 2, 4)), node.zeros((1, 2, 8, 4)), node.zeros((1, 2, 8, 4))
    with pytest.raises(tilefw.LaunchError, match="lengths of rank 1 are from 9 to 9, and there is room for 8"):
        COLLECTIVES["distributed_decode"].run(node, q, k, v, node.array([np.array([length], np.int32) for length in (8, 9)]))


def test_more_rows_than_an_expert_takes_are_refused() -> None:
    arguments = COLLECTIVES["moe_dispatch_combine"].draw(np.random.default_rng(1), 2, 9, "float16")
    node = tilefw.node("reference", 2)
    with pytest.raises(tilefw.LaunchError, match="rows to one expert, which takes 2 of a rank"):
        COLLECTIVES["moe_dispatch_combine"].run(node, *map(node.array, map(list, arguments)), capacity=2)


def test_a_causal_ring_sees_the_positions_up_to_its_own() -> None:
    one, node = COLLECTIVES["ring_attention"], tilefw.node("amd-cdna3", 2)
    arguments = one.draw(np.random.default_rng(5), 2, 21, "float32")
    found = one.run(node, *map(node.array, map(list, arguments)), causal=True, seed=5, checks="all")
    assert one.wrong(found, arguments, {"causal": True}) == []
    assert one.wrong(found, arguments) == [0, 1]


@pytest.mark.parametrize("name", list(COLLECTIVES))
def test_a_rank_that_lacks_a_part_is_wrong(name: str) -> None:
    """What the bounds would let pass is no check."""
    one = COLLECTIVES[name]
    arguments = one.draw(np.random.default_rng(3), 2, *_sizes(one))
    found = [expected.value.astype(np.float32) for expected in one.expected(*arguments)]
    assert one.wrong(found, arguments) == []
    found[1].flat[7] += 0.01
    assert one.wrong(found, arguments) == [1]


@tilefw.jit
def taken(x_ptr, out_ptr, flag_ptr, WAITS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if tld.rank() == 0:
        tld.put_signal(x_ptr + at, out_ptr + at, flag_ptr, 1)
    else:
        if WAITS:
            tld.wait(flag_ptr)
        tl.store(x_ptr + at, tl.load(out_ptr + at))


@pytest.mark.parametrize("waits", [True, False])
def test_a_wait_that_is_left_out_is_a_race(waits: bool) -> None:
    node = tilefw.node("reference", 2)
    arrays: list[Any] = [node.array(np.arange(64, dtype=np.int32)), node.zeros((64,), "int32"), node.zeros((1,), "int32")]
    try:
        node.launch(taken, (1,), *arrays, WAITS=waits, BLOCK=64, seed=1, checks="all")
    except tilefw.CheckError as error:
        assert not waits and "races" in str(error)
    else:
        assert waits


@tilefw.jit
def announced(x_ptr, out_ptr, flag_ptr, SCOPE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if tld.rank() == 0:
        tld.put(x_ptr + at, out_ptr + at, 1)
        tld.signal(flag_ptr, 1, scope=SCOPE)
    else:
        before = tl.load(out_ptr + at)
        tld.wait(flag_ptr, scope=SCOPE)
        tl.store(x_ptr + at, tl.load(out_ptr + at) + 0 * before)


@pytest.mark.parametrize("target", ["nvidia-sm80", "amd-cdna3"])
@pytest.mark.parametrize("scope", ["system", "device"])
def test_a_signal_of_one_device_may_come_before_the_data_of_another(target: str, scope: str) -> None:
    wrong = []
    for seed in range(1, 5):
        node = tilefw.node(target, 2)
        x = node.array(np.arange(1, 65, dtype=np.int32))
        arrays = [x, node.zeros((64,), "int32"), node.zeros((1,), "int32")]
        node.launch(announced, (1,), *arrays, SCOPE=scope, BLOCK=64, seed=seed, checks="weak_memory")
        wrong.append(bool((x[1] != np.arange(1, 65)).any()))
    assert any(wrong) == (scope == "device")
