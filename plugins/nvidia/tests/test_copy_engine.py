"""Tensor descriptors on sm_90a: the copy engine fetches what products read, right under every check, and as ptxas takes it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_warpgroup import TARGET, TILES, assembled

import tilefw
import tilefw.language as tl
from tilefw.api.device import DescribedArray
from tilefw.api.errors import CheckError
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.kernel_graph import GraphBuilder
from tilefw.graph.session import Session
from tilefw.kernels.spec import load
from tilefw.kernels.verify import verify
from tilefw.runtime.module import Module
from tilefw.runtime.plugins import loader
from tilefw_nvidia.device.tensor_map import driver_type, element_name
from tilefw_nvidia.isa.meaning.tensor_map import ELEMENT_TYPES

CASES: dict[str, dict[str, Any]] = {
    "whole blocks": {"m": 128, "n": 128, "k": 256, **TILES},
    "beyond the arrays": {"m": 72, "n": 112, "k": 208, **TILES, "dtype": "bf16"},
    "two groups": {"m": 128, "n": 64, "k": 128, "num_warps": 8, **TILES, "block_m": 128, "num_stages": 4},
    "slots that two groups have read": {
        "m": 128, "n": 64, "k": 320, "num_warps": 8, "block_m": 128, "block_n": 64, "block_k": 64, "num_stages": 3,
    },
}


@pytest.mark.parametrize("case", CASES)
def test_blocks_of_described_arrays_come_by_the_engine(case: str, tmp_path: Path) -> None:
    verdict = verify(load("descriptor_matmul"), CASES[case], TARGET, assemble=False, checks="all")
    assert verdict.ok, verdict.failed
    assert not verdict.findings
    assert verdict.artifact is not None
    text = verdict.artifact.text
    assert "cp.async.bulk.tensor.2d" in text
    assert "cp.async.c" not in text
    assembled(text, tmp_path)


PLAIN: dict[str, dict[str, Any]] = {
    "whole blocks": {"m": 128, "n": 128, "k": 256, **TILES},
    "rows that wrap around": {"m": 80, "n": 112, "k": 208, **TILES, "dtype": "bf16", "num_stages": 4},
    "columns": {"m": 80, "n": 112, "k": 208, **TILES, "a_layout": "columns", "b_layout": "columns"},
    "two groups": {"m": 144, "n": 128, "k": 320, "num_warps": 8, "block_m": 128, "block_n": 128, "block_k": 64, "bias": True},
}


@pytest.mark.parametrize("case", PLAIN)
def test_operands_through_pointers_come_by_the_engine(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_VERIFY", "1")
    verdict = verify(load("matmul"), PLAIN[case], TARGET, assemble=False, checks="all")
    assert verdict.ok, verdict.failed
    assert not verdict.findings
    assert verdict.artifact is not None
    assert "cp.async.bulk.tensor.2d" in verdict.artifact.text
    assert "cp.async.c" not in verdict.artifact.text
    assembled(verdict.artifact.text, tmp_path)


@pytest.mark.parametrize("causal", [False, True])
def test_keys_and_values_of_heads_come_by_the_engine(causal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that end within a block too, and those of a causal mask, whose last blocks have a loop of their own."""
    monkeypatch.setenv("TILEFW_VERIFY", "1")
    parameters = {"heads": 2, "queries": 64, "keys": 208, "head_size": 64, "block_m": 64, "block_n": 64, "causal": causal}
    verdict = verify(load("attention"), parameters, TARGET, assemble=False, checks="all")
    assert verdict.ok, verdict.failed
    assert not verdict.findings
    assert verdict.artifact is not None
    assert "cp.async.bulk.tensor.4d.shared" in verdict.artifact.text
    assert "cp.async.bulk.tensor.4d.global" in verdict.artifact.text  # what they become goes out by it
    assert "cp.async.c" not in verdict.artifact.text
    assembled(verdict.artifact.text, tmp_path)


@tilefw.jit
def heads_apart(a, b, out, heads, apart, k, B: tl.constexpr):
    lines, terms = tl.arange(0, B), tl.arange(0, B)
    a_ptrs = a + tl.program_id(0) // heads * apart + lines[:, None] * k + terms[None, :]
    b_ptrs = b + lines[None, :] * k + terms[:, None]
    total = tl.zeros((B, B), tl.float32)
    for _ in range(0, k // B):
        total += tl.dot(tl.load(a_ptrs), tl.load(b_ptrs))
        a_ptrs += B
        b_ptrs += B
    tl.store(out + lines[:, None] * B + lines[None, :], total)


def test_what_would_begin_before_an_array_is_refused_at_the_launch() -> None:
    """Programs divided by a negative number of heads: an engine reads zeros before the array."""
    a, b, out = np.zeros((2, 64, 128), np.float16), np.zeros((64, 128), np.float16), np.zeros((64, 64), np.float32)
    heads_apart[1,](a, b, out, 2, 64 * 128, 128, B=64, target=TARGET)
    with pytest.raises(tilefw.LaunchError, match="blocks before its beginning"):
        heads_apart[1,](a, b, out, -2, 64 * 128, 128, B=64, target=TARGET)


@tilefw.jit
def through_pointers(a, b, out, m, row, k, B: tl.constexpr):
    lines, columns, terms = tl.arange(0, B), tl.arange(0, B), tl.arange(0, B)
    a_ptrs, b_ptrs = a + (lines % m)[:, None] * row + terms[None, :], b + columns[None, :] * k + terms[:, None]
    total = tl.zeros((B, B), tl.float32)
    for step in range(0, tl.cdiv(k, B)):
        left = k - step * B
        x = tl.load(a_ptrs, mask=terms[None, :] < left, other=0.0)
        total += tl.dot(x, tl.load(b_ptrs, mask=terms[:, None] < left, other=0.0))
        a_ptrs += B
        b_ptrs += B
    tl.store(out + lines[:, None] * B + columns[None, :], total, mask=lines[:, None] < m)


@pytest.mark.parametrize("rows", ["forwards", "all the same", "backwards"])
def test_rows_may_lie_in_any_order(rows: str) -> None:
    """An engine takes no rows that go backwards: lanes copy them, and the other operand with them."""
    random, lines = np.random.default_rng(4), 50
    a, b = (random.standard_normal((64, 176)).astype(np.float16) for _ in range(2))
    given = {"forwards": a[:lines], "all the same": np.broadcast_to(a[:1], (lines, 176)), "backwards": a[:lines][::-1]}[rows]
    out = np.zeros((64, 64), np.float32)
    result = through_pointers[1,](given, b, out, lines, given.strides[0] // 2, 176, B=64, target=TARGET, checks="all")
    np.testing.assert_allclose(out[:lines], given.astype(np.float32) @ b.astype(np.float32).T, atol=1e-3)
    assert not out[lines:].any()
    assert result.artifact.text.count("cp.async.bulk.tensor") == (0 if rows == "backwards" else 6)


@tilefw.jit
def stored_upwards(a, b, out, row: tl.constexpr, B: tl.constexpr):
    lines, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    total = tl.dot(tl.load(a + lines * B + columns), tl.load(b + lines * B + columns))
    tl.store(out + lines * row + columns, total.to(tl.float16))


@pytest.mark.parametrize("row", [64, -64])
def test_lanes_store_rows_that_go_backwards(row: int) -> None:
    """By a constant: no launch could tell an engine of them."""
    a, b = np.eye(64, dtype=np.float16), np.random.default_rng(5).standard_normal((64, 64)).astype(np.float16)
    out = np.zeros((64, 64), np.float16)
    there = out if row > 0 else out[::-1]
    result = stored_upwards[1,](a, b, there, row, B=64, target=TARGET, checks="all")
    np.testing.assert_array_equal(there, b)
    assert ("bulk_group" in result.artifact.text) is (row > 0)


@tilefw.jit
def product(a, b, out, k, row, B: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [B, k], [row, 1], [B, B])
    right = tl.make_tensor_descriptor(b, [B, k], [row, 1], [B, B])
    total = tl.zeros((B, B), tl.float32)
    for at in range(0, k, B):
        total += tl.dot(left.load([0, at]), right.load([0, at]).T)
    place = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out + place, total)


@tilefw.jit
def product_of_rows_apart(a, b, out, k, row, B: tl.constexpr):
    product(a, b, out, k, tl.multiple_of(row, 16), B)


def test_an_array_whose_rows_do_not_follow_one_another_is_refused_with_the_reason() -> None:
    """Where the author promised rows that the launch does not have."""
    a, b, out = np.zeros((64, 128), np.float16), np.zeros((64, 128), np.float16), np.zeros((64, 64), np.float32)
    with pytest.raises(tilefw.LaunchError, match="which its copy engine does not take"):
        product_of_rows_apart[1,](a, b, out, 128, -128, B=64, target=TARGET)


def test_a_size_beyond_what_an_engine_counts_is_no_end() -> None:
    """Masks compare with integers of 64 bits that stand for no end; blocks begin at 32 bits."""
    a, b, out = np.ones((64, 128), np.float16), np.ones((64, 128), np.float16), np.zeros((64, 64), np.float32)
    result = through_pointers[1,](a, b, out, 1 << 40, 128, 128, B=64, target=TARGET)
    assert "cp.async.bulk.tensor" in result.artifact.text
    np.testing.assert_array_equal(out, 128)


def test_the_driver_numbers_element_types_in_another_way_than_instructions() -> None:
    """CUDA Driver API, CUtensorMapDataType; PTX ISA, table of `tensormap.replace.elemtype`."""
    names = ("fp16", "fp32", "fp64", "bf16", "int8")
    arrays = [DescribedArray(0, (1,), (), (1,), name, 0) for name in names]
    assert [driver_type(array) for array in arrays] == [6, 7, 8, 9, 0]
    assert [ELEMENT_TYPES[element_name(array)] for array in arrays] == [6, 7, 9, 10, 0]


def test_one_thread_starts_copies_and_all_wait_for_their_phase() -> None:
    verdict = verify(load("descriptor_matmul"), CASES["whole blocks"], TARGET, assemble=False, checks="none")
    assert verdict.artifact is not None
    lines = [line.strip() for line in verdict.artifact.text.splitlines()]
    copies = [line for line in lines if "cp.async.bulk.tensor" in line]
    waits = [line for line in lines if "mbarrier.try_wait.parity" in line]
    assert copies and all(re.match(r"@%p\d+ ", line) for line in copies)
    assert waits and not any(line.startswith("@") for line in waits)


def test_a_plan_describes_arrays_too() -> None:
    """A model's launches pass descriptors of the places that the plan has given to tensors."""
    size, depth = 64, 192
    made = GraphBuilder()
    a, b = (made.input(name, "fp16", (size, depth)) for name in "ab")
    out = made.temporary("product", "fp32", (size, size))
    arguments = {"a": a, "b": b, "out": out, "k": depth, "row": depth}
    made.call("product", product, arguments, (1, 1, 1), {"B": size}, {"num_warps": 4})
    made.output("out", out)
    plan = compile_graph(made.graph(), TARGET)
    assert "cp.async.bulk.tensor" in plan.kernels[0].artifact.text
    random = np.random.default_rng(3)
    left, right = (random.standard_normal((size, depth)).astype(np.float16) for _ in range(2))
    with Session(plan) as session:
        found = session.run({"a": left, "b": right})["out"]
    assert np.abs(found - left.astype(np.float32) @ right.astype(np.float32).T).max() < 1e-3


def test_an_array_without_elements_has_no_strides_to_refuse() -> None:
    """Of depth 0 nothing is copied: NumPy says that its rows are 0 elements apart."""
    a, b, out = np.zeros((64, 0), np.float16), np.zeros((64, 0), np.float16), np.ones((64, 64), np.float32)
    result = product[1,](a, b, out, 0, 0, B=64, target=TARGET, checks="all")
    assert "cp.async.bulk.tensor" in result.artifact.text
    assert not out.any()


@tilefw.jit
def rows_of(a, b, out, m, n, k, B: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [B, B])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [B, B])
    total = tl.full((B, B), 1, tl.float32)
    for at in range(0, k, B):
        total += tl.dot(left.load([0, at]), right.load([0, at]).T)
    tl.store(out + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :], total)


@pytest.mark.parametrize(("m", "n"), [(0, 32), (32, 0)])
def test_blocks_of_an_array_without_rows_are_zeros(m: int, n: int) -> None:
    """A map has one element at least along each dim: that one is not read."""
    a, b, out = np.ones((m, 64), np.float16), np.ones((n, 64), np.float16), np.zeros((32, 32), np.float32)
    result = rows_of[1,](a, b, out, m, n, 64, B=32, target=TARGET, checks="all")
    assert "cp.async.bulk.tensor" in result.artifact.text
    assert (out == 1).all()


@tilefw.jit
def twice(a, b, out, k, row, again, B: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [B, k], [row, 1], [B, B])
    right = tl.make_tensor_descriptor(b, [B, k], [row, 1], [B, B])
    total = tl.zeros((B, B), tl.float32)
    for at in range(0, k, B):
        total += tl.dot(left.load([0, at]), right.load([0, at]).T)
    if again > 3:
        for at in range(0, k, B):
            total += tl.dot(left.load([0, at]), right.load([0, at]).T)
    place = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out + place, total)


@tilefw.jit
def stored_before(a, b, out, k, row, factor, B: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [B, k], [row, 1], [B, B])
    right = tl.make_tensor_descriptor(b, [B, k], [row, 1], [B, B])
    lines, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    for at in range(0, k, B):
        place = a + lines * row + at + columns
        tl.store(place, tl.load(place) * factor)
    total = tl.zeros((B, B), tl.float32)
    for at in range(0, k, B):
        total += tl.dot(left.load([0, at]), right.load([0, at]).T)
    tl.store(out + lines * B + columns, total)


@pytest.mark.parametrize("kernel", [twice, stored_before], ids=["loops in branches", "what the kernel stored itself"])
def test_lanes_copy_what_the_engine_cannot_beside_what_it_can(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_VERIFY", "1")
    random = np.random.default_rng(5)
    a, b = (random.standard_normal((32, 128)).astype(np.float16) for _ in range(2))
    out = np.zeros((32, 32), np.float32)
    wanted = 4 * (a.astype(np.float32) @ b.astype(np.float32).T)
    if kernel is twice:
        a = 2 * a  # two loops
    text = kernel[1,](a, b, out, 128, 128, 4, B=32, num_warps=4, target=TARGET, checks="all").artifact.text
    np.testing.assert_allclose(out, wanted, atol=1e-2)
    assert "cp.async.bulk.tensor" in text
    assert "cp.async.c" in text


@tilefw.jit
def powers(a, b, out, K, B: tl.constexpr):
    lines, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    for _ in range(2):
        total = tl.zeros((B, B), tl.float32)
        for at in range(0, K, B):
            total = tl.dot(tl.load(a + lines * K + at + columns), tl.load(b + (at + lines) * B + columns), total)
        tl.store(out + lines * K + columns, total.to(tl.float16))
        tl.debug_barrier()


@pytest.mark.parametrize("same", [False, True], ids=["arrays of their own", "one array"])
def test_arguments_that_are_one_array_at_a_launch_are_copied_by_lanes(same: bool) -> None:
    """The second turn reads what the first stored, which an engine would not see: no fence of its view is there."""
    random, found = np.random.default_rng(7), {}
    a, b = (random.standard_normal(shape).astype(np.float16) / 8 for shape in ((64, 192), (192, 64)))
    for target in ("reference", TARGET):
        read = a.copy()
        found[target] = read if same else np.zeros_like(a)
        result = powers[1,](read, b, found[target], 192, B=64, target=target, checks="all")
    np.testing.assert_allclose(found[TARGET].astype(np.float32), found["reference"].astype(np.float32), atol=4e-3)
    assert ("cp.async.bulk.tensor" in result.artifact.text) == (not same)


@tilefw.jit
def short_rows(a, out, n, B: tl.constexpr):
    described = tl.make_tensor_descriptor(a, [n], [1], [B])
    total = tl.zeros((B,), tl.float32)
    for at in tl.range(0, n, B, num_stages=3):
        total += described.load([at])
    tl.store(out + tl.arange(0, B), total)


def test_slots_that_do_not_begin_where_the_engine_writes_are_left_to_lanes() -> None:
    """Slots of 64 bytes; PTX ISA, cp.async.bulk.tensor: a box in shared memory begins at a multiple of 128."""
    a, out = np.random.default_rng(6).standard_normal(80).astype(np.float32), np.zeros(16, np.float32)
    short_rows[1,](a, out, 80, B=16, num_warps=1, target=TARGET, checks="all")
    np.testing.assert_allclose(out, a.reshape(5, 16).sum(0), rtol=1e-5)


@tilefw.jit
def tile_of_product(a, b, out, M, N, K, row, B: tl.constexpr):
    rows, columns = row + tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    k = tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for first in range(0, K, B):
        left = tl.load(a + (tl.program_id(0) * B + k)[:, None] * K + first + k[None, :])
        total = tl.dot(left, tl.load(b + (first + k)[:, None] * N + columns[None, :]), total)
    tl.store(out + rows[:, None] * N + columns[None, :], total.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


def _tiles() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(8)
    a, b = (random.standard_normal(shape).astype(np.float16) / 8 for shape in ((128, 192), (192, 128)))
    return a, b, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)


@pytest.mark.parametrize("row", [0, 16, -16])
def test_products_of_halves_go_out_by_the_engine(row: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that reach beyond the array are cut; those that begin before it, here in the middle of another, lanes store."""
    monkeypatch.setenv("TILEFW_VERIFY", "1")
    a, b, product = _tiles()
    out = np.full((160, 128), 7, np.float16)
    result = tile_of_product[2, 2](a, b, out[16:144], 120, 128, 192, row, B=64, num_warps=4, target=TARGET, checks="all")
    wanted = np.full((160, 128), 7, np.float16)
    begin, end = 16 + row, min(16 + 120, 16 + row + 128)
    wanted[begin:end] = product[: end - begin]
    np.testing.assert_allclose(out, wanted, atol=2e-3)
    assert "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group" in result.artifact.text
    assert "stmatrix" in result.artifact.text
    assembled(result.artifact.text, tmp_path)


STORED = ("fence.proxy.async.shared::cta", "bar.sync 0", "@%p cp.async.bulk.commit_group", "@%p cp.async.bulk.wait_group.read 0")


@pytest.mark.parametrize("removed", STORED)
def test_nothing_of_a_store_by_the_engine_can_be_left_out(removed: str) -> None:
    a, b, product = _tiles()
    out = np.zeros_like(product)
    artifact = tile_of_product.warmup(a, b, out, 128, 128, 192, 0, B=64, num_warps=4, target=TARGET, grid=(2, 2)).artifact
    lines = artifact.text.splitlines()
    at = max(i for i, line in enumerate(lines) if re.sub(r"%p\d+", "%p", line.strip()) == f"{removed};")
    changed = replace(artifact, text="\n".join([*lines[:at], *lines[at + 1 :]]))
    with pytest.raises(CheckError):
        Module(changed, loader.find_target(TARGET)).only().launch((2, 2), [a, b, out, 128, 128, 192, 0], checks="all")
