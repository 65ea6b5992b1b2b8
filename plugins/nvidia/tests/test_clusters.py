"""With num_ctas a cluster of workgroups makes each program: right under every check, as ptxas and Triton's launches want it."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_warpgroup import assembled

import tilefw
import tilefw.language as tl

TARGET = "nvidia-sm90a"


@tilefw.jit
def add(x, y, out, n, B: tl.constexpr):
    at = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * B + tl.arange(0, B)
    value = tl.load(x + at, at < n) + tl.load(y + at, at < n)
    tl.store(out + at, value + tl.num_programs(0) + tl.program_id(1), at < n)


@tilefw.jit
def softmax(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * n + at, at < n, other=float("-inf"))
    power = tl.exp(row - tl.max(row, 0))
    tl.store(out + tl.program_id(0) * n + at, power / tl.sum(power, 0), at < n)


@tilefw.jit
def product(a, b, out, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + first + k[None, :])
        acc = tl.dot(left, tl.load(b + (first + k)[:, None] * N + columns[None, :]), acc)
    tl.store(out + rows[:, None] * N + columns[None, :], acc)


@tilefw.jit
def ranks(x, out, count, B: tl.constexpr):
    at = tl.arange(0, B)
    value = tl.load(x + tl.program_id(0) * B + at)
    tl.store(out + tl.program_id(0) * B + at, tl.cumsum(value, 0) + tl.atomic_add(count + tl.program_id(0), 7))


def _launch(kernel: Any, grid: tuple[int, ...], arrays: list[np.ndarray], *rest: Any, **words: Any) -> list[np.ndarray]:
    """What a kernel leaves in its arrays."""
    copies = [array.copy() for array in arrays]
    kernel[grid](*copies, *rest, **words)
    return copies


def _cases() -> dict[str, tuple[Any, tuple[int, ...], list[np.ndarray], tuple[Any, ...], dict[str, Any]]]:
    rng = np.random.default_rng(3)
    floats = [rng.standard_normal(3000).astype(np.float32) for _ in range(2)]
    halves = [(rng.standard_normal(shape) / 4).astype(np.float16) for shape in ((128, 96), (96, 128))]
    counts = rng.integers(0, 9, 3 * 512).astype(np.int32)
    return {
        "elements": (add, (2, 2), [*floats, np.zeros(3000, np.float32)], (3000,), {"B": 1024}),
        "rows": (softmax, (3,), [floats[0], np.zeros(3000, np.float32)], (1000,), {"B": 1024}),
        "products": (product, (2, 2), [*halves, np.zeros((128, 128), np.float32)], (96, 128), {"BM": 64, "BN": 64, "BK": 32}),
        "scans": (ranks, (3,), [counts, np.zeros_like(counts), np.arange(3, dtype=np.int32)], (), {"B": 512}),
    }


@pytest.mark.parametrize("workgroups", [2, 4])
@pytest.mark.parametrize("case", _cases())
def test_a_program_of_a_cluster_computes_what_one_workgroup_does(case: str, workgroups: int):
    kernel, grid, arrays, rest, words = _cases()[case]
    expected = _launch(kernel, grid, arrays, *rest, **words, target="reference")
    found = _launch(kernel, grid, arrays, *rest, **words, target=TARGET, num_ctas=workgroups, checks="all")
    for wanted, actual in zip(expected, found, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("case", ["rows", "products"])
def test_ptxas_takes_the_code_of_a_cluster(case: str, tmp_path: Path):
    kernel, grid, arrays, rest, words = _cases()[case]
    compiled = kernel.warmup(*arrays, *rest, **words, target=TARGET, num_ctas=2, grid=grid)
    assert ".explicitcluster\n.reqnctapercluster 2\n" in compiled.artifact.text
    assert compiled.metadata.num_ctas == 2
    assembled(compiled.artifact.text, tmp_path)


def test_a_program_is_the_cluster_that_it_is_in_triton(tmp_path: Path):
    """Triton's own code, launched as its driver launches it, leaves what ours does: the same program ids, the same elements."""
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel, grid, arrays, rest, words = _cases()["rows"]
    source = "import triton\nimport triton.language as tl\n\n\n" + inspect.getsource(kernel.fn).replace("tilefw.", "triton.")
    (tmp_path / "in_triton.py").write_text(source)
    spec = importlib.util.spec_from_file_location("in_triton", tmp_path / "in_triton.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "B": "constexpr"}
    made = triton.compile(ASTSource(module.softmax, types, words), target=GPUTarget("cuda", 90, 32), options={"num_ctas": 2})
    copies = [array.copy() for array in arrays]
    scratch = [np.zeros(1, np.int32), np.zeros(1, np.int32)]  # the launch's own arguments: no kernel here uses them
    loaded = tilefw.load(made.asm["ptx"].encode(), target=TARGET)["softmax"]
    dynamic = made.metadata.shared
    loaded.launch((grid[0] * 2, 1, 1), [*copies, *rest, *scratch], checks="all", block=(128, 1, 1), dynamic_shared=dynamic)
    ours = _launch(kernel, grid, arrays, *rest, **words, target=TARGET, num_ctas=2, checks="all")
    np.testing.assert_allclose(ours[1], copies[1], rtol=1e-5)
