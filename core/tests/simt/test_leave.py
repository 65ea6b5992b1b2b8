"""Waves that hold nothing but copies end at once, where no other wave asks for what they compute; results are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from library_on_chips import check, lowered
from made_up import WIDE
from xdsl.dialects.func import FuncOp

import tilefw
import tilefw.language as tl
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.compilation import kernel_source
from tilefw.simt import lane
from tilefw.simt.description import LaneMachine
from tilefw.simt.passes import lane_passes

LEAVING = replace(WIDE, name="leaving", offsets=True, bounded=True, bound_bytes=4, alignment=4, waves_leave=True)


@tilefw.jit
def twice(source, to, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to + offsets, tl.load(source + offsets) * 2)


@tilefw.jit
def sum_up(source, to, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to + tl.program_id(0), tl.sum(tl.load(source + offsets), axis=0))


@tilefw.jit
def count(source, to, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to + offsets, tl.load(source + offsets))
    tl.atomic_add(to, 1)


def left(kernel: Any, block: int, waves: int = 4, chip: Any = LEAVING) -> int:
    """The bits of the thread index that are set in the threads that leave."""
    module = kernel_source.from_jit(kernel, {"source": "*i32", "to": "*i32"}, {"BLOCK": block}).build()
    PassManager([*default_passes(), *lane_passes(LaneMachine(chip, waves), 1)], verify_each=True).run(module)
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return sum(op.bits for op in function.walk() if isinstance(op, lane.LeaveOp))


@pytest.mark.parametrize(("block", "expected"), [(256, 0), (128, 128), (64, 192), (16, 192)])
def test_the_waves_beyond_a_tile_leave(block: int, expected: int) -> None:
    assert left(twice, block) == expected


def test_one_wave_sums_up_what_one_wave_holds() -> None:
    """What is summed up across waves, in shared memory, keeps all of them."""
    assert left(sum_up, 64) == 192
    assert left(sum_up, 256) == 0


def test_waves_stay_where_there_are_atomics_or_they_may_not_leave() -> None:
    assert left(count, 64) == 0
    assert left(twice, 64, chip=replace(LEAVING, waves_leave=False)) == 0
    assert left(twice, 64, waves=1) == 0


def test_what_is_left_of_the_thread_index_needs_no_mask() -> None:
    function, *_ = lowered("rope", {}, LEAVING, True)
    stores = [op for op in function.walk() if isinstance(op, lane.StoreOp)]
    assert stores and all(op.part("mask") is None for op in stores)
    assert not any(isinstance(op, lane.BarrierOp) for op in function.walk())


@pytest.mark.parametrize("name", ["rope", "stencil", "shared_buffers", "ragged_sums", "sparse_matvec", "embedding"])
def test_a_library_kernel_is_right(name: str) -> None:
    check(name, {}, LEAVING, small=True)


def test_a_scan_between_waves_keeps_them_where_every_store_is_in_one() -> None:
    check("moe_scatter", {"tokens": 1, "experts": 63, "top_k": 1, "block": 16}, LEAVING, small=True)
