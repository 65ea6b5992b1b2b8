"""Graphs of library kernels mean what the reference interpreter says the kernels mean."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from launches import bound, judged

from tilefw.api import BufferPlacement, CompileError, LaunchArguments, UnsupportedError
from tilefw.api.ir import parse
from tilefw_spatial.graph import Dot, Load
from tilefw_spatial.lower import lower

_SERVED: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("vector_add", {}), ("softmax", {}), ("matmul", {}), ("layernorm", {}), ("attention", {"causal": True}), ("int8_matmul", {}),
    ("batched_matmul", {}), ("split_k_matmul", {}), ("argmax", {}), ("scan_tile", {}), ("rearrange", {"operation": "permute"}),
    ("masks", {"mask": "loaded"}), ("rope", {}), ("column_sum", {"rows": 40}), ("welford", {"columns": 300}),
    # What a loop stores in place, before what it reads next, or between what others of its trips read.
    *(("shared_buffers", {"views": views}) for views in ("in_place", "all_one", "write_after_read", "both_behind")),
    ("embedding", {"columns": 30}), ("embedding", {"dtype": "int8", "padding_index": 3}), ("cross_entropy", {"classes": 700}),
    *(("atomic_mix", {"operation": operation}) for operation in ("add", "xchg")),
)


@pytest.mark.parametrize(("kernel", "parameters"), _SERVED, ids=["-".join([k, *map(str, p.values())]) for k, p in _SERVED])
def test_a_graph_evaluates_to_what_the_reference_says(kernel: str, parameters: Mapping[str, object]) -> None:
    _, compared = judged(kernel, parameters)
    assert compared and all(comparison.ok for comparison in compared.values()), compared


_MODULE = """
func.func public @k(%a: !tile.ptr<f32> {{tile.name = "a"}}, %b: !tile.ptr<f32> {{tile.name = "b"}}) {{{body}
    func.return
}}
"""


def test_a_matmul_is_one_dot_over_whole_axes() -> None:
    """Blocks of rows, columns and K, in whatever order programs take them, are the three axes of the product."""
    found = bound("matmul", {"m": 150, "n": 144, "k": 128})
    graph = lower(found.module(), found.launch)
    (dot,) = [value for value in graph.values() if isinstance(value.op, Dot)]
    assert isinstance(dot.op, Dot)
    assert sorted(axis.extent for axis in dot.axes) == [144, 150]
    assert [axis.extent for axis in dot.op.contracted] == [128]
    loads = [value for value in graph.values() if isinstance(value.op, Load)]
    assert len(loads) == 2 and all(isinstance(v.op, Load) and not v.op.access_map.joint for v in loads)


def test_blocks_of_one_run_are_one_axis() -> None:
    text = _MODULE.format(body="""
    %p = tile.program_id 0
    %c = tile.constant 16 : i32
    %first = tile.muli %p, %c : i32
    %one = tile.constant 1 : i32
    %x = tile.load_block %a at (%first : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<16xf32>
    tile.store_block %b, %x at (%first : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<16xf32>""")
    graph = lower(
        parse(text, "m"), LaunchArguments((4, 1, 1), {}, {"a": BufferPlacement(0, 0, 256), "b": BufferPlacement(1, 0, 256)})
    )
    (load,) = graph.values()
    assert [axis.extent for axis in load.axes] == [64]


def test_an_access_beyond_its_buffer_is_an_error_at_its_line() -> None:
    text = _MODULE.format(body="""
    %zero = tile.constant 0 : i32
    %one = tile.constant 1 : i32
    %x = tile.load_block %a at (%zero : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<16xf32>
    tile.store_block %b, %x at (%zero : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<16xf32>""")
    launch = LaunchArguments((1, 1, 1), {}, {"a": BufferPlacement(0, 0, 64), "b": BufferPlacement(1, 4, 64)})
    with pytest.raises(CompileError, match="element 15 of a buffer of 15 elements") as caught:
        lower(parse(text, "m"), launch)
    assert caught.value.code == "TFW0661"


def test_what_is_not_served_is_refused_at_the_users_line() -> None:
    found = bound("histogram", {})
    with pytest.raises(UnsupportedError) as caught:
        lower(found.module(), found.launch)
    assert caught.value.code == "TFW0660" and caught.value.place is not None and "memory.scatter" in str(caught.value.note)
