"""Where an element is not all one wave's, a store to what others loaded waits for all of them; nothing else does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from made_up import PLAIN
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp

import tilefw
import tilefw.language as tl
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.compilation import kernel_source
from tilefw.simt import lane
from tilefw.simt.description import LaneMachine
from tilefw.simt.passes import lane_passes


@tilefw.jit
def twice(source, to, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to + offsets, tl.load(source + offsets) * 2)


@tilefw.jit
def twice_in_place(source, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(source + offsets, tl.load(source + offsets) * 2)


@tilefw.jit
def count(counter, to, BLOCK: tl.constexpr):
    old = tl.load(counter)
    tl.store(counter, old + 1)
    tl.store(to + tl.arange(0, BLOCK), old + tl.arange(0, BLOCK))


@tilefw.jit
def count_all(counters, to, n, BLOCK: tl.constexpr):
    for i in range(n):
        old = tl.load(counters + i)
        tl.store(counters + i, old + 1)
        tl.store(to + i * BLOCK + tl.arange(0, BLOCK), old + tl.arange(0, BLOCK))


@tilefw.jit
def count_behind_a_barrier(counter, to, BLOCK: tl.constexpr):
    old = tl.load(counter)
    tl.debug_barrier()
    tl.store(counter, old + 1)
    tl.store(to + tl.arange(0, BLOCK), old + tl.arange(0, BLOCK))


@tilefw.jit
def reset(source, to, n, BLOCK: tl.constexpr):
    """Two elements an access where `n` is even; one with the other mask, so that other waves have them."""
    i = tl.arange(0, BLOCK)
    tl.store(to + i, tl.load(source + i, mask=i < n))
    tl.store(source + i, 0.0, mask=(i < n) & (i >= 1))


@tilefw.jit
def fill_and_mark(to, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(to + i, 0.0)
    tl.store(to + i, 1.0, mask=(i < n) & (i >= 1))


@tilefw.jit
def fill_and_read(to, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(to + i, 0.0)
    some = (i < n) & (i >= 1)
    tl.store(to + i + BLOCK, tl.load(to + i, mask=some), mask=some)


RESET = {"source": "*fp32:16", "to": "*fp32:16", "n": "i32:16"}
FILL = {"to": "*fp32:16", "n": "i32"}
TWO, COUNTER = {"source": "*fp32", "to": "*fp32"}, {"counter": "*i32", "to": "*i32"}


def lowered(kernel: Any, signature: Mapping[str, str], block: int, waves: int, disjoint: bool) -> FuncOp:
    module = kernel_source.from_jit(kernel, signature, {"BLOCK": block}).build()
    PassManager([*default_passes(), *lane_passes(LaneMachine(PLAIN, waves, disjoint=disjoint), 1)], verify_each=True).run(module)
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return function


@pytest.mark.parametrize(
    ("kernel", "signature", "block", "waves", "disjoint", "expected"),
    [
        (twice_in_place, {"source": "*fp32"}, 128, 4, True, 0),  # an element a thread: the one that loads it stores it
        (twice_in_place, {"source": "*fp32"}, 64, 4, True, 1),
        (twice_in_place, {"source": "*fp32"}, 16, 1, True, 0),  # copies in one wave, which loads them at once
        (twice, TWO, 64, 4, True, 0),
        (twice, TWO, 64, 4, False, 1),
        (count, COUNTER, 128, 4, True, 1),
        (count, COUNTER, 128, 1, True, 0),
        (count_behind_a_barrier, COUNTER, 128, 4, False, 1),
        (reset, RESET, 512, 4, True, 1),
        (reset, RESET, 512, 1, True, 0),
        (reset, RESET, 128, 4, True, 0),
        (fill_and_mark, FILL, 512, 4, True, 1),
        (fill_and_mark, FILL, 128, 4, True, 0),
        (fill_and_read, FILL, 512, 4, True, 1),
    ],
)
def test_so_many_barriers(
    kernel: Any, signature: Mapping[str, str], block: int, waves: int, disjoint: bool, expected: int
) -> None:
    function = lowered(kernel, signature, block, waves, disjoint)
    assert sum(isinstance(op, lane.BarrierOp) for op in function.walk()) == expected


def test_a_loop_waits_in_each_iteration() -> None:
    function = lowered(count_all, {"counters": "*i32", "to": "*i32", "n": "i32"}, 128, 4, True)
    (barrier,) = (op for op in function.walk() if isinstance(op, lane.BarrierOp))
    assert isinstance(barrier.parent_op(), ForOp)
    names = [op.name for op in barrier.parent_op().body.block.ops]  # type: ignore[union-attr]
    assert names.index("lane.load") < names.index("lane.barrier") < names.index("lane.store")
