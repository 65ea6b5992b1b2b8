"""Heaps give the place of an array that was freed to another one, and collectives give back what they took for themselves."""

from itertools import pairwise

import numpy as np
import pytest

import tilefw
from tilefw.kernels.distributed.all_reduce import FORMS, all_reduce
from tilefw.kernels.distributed.matmul_reduce_scatter import matmul_reduce_scatter

ROOM = 1 << 16


@pytest.mark.parametrize("form", FORMS)
def test_a_collective_takes_its_result_alone_from_the_heaps(form):
    node = tilefw.node("reference", 2, heap_bytes=ROOM)
    x = node.array([np.ones(300, np.float32), np.full(300, 2, np.float32)])
    for _ in range(20):
        out = all_reduce(node, x, form)
        assert len(node.heap.arrays) == 2 and (out[1] == 3).all()
        node.free(out)


def test_a_collective_of_collectives_keeps_its_result():
    node = tilefw.node("reference", 2)
    a, b = node.array(np.ones((8, 4), np.float32)), node.array(np.ones((4, 8), np.float32))
    out = matmul_reduce_scatter(node, a, b, "bulk")
    assert node.heap.arrays == [a, b, out] and (out[0] == 8).all()


def test_what_a_failing_collective_took_is_given_back():
    node = tilefw.node("reference", 2, heap_bytes=5000)
    x = node.zeros((256,), "float32")
    with pytest.raises(tilefw.LaunchError, match=r"node\.free") as caught:
        all_reduce(node, x, "ring")
    assert caught.value.code == "TFW0872" and node.heap.arrays == [x]


def test_arrays_never_overlap_and_keep_their_gaps():
    node, rng, live = tilefw.node("reference", 1, heap_bytes=ROOM), np.random.default_rng(1), []
    for _ in range(300):
        if live and rng.random() < 0.5:
            node.free(live.pop(rng.integers(len(live))))
            continue
        try:
            live.append(node.zeros((int(rng.integers(1, 3000)),), "int8"))
        except tilefw.LaunchError:
            assert live
    placed = sorted(live, key=lambda array: array.offset)
    assert node.heap.arrays == placed
    assert all(after.offset - before.offset - before.nbytes >= 1024 for before, after in pairwise(placed))


def test_a_freed_array_is_no_argument_and_is_freed_once():
    node = tilefw.node("reference", 2)
    x = node.zeros((4,))
    node.free(x)
    with pytest.raises(tilefw.LaunchError, match="was freed before"):
        node.free(x)
    with pytest.raises(tilefw.LaunchError, match="or was freed"):
        all_reduce(node, x)


def test_a_node_that_records_gives_no_address_out_twice():
    node = tilefw.node("nvidia-sm80", 2, trace=True)
    first = node.zeros((4,))
    node.free(first)
    assert node.zeros((4,)).offset > first.offset


@pytest.mark.parametrize("shape", [-1, (4, -4), (-4, -4), 2.5, "x", (True,)])
def test_what_is_no_shape_is_told_so(shape):
    node = tilefw.node("reference", 2)
    for make in (node.zeros, node.empty):
        with pytest.raises(tilefw.LaunchError, match="is no extent") as caught:
            make(shape)
        assert caught.value.code == "TFW0872" and node.heap.arrays == []
