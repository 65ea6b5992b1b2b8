"""Triton's IR of a kernel, imported, computes what our own front end's IR of the same kernel does: values within one bound on the
reference, as Triton's front end makes the text and as its first passes leave it. Skipped where Triton is not installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilefw.api.device import DEFAULT_BUDGET
from tilefw.importers.triton_ir import parse
from tilefw.kernels.instance import instance
from tilefw.kernels.reference import Reference
from tilefw.kernels.spec import load
from tilefw.testing.triton_text import triton_text

# One or more of a kind: elementwise, normalisations, matrix products, attention, atomics, reductions, scans, sorting, histograms,
# descriptors, gathers, narrow formats, loops whose end the data decides, random numbers, functions of the device library.
KERNELS = (
    "vector_add", "gelu_bias_residual", "swiglu", "integer_mix", "masks", "cast", "strided_copy", "stencil", "transpose",
    "softmax", "layernorm", "layernorm_backward", "rmsnorm", "welford", "argmax", "cross_entropy", "column_sum", "reduce_tile",
    "matmul", "batched_matmul", "int8_matmul", "split_k_matmul", "grouped_matmul", "block_scaled_matmul", "dot_scaled_tile",
    "attention", "fp8_attention", "descriptor_matmul", "descriptor_rows", "gather_tile", "sort_tile", "histogram",
    "scan_tile", "selective_scan", "atomic_mix", "locked_accumulate", "chained_sum", "grid_argmax", "random_numbers", "quantize",
    "rope", "embedding", "sparse_matvec",
)


@pytest.fixture(autouse=True, scope="module")
def _triton() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")


def test_the_kernels_are_the_librarys() -> None:
    assert len(set(KERNELS)) == len(KERNELS) >= 25


@pytest.mark.parametrize("name", KERNELS)
def test_an_imported_kernel_of_the_library_computes_the_same(name: str) -> None:
    spec = load(name)
    launch = spec.prepare(spec.resolve({}), np.random.default_rng(0))
    made = instance(spec, launch)
    arguments: dict[str, Any] = {**launch.arguments, **launch.constexprs}
    due = Reference(made.source.build(), launch.grid, made.passed, budget=DEFAULT_BUDGET)
    text = triton_text(spec.kernel, arguments, ("cuda", 90, 32), launch.keywords)
    found = Reference(parse(text, f"{name}.ttir"), launch.grid, made.passed, budget=DEFAULT_BUDGET)
    for output in launch.outputs:
        comparison = due.compare_values(output, found.values(output))
        assert comparison.ok, f"{output}: {comparison}"
