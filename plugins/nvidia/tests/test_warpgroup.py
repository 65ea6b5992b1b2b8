"""Dots of sm_90a are products of warpgroups on operands in shared memory: right under every check, and as ptxas wants them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_ptxas_accepts import ptxas

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import DTYPES
from tilefw.kernels.spec import load
from tilefw.kernels.verify import verify
from tilefw.tile.reference.accuracy import compare
from tilefw.tile.reference.evaluate_dot import dot
from tilefw.tile.reference.value import EvaluatedValue
from tilefw_nvidia.chips import named
from tilefw_nvidia.select.lanes import description

TARGET = "nvidia-sm90a"
TILES = {"block_m": 64, "block_n": 64, "block_k": 64}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "rows": ("matmul", {"m": 64, "n": 128, "k": 192, **TILES}),
    "columns": ("matmul", {"m": 64, "n": 64, "k": 128, "a_layout": "columns", "b_layout": "columns", **TILES}),
    "two groups": ("matmul", {"m": 128, "n": 64, "k": 128, "dtype": "bf16", "num_warps": 8, **TILES, "block_m": 128}),
    # Rows of b begin anywhere: lanes read it element by element, 64 each, beside 128 sums.
    "elements": ("matmul", {"m": 128, "n": 251, "k": 128, "num_warps": 8, "block_m": 128, "block_n": 256, "block_k": 64}),
    "chain": ("attention", {"queries": 64, "keys": 96, "heads": 1}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_of_warpgroups_is_right_and_clean(case: str, tmp_path: Path):
    name, parameters = CASES[case]
    verdict = verify(load(name), parameters, TARGET, assemble=False, checks="all")
    assert verdict.ok, verdict.failed
    assert not verdict.findings
    assert verdict.artifact is not None
    text = verdict.artifact.text
    assert "wgmma.mma_async" in text
    assert "mma.sync" not in text
    assembled(text, tmp_path)


def assembled(text: str, folder: Path) -> None:
    """ptxas takes it, spills nothing and does not serialise products."""
    assembler = ptxas()
    if assembler is None:
        pytest.skip("ptxas 12.9 is not installed")
    source = folder / "kernel.ptx"
    source.write_text(text)
    command = [assembler, "-v", "--gpu-name", "sm_90a", str(source), "-o", str(folder / "kernel.cubin")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "Potential Performance Loss" not in said
    assert "0 bytes spill stores" in said


@tilefw.jit
def weights_handed_on(q, k, v, out, weights, n, B: tl.constexpr):
    row, column = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    a = tl.load(q + row * B + column)
    p = tl.dot(a, tl.load(k + row * B + column)).to(tl.float16)
    acc = tl.zeros((B, B), tl.float32)
    for i in range(0, n, B):
        values = tl.load(v + (i + row) * B + column)
        scores = tl.dot(a, tl.load(k + (i + row) * B + column))
        acc = tl.dot(p, values, acc)
        p = scores.to(tl.float16)
        tl.store(weights + (i + row) * B + column, p)
    tl.store(out + row * B + column, acc)


@tilefw.jit
def scores_read_behind(q, k, v, out, weights, n, B: tl.constexpr):
    row, column = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    a = tl.load(q + row * B + column)
    acc = tl.zeros((B, B), tl.float32)
    for i in range(0, n, B):
        scores = tl.dot(a, tl.load(k + (i + row) * B + column))
        scores = tl.exp2(scores)  # whose conversions may move, as one instruction alone writes what they read
        acc = tl.dot(scores.to(tl.float16), tl.load(v + (i + row) * B + column), acc)
        tl.store(weights + (i + row) * B + column, scores * 0.5)
    tl.store(out + row * B + column, acc)


@pytest.mark.parametrize(("kernel", "size"), [(weights_handed_on, 64), (scores_read_behind, 128)], ids=["overwritten", "written"])
def test_a_factor_in_registers_is_written_before_the_fence_and_overwritten_behind_the_wait(kernel: Any, size: int):
    rng, n = np.random.default_rng(5), 256 if size == 128 else 192
    arrays = [(rng.standard_normal((rows, size)) / 8).astype(np.float16) for rows in (size, n, n)]
    found = {}
    for target in ("reference", TARGET):
        found[target] = np.zeros((size, size), np.float32), np.zeros((n, size), np.float16)
        kernel[(1,)](*arrays, *found[target], n, B=size, target=target, checks="all")
    for expected, actual in zip(*found.values(), strict=True):
        np.testing.assert_allclose(actual.astype(np.float32), expected.astype(np.float32), rtol=2e-3, atol=2e-3)


def test_only_a_chip_with_a_rate_for_them_has_products_of_warpgroups():
    assert not any(atom.asynchronous for atom in description(named("sm_89")).atoms)
    atoms = [atom for atom in description(named("sm_90a")).atoms if atom.asynchronous]
    assert {atom.a for atom in atoms} == {"f16", "bf16", "f32", "i8", "f8E4M3FN", "f8E5M2"}
    assert all(atom.waves == 4 and atom.d_layout.covers and atom.b_forms for atom in atoms)


@tilefw.jit
def of_bytes(a, b, out, IMPRECISE: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row, column, k = tl.arange(0, 64), tl.arange(0, N), tl.arange(0, K)
    left, right = tl.load(a + row[:, None] * K + k[None, :]), tl.load(b + column[None, :] * K + k[:, None])
    total = tl.dot(left, right, max_num_imprecise_acc=IMPRECISE)
    tl.store(out + row[:, None] * N + column[None, :], total)


@pytest.mark.parametrize("types", [("e4m3fn", "e4m3fn"), ("e5m2", "e4m3fn"), ("e4m3fn", "e5m2")], ids=str)
def test_sums_of_bytes_stay_in_the_unit_where_the_author_allows_it(types: tuple[str, str], tmp_path: Path) -> None:
    """With the sums of the hardware (MMA-Sim), which keeps them short: within the bound of such, and beyond that of others."""
    random, size, depth = np.random.default_rng(9), 64, 256
    left, right = (random.standard_normal((64, depth)).astype(getattr(ml_dtypes, f"float8_{name}")) for name in types)
    wanted = left.astype(np.float64) @ right.astype(np.float64).T
    errors: dict[int, float] = {}
    for imprecise in (0, depth):
        out = np.zeros((64, size), np.float32)
        made = of_bytes[1,](left, right, out, imprecise, size, depth, target=TARGET, numerics="hw", checks="all")
        errors[imprecise] = float(np.abs(out - wanted).max())
        assert ("wgmma" in made.artifact.text) is bool(imprecise)
        a, b = (EvaluatedValue(x.astype(np.float64)[None]) for x in (left, right.T))
        bound = dot(a, b, EvaluatedValue(np.zeros((1, 64, size))), DTYPES["fp32"], imprecise=bool(imprecise))
        assert compare(out[None], bound).wrong == 0
        assembled(made.artifact.text, tmp_path)
    assert errors[depth] > 16 * errors[0]


@tilefw.jit
def onto_a_total(a, b, out, N: tl.constexpr, K: tl.constexpr):
    row, column, k = tl.arange(0, 64), tl.arange(0, N), tl.arange(0, K)
    left, right = tl.load(a + row[:, None] * K + k[None, :]), tl.load(b + column[None, :] * K + k[:, None])
    at = out + row[:, None] * N + column[None, :]
    total = tl.load(at)
    for _ in range(3):
        total += tl.dot(left, right, max_num_imprecise_acc=K)
    tl.store(at, total)


def test_short_sums_are_added_in_full_to_a_total_that_is_not_theirs(tmp_path: Path) -> None:
    ones, out = np.ones((64, 64), ml_dtypes.float8_e4m3fn), np.full((64, 64), 1e6, np.float32)
    made = onto_a_total[1,](ones, ones, out, 64, 64, target=TARGET, numerics="hw", checks="all")
    assert "wgmma" in made.artifact.text
    np.testing.assert_array_equal(out, 1e6 + 3 * 64)
    assembled(made.artifact.text, tmp_path)
