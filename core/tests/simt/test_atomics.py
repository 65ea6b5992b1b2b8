"""Atomics lowered to lanes: each element is accessed once, whoever holds it, and its old value is in all threads that ask."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from library_on_chips import check, lowered
from made_up import PLAIN, WIDE
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp

from tilefw.api.errors import UnsupportedError
from tilefw.simt import lane
from tilefw.simt.description import ChipDescription
from tilefw.simt.software_pipeline.alias import LoopWrites
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.text.module import parse

MIX: list[dict[str, Any]] = [
    {"operation": "add", "dtype": "int32"},
    {"operation": "add", "dtype": "fp16"},  # neighbours in one word
    {"operation": "add", "dtype": "bf16", "mask": "alternating"},
    {"operation": "add", "dtype": "fp32", "share": 8},
    {"operation": "max", "dtype": "fp32", "inputs": "ints"},
    {"operation": "min", "dtype": "uint32", "mask": "data"},
    {"operation": "max", "dtype": "int64", "share": 8, "order": "relaxed"},
    {"operation": "min", "dtype": "fp64", "mask": "single"},
    {"operation": "xor", "dtype": "int64", "mask": "never"},
    {"operation": "xchg", "dtype": "fp32", "order": "acquire", "scope": "sys"},
    {"operation": "cas", "dtype": "bf16", "mask": "none", "order": "release"},
    {"operation": "cas", "dtype": "int16", "mask": "none"},
    {"operation": "add", "dtype": "int32", "scalar": True},
    {"operation": "cas", "dtype": "fp16", "scalar": True, "mask": "none"},
    {"operation": "add", "dtype": "fp32", "scalar": True, "share": 8},
]
SMALL = {"n": 300, "block": 64, "num_warps": 4}  # half of the threads hold copies
KERNELS: list[tuple[str, dict[str, Any]]] = [
    *(("atomic_mix", {**SMALL, **case, **({"n": 12} if case.get("scalar") else {})}) for case in MIX),
    ("atomic_mix", {**SMALL, "block": 256, "operation": "or", "dtype": "int32", "num_warps": 2}),
    ("histogram", {}), ("split_k_matmul", {}), ("grid_argmax", {}),
]


@pytest.mark.parametrize("chip", [PLAIN, WIDE], ids=lambda chip: chip.name)
@pytest.mark.parametrize(("kernel", "parameters"), KERNELS, ids=str)
def test_every_element_is_accessed_once_and_its_old_value_is_everywhere(
    kernel: str, parameters: dict[str, Any], chip: ChipDescription
) -> None:
    check(kernel, parameters, chip)


def _names(function: FuncOp) -> list[str]:
    return [op.name for op in function.walk() if op.name.startswith("lane.")]


def _mix(chip: ChipDescription, **more: Any) -> FuncOp:
    return lowered("atomic_mix", {**SMALL, "operation": "add", "dtype": "int32", **more}, chip)[0]


def test_old_values_that_nobody_reads_are_not_fetched() -> None:
    function = _mix(PLAIN, share=2)  # has no array for them
    (atomic,) = [op for op in function.walk() if isinstance(op, lane.AtomicOp)]
    assert not atomic.results and "lane.alloc" not in _names(function)


def test_copies_in_lanes_get_old_values_by_a_shuffle_and_those_in_waves_through_shared_memory() -> None:
    one_wave = _names(_mix(WIDE, block=32, num_warps=1))
    assert "lane.shuffle" in one_wave and "lane.alloc" not in one_wave
    assert "lane.alloc" in _names(_mix(WIDE, block=64, num_warps=4))


def test_without_shared_memory_old_values_stay_with_their_thread() -> None:
    bare = replace(PLAIN, shared_bytes=0)
    assert "lane.atomic" in _names(_mix(bare, share=2)) and "lane.atomic" in _names(_mix(bare, block=256))
    with pytest.raises(UnsupportedError, match="neither shared memory nor shuffles") as found:
        _mix(bare)
    assert found.value.code == "TFW0626" and found.value.place is not None


def _around(function: FuncOp) -> list[str]:
    """What of order stands in the straight code of a kernel, by name."""
    words = {"lane.load": "load", "lane.store": "store", "lane.barrier": "barrier", "lane.atomic": "atomic"}
    return [
        words[op.name] for op in function.body.block.ops
        if op.name in words and (not isinstance(op, lane.MemoryOp) or not op.shared)
    ]


@pytest.mark.parametrize(("order", "before", "after"), [
    ("relaxed", [], []), ("release", ["barrier"], []), ("acquire", [], ["barrier"]), ("acq_rel", ["barrier"], ["barrier"]),
])
def test_a_barrier_stands_where_the_order_of_one_lane_is_that_of_all(order: str, before: list[str], after: list[str]) -> None:
    function = _mix(PLAIN, block=256, order=order)  # no copies, so that nothing else needs a barrier
    found = _around(function)
    at = found.index("atomic")
    loads = [word for word in found[:at] if word == "load"]
    assert found == [*loads, *before, "atomic", *after, "store"]


_LOOP = """
func.func @f(%a: !tile.ptr<i32>, %b: !tile.ptr<i32>, %n: i32) {{
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {{
    %old = tile.atomic_rmw add {order} device %b, %one : !tile.ptr<i32>
  }}
  func.return
}}
"""


@pytest.mark.parametrize(("order", "may"), [("relaxed", False), ("release", False), ("acquire", True), ("acq_rel", True)])
def test_loads_are_not_issued_before_an_atomic_that_acquires(order: str, may: bool) -> None:
    """Of another buffer; of its own they never are."""
    module = parse(_LOOP.format(order=order))
    (loop,) = [op for op in module.walk() if isinstance(op, ForOp)]
    (function,) = [op for op in module.walk() if isinstance(op, FuncOp)]
    a, b, _ = function.body.block.args
    writes = LoopWrites(nested_ops(loop), disjoint=True)
    assert (writes.may_write(a), writes.may_write(b)) == (may, True)
