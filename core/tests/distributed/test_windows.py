"""Windows of arrays on other ranks: block pointers and tensor descriptors of a peer's copy, whole or across its edges."""

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld

TARGETS = ["reference", "nvidia-sm80", "amd-cdna3"]
ROWS, COLUMNS = 20, 40


@tilefw.jit
def window(x, rows, columns, row, column, BLOCK: tl.constexpr):
    return tl.make_block_ptr(x, (rows, columns), (columns, 1), (row, column), (BLOCK, BLOCK), (1, 0))


@tilefw.jit
def exchange(x, out, words, rows, columns, PUT: tl.constexpr, BLOCK: tl.constexpr):
    """The window from (8, 32) on, which ends behind the array, goes to the peer's or comes from there."""
    here, there = window(x, rows, columns, 8, 32, BLOCK), window(out, rows, columns, 8, 32, BLOCK)
    if PUT:
        tld.put(here, there, 1 - tld.rank(), wait=False, boundary_check=(0, 1))
    else:
        tld.get(here, there, 1 - tld.rank(), wait=False, boundary_check=(0, 1))
    tld.quiet()
    tld.barrier(words)


@tilefw.jit
def load_by_descriptor(x, out, rows, columns, BLOCK: tl.constexpr):
    shape: tl.constexpr = [BLOCK, BLOCK]
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], shape)
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], shape)
    target.store([8, 32], tld.at(source, 1 - tld.rank()).load([8, 32]))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("way", ["put", "get", "descriptor"])
def test_a_window_across_the_edge_comes_from_the_peer_and_nothing_else(target, way):
    node = tilefw.node(target, 2)
    x = node.array([np.arange(ROWS * COLUMNS, dtype=np.int32).reshape(ROWS, COLUMNS) + 1000 * rank for rank in node.ranks])
    out, words = node.full((ROWS, COLUMNS), -1, "int32"), node.zeros((2,), "int64")
    if way == "descriptor":
        node.launch(load_by_descriptor, (1,), x, out, ROWS, COLUMNS, BLOCK=16, checks="default,races")
    else:
        node.launch(exchange, (1,), x, out, words, ROWS, COLUMNS, PUT=way == "put", BLOCK=16, seed=2, checks="default,races")
    for rank in node.ranks:
        expected = np.full((ROWS, COLUMNS), -1, np.int32)
        expected[8:, 32:] = x[1 - rank][8:, 32:]
        assert np.array_equal(out[rank], expected)
