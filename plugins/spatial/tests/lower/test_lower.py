"""Graphs of library kernels mean what the reference interpreter says the kernels mean."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from launches import bound, judged

from tilefw.api import UnsupportedError
from tilefw_spatial.graph import Dot, Load
from tilefw_spatial.lower import lower

_SERVED: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("vector_add", {}), ("elementwise", {}), ("softmax", {}), ("matmul", {}), ("layernorm", {}), ("rmsnorm", {}), ("attention", {}),
)


@pytest.mark.parametrize(("kernel", "parameters"), _SERVED, ids=[kernel for kernel, _ in _SERVED])
def test_a_graph_evaluates_to_what_the_reference_says(kernel: str, parameters: Mapping[str, object]) -> None:
    _, compared = judged(kernel, parameters)
    assert compared and all(comparison.ok for comparison in compared.values()), compared


def test_a_matmul_is_one_dot_over_whole_axes() -> None:
    """Blocks of rows, columns and K, in whatever order programs take them, are the three axes of the product."""
    found = bound("matmul", {"m": 150, "n": 144, "k": 128})
    graph = lower(found.module(), found.launch)
    (dot,) = [value for value in graph.values() if isinstance(value.op, Dot)]
    assert isinstance(dot.op, Dot)
    assert sorted(axis.extent for axis in dot.axes) == [144, 150]
    assert [axis.extent for axis in dot.op.contracted] == [128]
    loads = [value for value in graph.values() if isinstance(value.op, Load)]
    assert len(loads) == 2 and all(isinstance(v.op, Load) and not v.op.where.joint for v in loads)


def test_what_is_not_served_is_refused_at_the_users_line() -> None:
    found = bound("embedding", {})
    with pytest.raises(UnsupportedError) as caught:
        lower(found.module(), found.launch)
    assert caught.value.code == "TFW0660" and caught.value.place is not None and "memory.gather" in str(caught.value.note)
