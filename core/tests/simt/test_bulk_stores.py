"""A chip whose copy engine stores, by description alone: what products leave goes out by it where that pays, and is waited for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from library_on_chips import SMALL, check, lowered
from made_up import ENGINE, STORING
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, IfOp

import tilefw
import tilefw.language as tl
from tilefw.api.errors import InternalError
from tilefw.frontend import build_module
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.simt import lane
from tilefw.simt.asynchronous.check_products import check_products
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.passes import lane_passes
from tilefw.testing.lane_interpreter import LaneFault, run
from tilefw.tile.nested_ops import nested_ops

MATMUL: dict[str, Any] = {"m": 64, "n": 64, "k": 160, **SMALL}


def kinds(name: str, parameters: dict[str, Any]) -> set[type]:
    function, *_ = lowered(name, parameters, STORING)
    return {type(op) for op in nested_ops(function)}


@pytest.mark.parametrize("more", [{}, {"m": 40, "n": 48, "k": 80}, {"block_n": 64}, {"dtype": "bf16"}], ids=str)
@pytest.mark.parametrize("name", ["descriptor_matmul", "matmul"])
def test_a_product_that_the_engine_stores_is_right(name: str, more: dict[str, Any]) -> None:
    """Also where blocks reach beyond the array."""
    assert {lane.FragmentStoreOp, lane.BulkStoreOp, lane.BulkStoreWaitOp} <= kinds(name, MATMUL | more)
    check(name, MATMUL | more, STORING)


def test_heads_of_batches_go_out_as_places_along_further_dims() -> None:
    parameters = {"heads": 2, "queries": 40, "keys": 80, "head_size": 32, "block_m": 32, "block_n": 32, "causal": False}
    function, *_ = lowered("attention", parameters, STORING)
    assert [len(op.at) for op in nested_ops(function) if isinstance(op, lane.BulkStoreOp)] == [4]
    check("attention", parameters, STORING)


def test_lanes_store_where_a_block_of_groups_of_programs_begins_before_the_array() -> None:
    """Which nothing says of blocks in rows."""
    for name, branches in (("matmul", 1), ("descriptor_matmul", 0)):
        function, *_ = lowered(name, MATMUL, STORING)
        assert len([op for op in nested_ops(function) if isinstance(op, IfOp)]) == branches
        assert any(isinstance(op, lane.StoreOp) and not op.shared for op in nested_ops(function)) == bool(branches)


def test_wide_elements_and_chips_without_such_stores_leave_it_to_lanes() -> None:
    assert lane.BulkStoreOp not in kinds("matmul", {**MATMUL, "dtype": "fp32"})
    function, *_ = lowered("matmul", MATMUL, ENGINE)
    assert not [op for op in nested_ops(function) if isinstance(op, lane.BulkStoreOp | lane.FragmentStoreOp)]


@pytest.mark.parametrize("removed", [lane.FenceViewOp, lane.BarrierOp, lane.BulkStoreWaitOp], ids=["fence", "barrier", "wait"])
def test_every_part_of_the_store_is_needed(removed: type) -> None:
    function, launch, passed, (_, machine) = lowered("descriptor_matmul", MATMUL, STORING)
    arguments = [getattr(value, "array", value) for value in passed.values()]
    run(function, arguments, launch.grid, machine)
    site = [op for op in nested_ops(function) if isinstance(op, removed)][-1]
    site.detach()
    if removed is not lane.BarrierOp:
        with pytest.raises(InternalError):
            check_products(function, views=True)
    with pytest.raises(LaneFault):
        run(function, arguments, launch.grid, machine)


SIGNATURE = {"a": "*fp16:16", "b": "*fp16:16", "out": "*fp16:16", "lock": "*i32:16", "k": "i32:16"}


@tilefw.jit
def one_tile(a, b, out, lock, k, KIND: tl.constexpr, B: tl.constexpr):
    lines, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    total = tl.zeros((B, B), tl.float32)
    if KIND == "reads before":
        total += tl.load(out + lines * B + columns)
    for at in range(0, k, B):
        total = tl.dot(tl.load(a + lines * k + at + columns), tl.load(b + (at + lines) * B + columns), total)
    tl.store(out + lines * B + columns, total.to(tl.float16))
    if KIND == "reads behind":
        tl.store(b + lines * B + columns, tl.load(a + lines * k + columns))
    if KIND == "tells others":
        tl.atomic_add(lock, 1)


@pytest.mark.parametrize(
    ("kind", "disjoint", "engine"),
    [
        ("plain", True, True), ("plain", False, True), ("reads before", True, False), ("reads behind", True, True),
        ("reads behind", False, False), ("tells others", True, False),
    ],
)
def test_an_array_that_something_else_accesses_is_stored_by_lanes(kind: str, disjoint: bool, engine: bool) -> None:
    module = build_module(one_tile, SIGNATURE, {"KIND": kind, "B": 32})
    machine = LaneMachine(STORING, 4, disjoint=disjoint)
    PassManager([*default_passes(), *lane_passes(machine, 3, verify=True)]).run(module)
    assert any(isinstance(op, lane.BulkStoreOp) for op in nested_ops(module)) == engine


@tilefw.jit
def tiles(a, b, out, count, first, step, rows, B: tl.constexpr, HALVES: tl.constexpr, OWN: tl.constexpr):
    lines, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    described = tl.make_tensor_descriptor(out, [rows, B], [B, 1], [B, B])
    for tile in range(tl.program_id(0) if OWN else 0, count, tl.num_programs(0)):
        total = tl.dot(tl.load(a + (tile * B + lines) * B + columns), tl.load(b + lines * B + columns))
        described.store([first + tile * step, 0], total.to(tl.float16))
        if HALVES:
            described.store([first + tile * step + B // 2, 0], (total + 1).to(tl.float16))


def _of_tiles(chip: ChipDescription = STORING, halves: bool = False, own: bool = True) -> tuple[FuncOp, LaneMachine]:
    signature = {"a": "*fp16:16", "b": "*fp16:16", "out": "*fp16:16", **dict.fromkeys(("count", "first", "step", "rows"), "i32")}
    module = build_module(tiles, signature, {"B": 32, "HALVES": halves, "OWN": own})
    machine = LaneMachine(chip, 4, disjoint=True)
    PassManager([*default_passes(), *lane_passes(machine, 3, verify=True)]).run(module)
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return function, machine


def _run_tiles(
    function: FuncOp, machine: LaneMachine, first: int, step: int, halves: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The array that five tiles were stored to, one after the other and one over the other, and what it should be."""
    rng, rows = np.random.default_rng(3), 100
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((5 * 32, 32), (32, 32)))
    out = np.zeros((rows, 32), np.float16)
    expected, products = out.copy(), (a.astype(np.float32) @ b).astype(np.float16)
    for tile, half in np.ndindex(5, 2 if halves else 1):
        at = np.arange(32) + first + tile * step + half * 16
        inside = (at >= 0) & (at < rows)
        expected[at[inside]] = products[tile * 32 : tile * 32 + 32][inside] + np.float16(half)
    run(function, [a, b, out, 5, first, step, rows], (1, 1, 1), machine)
    return out, expected


@pytest.mark.parametrize(("first", "step"), [(0, 32), (-20, 16), (70, -24)], ids=["in rows", "over each other", "and backwards"])
def test_tiles_of_a_loop_go_out_one_after_the_other(first: int, step: int) -> None:
    """Those that begin before the array by lanes, between others that the engine stores."""
    function, machine = _of_tiles()
    loop = next(op for op in nested_ops(function) if isinstance(op, ForOp))
    assert any(isinstance(op, lane.BulkStoreOp) for op in nested_ops(loop))
    np.testing.assert_array_equal(*_run_tiles(function, machine, first, step))


def test_several_blocks_of_an_iteration_go_out_from_one_buffer() -> None:
    function, machine = _of_tiles(halves=True)
    stores = [op for op in nested_ops(function) if isinstance(op, lane.BulkStoreOp)]
    assert len(stores) == 2 * len({op.buffer for op in stores}) == 2
    np.testing.assert_array_equal(*_run_tiles(function, machine, -20, 24, halves=True))


@pytest.mark.parametrize("removed", [lane.FenceViewOp, lane.BulkStoreWaitOp], ids=["fence", "wait"])
def test_a_loop_waits_before_the_next_store_and_behind_the_last(removed: type) -> None:
    for number in range(2):
        function, machine = _of_tiles()
        sites = [op for op in nested_ops(function) if isinstance(op, removed) and not getattr(op, "arrays", False)]
        sites[-1 - number].detach()
        with pytest.raises(InternalError):
            check_products(function, views=True)
        with pytest.raises(LaneFault):
            _run_tiles(function, machine, 0, 32)


@pytest.mark.parametrize(("first", "step"), [(-20, 16), (70, -24)], ids=["over lanes' and each other", "and backwards"])
def test_blocks_over_each_other_need_what_was_written_not_what_was_read(first: int, step: int) -> None:
    function, machine = _of_tiles()
    waits = [op for op in nested_ops(function) if isinstance(op, lane.BulkStoreWaitOp)]
    assert [op.written for op in waits] == [True, False]
    del waits[0].properties["written"]
    out, expected = _run_tiles(function, machine, first, step)
    assert (out != expected).any()


@pytest.mark.parametrize(
    ("together", "own", "engine"), [(1 << 20, False, True), (14 << 10, False, False), (14 << 10, True, True)],
    ids=["room for all", "room for two", "one program a processor"],
)
def test_no_buffer_takes_the_room_of_a_workgroup(together: int, own: bool, engine: bool) -> None:
    """Eight workgroups have registers on a processor; of 14 KiB two have their operands, and one would have the buffer besides."""
    chip = replace(STORING, registers=64, processor_registers=1 << 16, processor_shared_bytes=together)
    function, _ = _of_tiles(chip, own=own)
    assert any(isinstance(op, lane.BulkStoreOp) for op in nested_ops(function)) == engine


@tilefw.jit
def rows_and_columns(a, b, out, count, B: tl.constexpr, N: tl.constexpr):
    lines, inner, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :], tl.arange(0, N)[None, :]
    for tile in range(tl.program_id(0), count, tl.num_programs(0)):
        total = tl.dot(tl.load(a + (tile * B + lines) * B + inner), tl.load(b + lines * N + columns))
        in_rows = tl.make_block_ptr(out, (256, 256), (256, 1), (tile * B, 0), (B, N), (1, 0))
        in_columns = tl.make_block_ptr(out, (256, 256), (1, 256), (tile * B, 128), (B, N), (0, 1))
        tl.store(in_rows, total.to(tl.float16), boundary_check=(0, 1))
        tl.store(in_columns, (total + 1).to(tl.float16), boundary_check=(0, 1))


def test_one_buffer_begins_where_each_form_of_its_blocks_must() -> None:
    """In rows 16 elements are next to each other, in columns 64: the widest form of each, whose patterns are of other lengths."""
    signature = {"a": "*fp16:16", "b": "*fp16:16", "out": "*fp16:16", "count": "i32"}
    module = build_module(rows_and_columns, signature, {"B": 64, "N": 16})
    PassManager([*default_passes(), *lane_passes(LaneMachine(STORING, 4, disjoint=True), 3, verify=True)]).run(module)
    stores = [op for op in nested_ops(module) if isinstance(op, lane.BulkStoreOp)]
    (buffer,) = {op.buffer for op in stores}
    (alloc,) = (op for op in nested_ops(module) if isinstance(op, lane.AllocOp) and op.id == buffer)
    engine = STORING.copy_engine
    assert engine is not None and {op.bytes for op in stores} == {64 * 16 * 2, 32 * 16 * 2}
    assert alloc.align == max(form.pattern_bytes for form in engine.forms)
