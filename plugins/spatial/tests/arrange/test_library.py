"""Launches of library kernels: their graphs, arranged and evaluated operation by operation, against the reference interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from launches import bound, memory
from stream_evaluator import StreamEvaluator

from tilefw_spatial.arrange import arrange
from tilefw_spatial.elements import on_machine_types
from tilefw_spatial.lower import lower
from tilefw_spatial.machine import load as load_machine
from tilefw_spatial.stream_program import StreamProgram

SMALL = {
    "vector_add": {"n": 1000, "block": 256},
    "softmax": {"rows": 9, "columns": 70},
    "layernorm": {"rows": 9, "columns": 70},
    "matmul": {"m": 70, "n": 50, "k": 72},
    "attention": {}, "batched_matmul": {}, "int8_matmul": {}, "dot_tile": {}, "rearrange": {}, "rope": {}, "split_k_matmul": {},
    "scan_tile": {}, "stencil": {}, "masks": {}, "embedding": {"tokens": 17, "columns": 24, "vocabulary": 30},
    "cross_entropy": {"rows": 5, "classes": 50}, "linear_attention": {"heads": 1, "length": 3, "value_size": 1, "chunk": 32},
}


def arranged(kernel: str, parameters: dict[str, Any]) -> tuple[StreamProgram, dict[str, Any]]:
    """The stream program of a launch, and how what it computes compares with the reference, by output."""
    found = bound(kernel, parameters)
    graph = on_machine_types(lower(found.module(), found.launch))
    stream_program = arrange(graph, load_machine())
    reference = found.reference()
    host = memory(found.passed)
    buffers = {number: host[buffer.storage] for number, buffer in found.buffers.items()}
    buffers |= {len(found.passed) + n: np.zeros(check.elements, np.uint8) for n, check in enumerate(graph.checks)}
    StreamEvaluator(stream_program, buffers, {number: buffer.offset for number, buffer in found.buffers.items()})
    return stream_program, {name: reference.compare(name) for name in found.outputs}


@pytest.mark.parametrize("kernel", SMALL)
def test_library_kernels_are_right(kernel: str) -> None:
    _, compared = arranged(kernel, SMALL[kernel])
    for name, result in compared.items():
        assert result.ok, (name, result)
