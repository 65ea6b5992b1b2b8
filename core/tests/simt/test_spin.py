"""A loop that waits for one atomic access is that access, made again; any other loop stays one."""

from __future__ import annotations

from typing import Any

import pytest
from made_up import WIDE
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import WhileOp

import tilefw
import tilefw.language as tl
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.compilation import kernel_source
from tilefw.simt import lane
from tilefw.simt.description import LaneMachine
from tilefw.simt.passes import lane_passes
from tilefw.testing import lane_atomics


@tilefw.jit
def lock(flag, to):
    while tl.atomic_cas(flag, 0, 1) == 1:
        pass
    tl.store(to, tl.load(to) + 1)
    tl.atomic_xchg(flag, 0)


@tilefw.jit
def wait(flag, to):
    while 3 > tl.atomic_add(flag, 0, sem="acquire"):  # noqa: SIM300 - either side may be what is awaited
        pass
    tl.store(to, 1)


@tilefw.jit
def wait_without_order(flag, to):
    while tl.atomic_cas(flag, 0, 1, sem="relaxed") == 1:
        pass
    tl.store(to, 1)


@tilefw.jit
def count(flag, to):
    turns = 0
    while tl.atomic_add(flag, 0) == 0:
        turns += 1
    tl.store(to, turns)


@tilefw.jit
def look_twice(flag, to):
    while tl.atomic_add(flag, 0) + tl.atomic_add(to, 0) == 0:
        pass


def lowered(kernel: Any) -> FuncOp:
    module = kernel_source.from_jit(kernel, {"flag": "*i32", "to": "*i32"}, {}).build()
    PassManager([*default_passes(), *lane_passes(LaneMachine(WIDE, 4), 1)], verify_each=True).run(module)
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return function


@pytest.mark.parametrize(("kernel", "again"), [(lock, "eqi"), (wait, "lts")])
def test_the_access_says_when_it_is_made_again(kernel: Any, again: str) -> None:
    function = lowered(kernel)
    (access,) = (op for op in function.walk() if isinstance(op, lane.AtomicOp) and op.part("awaited") is not None)
    assert access.word("again") == again and not any(isinstance(op, WhileOp) for op in function.walk())


@pytest.mark.parametrize("kernel", [wait, wait_without_order])
def test_what_is_found_goes_to_no_other_wave_and_a_barrier_stands_behind(kernel: Any) -> None:
    function = lowered(kernel)
    assert not any(isinstance(op, lane.AllocOp) for op in function.walk())
    ops = [type(op) for op in function.walk()]
    assert lane.BarrierOp in ops[ops.index(lane.AtomicOp) : ops.index(lane.StoreOp)]


@pytest.mark.parametrize("kernel", [count, look_twice])
def test_a_loop_that_does_more_stays(kernel: Any) -> None:
    assert any(isinstance(op, WhileOp) for op in lowered(kernel).walk())


@pytest.mark.parametrize(("row", "old", "holds"), [("eqi", 1, False), ("nei", 1, True), ("lts", -1, True), ("ltu", -1, False)])
def test_comparisons_with_what_is_awaited(row: str, old: int, holds: bool) -> None:
    import numpy as np

    assert lane_atomics.holds(row, np.array([old], np.int32), np.int32(3 if row != "eqi" else 0)) == holds
