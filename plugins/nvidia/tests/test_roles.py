"""A loop with warp_specialize is divided: warps that copy, warps that multiply; right under every check, as ptxas wants it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_warpgroup import assembled

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CheckError
from tilefw.runtime.jit import JITFunction
from tilefw.runtime.module import Module
from tilefw.runtime.plugins import loader

TARGET = "nvidia-sm90a"


@tilefw.jit
def product(a, b, out, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for first in tl.range(0, K, BK, warp_specialize=True):
        left = tl.load(a + rows[:, None] * K + first + k[None, :])
        acc = tl.dot(left, tl.load(b + (first + k)[:, None] * N + columns[None, :]), acc)
    tl.store(out + rows[:, None] * N + columns[None, :], acc)


@tilefw.jit
def persistent(a, b, out, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    k = tl.arange(0, BK)
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), across * 2, tl.num_programs(0), warp_specialize=True):
        rows, columns = tile // across * BM + tl.arange(0, BM), tile % across * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for first in range(0, K, BK):
            left = tl.load(a + rows[:, None] * K + first + k[None, :])
            acc = tl.dot(left, tl.load(b + (first + k)[:, None] * N + columns[None, :]), acc)
        tl.store(out + rows[:, None] * N + columns[None, :], acc)


@tilefw.jit
def attention(q, k, v, out, n, D: tl.constexpr, B: tl.constexpr):
    rows, d, c = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D), tl.arange(0, B)
    query = tl.load(q + rows[:, None] * D + d[None, :])
    most = tl.full((B,), float("-inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    acc = tl.zeros((B, D), tl.float32)
    for first in tl.range(0, n, B, warp_specialize=True):
        scores = tl.dot(query, tl.load(k + (first + c)[None, :] * D + d[:, None])) * 0.125
        now = tl.maximum(most, tl.max(scores, 1))
        weights, shrunk = tl.exp(scores - now[:, None]), tl.exp(most - now)
        total = total * shrunk + tl.sum(weights, 1)
        values = tl.load(v + (first + c)[:, None] * D + d[None, :])
        acc = tl.dot(weights.to(tl.float16), values, acc * shrunk[:, None])
        most = now
    tl.store(out + rows[:, None] * D + d[None, :], acc / total[:, None])


def _halves(seed: int, *shapes: tuple[int, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal(shape) / 4).astype(np.float16) for shape in shapes]


Case = tuple[Any, tuple[int, ...], list[np.ndarray], tuple[int, ...], dict[str, int]]
BLOCKS = {"BM": 64, "BN": 64, "BK": 32}


def _cases() -> dict[str, Case]:
    factors = [*_halves(1, (128, 224), (224, 128)), np.zeros((128, 128), np.float32)]
    heads = [*_halves(2, (64, 64), (192, 64), (192, 64)), np.zeros((64, 64), np.float32)]
    wide = [*_halves(2, (128, 128), (256, 128), (256, 128)), np.zeros((128, 128), np.float32)]
    return {
        "products": (product, (2, 2), factors, (224, 128), {**BLOCKS, "num_warps": 4}),
        "two groups": (product, (1, 2), factors, (224, 128), {**BLOCKS, "BM": 128, "num_warps": 8}),
        "own products of warps": (product, (2, 2), factors, (224, 128), {**BLOCKS, "num_warps": 2}),
        "tiles one after the other": (persistent, (3,), factors, (224, 128), {**BLOCKS, "num_warps": 4}),
        "no iteration": (product, (2, 2), factors, (0, 128), {**BLOCKS, "num_warps": 4}),
        "registers dealt out": (attention, (1,), wide, (256,), {"D": 128, "B": 128, "num_warps": 8}),
        "chain": (attention, (1,), heads, (192,), {"D": 64, "B": 64, "num_warps": 4}),
    }


@pytest.mark.parametrize("case", _cases())
def test_a_divided_loop_is_right_and_clean(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILEFW_VERIFY", "1")
    kernel, grid, arrays, rest, words = _cases()[case]
    found = {}
    for target in ("reference", TARGET):
        *inputs, out = (array.copy() for array in arrays)
        result = kernel[grid](*inputs, out, *rest, **words, target=target, checks="all")
        found[target] = out
    np.testing.assert_allclose(found[TARGET], found["reference"], rtol=2e-3, atol=2e-3)
    assert not [remark for remark in result.remarks if remark.code == "TFW0627"]
    text = result.artifact.text
    assert "cp.async.mbarrier.arrive.noinc" in text and "mbarrier.try_wait.parity" in text
    assert ("setmaxnreg.dec" in text) == ("setmaxnreg.inc" in text) == (case in ("registers dealt out", "two groups"))
    assembled(text, tmp_path)


MUTATIONS = {
    "the wait for a full slot": ("mbarrier.try_wait.parity", 1), "the wait for an empty slot": ("mbarrier.try_wait.parity", 0),
    "the arrival behind copies": ("cp.async.mbarrier.arrive", 0), "the arrival for an empty slot": ("mbarrier.arrive.shared", 0),
    "the wait for products": ("wgmma.wait_group.sync.aligned 1", 0), "the fence": ("fence.proxy.async", 0),
    "the workgroup's barrier": ("bar.sync 0", 0),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_nothing_of_the_hand_over_can_be_left_out(mutation: str):
    kernel, grid, arrays, rest, words = _cases()["products"]
    *inputs, out = arrays
    text = kernel.warmup(*inputs, out, *rest, **words, target=TARGET, grid=grid).artifact.text
    opcode, number = MUTATIONS[mutation]
    lines = text.splitlines()
    at = [index for index, line in enumerate(lines) if re.match(rf"\s*(@%p\d+ )?{re.escape(opcode)}", line)][number]
    # What asks for a phase is followed by the branch back, which goes as well.
    lines[at : at + (2 if "try_wait" in opcode else 1)] = []
    module = tilefw.load("\n".join(lines).encode(), target=TARGET)
    with pytest.raises(CheckError):
        module["product"].launch(grid, [*(array.copy() for array in inputs), out.copy(), *rest], checks="all", budget=10**7)


@tilefw.jit
def written_while_read(a, out, K, B: tl.constexpr):
    at = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for first in tl.range(0, K, B, warp_specialize=True):
        tile = tl.load(a + (first + at)[:, None] * B + at[None, :])
        acc = tl.dot(tile, tile, acc)
        tl.store(a + (first + at)[:, None] * B + at[None, :], tile)
    tl.store(out + at[:, None] * B + at[None, :], acc)


@tilefw.jit
def written_before_it_is_read(a, out, K, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(a + at[:, None] * B + at[None, :], tl.full((B, B), 2.0, tl.float16))
    tl.debug_barrier()
    acc = tl.zeros((B, B), tl.float32)
    for first in tl.range(0, K, B, warp_specialize=True):
        tile = tl.load(a + (first + at)[:, None] * B + at[None, :])
        acc = tl.dot(tile, tile, acc)
    tl.store(out + at[:, None] * B + at[None, :], acc)


@pytest.mark.parametrize("kernel", [written_while_read, written_before_it_is_read])
def test_a_wish_for_roles_that_is_not_followed_is_told(kernel: JITFunction):
    (a,) = _halves(3, (128, 64))
    found = {}
    for target in ("reference", TARGET):
        out = np.zeros((64, 64), np.float32)
        result = kernel[(1,)](a.copy(), out, 128, B=64, target=target, checks="all")
        found[target] = out
    np.testing.assert_allclose(found[TARGET], found["reference"], rtol=2e-3, atol=2e-3)
    (remark,) = (each for each in result.remarks if each.code == "TFW0627")
    assert "may write what the loop reads" in remark.message
    assert remark.place is not None and remark.place.line


@tilefw.jit
def waiting(a, out, flag, K, B: tl.constexpr, BEFORE: tl.constexpr):
    at = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    if BEFORE:
        while tl.load(flag, volatile=True) == 0:
            pass
    for first in tl.range(0, K, B, warp_specialize=True):
        tile = tl.load(a + (first + at)[:, None] * B + at[None, :])
        acc = tl.dot(tile, tile, acc)
    if not BEFORE:
        while tl.load(flag, volatile=True) == 0:
            pass
    tl.store(out + at[:, None] * B + at[None, :], acc)


@pytest.mark.parametrize("before", [True, False], ids=["before the loop", "behind it"])
def test_a_wait_for_another_program_stays_and_no_copy_comes_before_it(before: bool):
    (a,) = _halves(3, (128, 64))
    out, flag = np.zeros((64, 64), np.float32), np.ones(1, np.int32)
    result = waiting[(1,)](a, out, flag, 128, B=64, BEFORE=before, target=TARGET, checks="all")
    assert "ld.volatile" in result.artifact.text
    assert ("mbarrier.arrive" in result.artifact.text) == (not before)
    assert any("may wait for another program" in remark.message for remark in result.remarks) == before


@tilefw.jit
def two_loops(a, b, out, K, B: tl.constexpr):
    at = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for first in tl.range(0, K, B, warp_specialize=True):
        left = tl.load(a + at[:, None] * K + first + at[None, :])
        acc = tl.dot(left, tl.load(b + (first + at)[:, None] * B + at[None, :]), acc)
    for first in range(0, K, B):
        left = tl.load(a + at[:, None] * K + first + at[None, :])
        acc = tl.dot(left, tl.load(b + (first + at)[:, None] * B + at[None, :]), acc)
    tl.store(out + at[:, None] * B + at[None, :], acc)


def test_a_loop_beside_another_one_that_copies_stays_whole(monkeypatch: pytest.MonkeyPatch):
    """What the other copies would be the producer's, and nobody would hand it over."""
    monkeypatch.setenv("TILEFW_VERIFY", "1")
    a, b = _halves(6, (64, 128), (128, 64))
    out = np.zeros((64, 64), np.float32)
    result = two_loops[(1,)](a, b, out, 128, B=64, target=TARGET, checks="all")
    np.testing.assert_allclose(out, 2 * (a.astype(np.float32) @ b.astype(np.float32)), rtol=2e-3, atol=2e-3)
    (remark,) = (each for each in result.remarks if each.code == "TFW0627")
    assert "another loop of the kernel copies" in remark.message


@tilefw.jit
def turns(a, b, out, number, K, B: tl.constexpr):
    at = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for _ in tl.range(0, tl.load(number), 1, warp_specialize=True):
        for first in range(0, K, B):
            left = tl.load(a + at[:, None] * K + first + at[None, :])
            acc = tl.dot(left, tl.load(b + (first + at)[:, None] * B + at[None, :]), acc)
    tl.store(out + at[:, None] * B + at[None, :], acc)


def test_a_loop_as_often_as_memory_says_stays_whole(monkeypatch: pytest.MonkeyPatch):
    """Its producer would read what is not its own."""
    monkeypatch.setenv("TILEFW_VERIFY", "1")
    a, b = _halves(7, (64, 128), (128, 64))
    out = np.zeros((64, 64), np.float32)
    result = turns[(1,)](a, b, out, np.array([2], np.int32), 128, B=64, target=TARGET, checks="all")
    np.testing.assert_allclose(out, 2 * (a.astype(np.float32) @ b.astype(np.float32)), rtol=2e-3, atol=2e-3)
    assert any("its bounds, or the addresses" in each.message for each in result.remarks if each.code == "TFW0627")


def test_sums_that_leave_no_registers_for_a_producer_are_told():
    factors = [*_halves(4, (128, 64), (64, 256)), np.zeros((128, 256), np.float32)]
    result = product[(1, 1)](*factors, 64, 256, BM=128, BN=256, BK=64, num_warps=8, target=TARGET)
    assert "512 threads have 128 registers each" in " ".join(remark.message for remark in result.remarks)


@tilefw.jit
def described(a, b, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    left, right = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK]), tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    tiles = tl.make_tensor_descriptor(out, [M, N], [N, 1], [BM, BN])
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), warp_specialize=True):
        row, column = tile // across * BM, tile % across * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(left.load([row, k]), right.load([column, k]).T, acc)
        tiles.store([row, column], acc.to(tl.float16))


@pytest.mark.parametrize(
    ("blocks", "warps"), [({"BM": 64, "BN": 64, "BK": 64}, 4), ({"BM": 128, "BN": 256, "BK": 64}, 8)], ids=["small", "recipe"]
)
def test_the_producer_of_described_arrays_is_four_warps_beside_an_engine(
    blocks: dict[str, int], warps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TILEFW_VERIFY", "1")
    a, b = _halves(5, (256, 192), (256, 192))
    found = {}
    for target in ("reference", TARGET):
        found[target] = np.zeros((256, 256), np.float16)
        result = described[(2,)](a, b, found[target], 256, 256, 192, **blocks, num_warps=warps, target=target, checks="all")
    np.testing.assert_allclose(found[TARGET], found["reference"], rtol=2e-3, atol=2e-3)
    text = result.artifact.text
    assert f".reqntid {32 * warps + 128}, 1, 1" in text
    assert "cp.async.bulk.tensor.2d" in text and "mbarrier.arrive.expect_tx" in text and "cp.async.c" not in text
    made = text[text.rindex("mbarrier.init") :]
    assert text.count("fence.mbarrier_init.release.cluster") == 1 == made[: made.index("bar.sync")].count("fence.")
    # A tile is on its way beside the next one's products: the thread waits for it when it stores again.
    stored = text.index("cp.async.bulk.tensor.2d.global.shared")
    assert text.rindex("cp.async.bulk.wait_group 0", 0, stored) < stored < text.rindex("cp.async.bulk.wait_group.read 0")
    # Two groups that multiply have 232 registers a thread: 128 of 40 and 256 of 232 are 65 536 at most.
    assert ("setmaxnreg.dec.sync.aligned.u32 40" in text and "setmaxnreg.inc.sync.aligned.u32 232" in text) == (warps == 8)
    assembled(text, tmp_path)


@tilefw.jit
def tutorial(
    a, b, c, M, N, K, stride_am, stride_bk, stride_cm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    WISH: tl.constexpr = True,  # type: ignore[assignment]
):
    program, down, across = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first_down = program // (2 * across) * 2
    group = min(down - first_down, 2)
    at_row = (first_down + program % (2 * across) % group) * BM
    at_column = program % (2 * across) // group * BN
    rows, columns, k = (at_row + tl.arange(0, BM)) % M, (at_column + tl.arange(0, BN)) % N, tl.arange(0, BK)
    a_ptrs, b_ptrs = a + rows[:, None] * stride_am + k[None, :], b + k[:, None] * stride_bk + columns[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for step in tl.range(0, tl.cdiv(K, BK), warp_specialize=WISH):
        left = tl.load(a_ptrs, mask=k[None, :] < K - step * BK, other=0.0)
        acc = tl.dot(left, tl.load(b_ptrs, mask=k[:, None] < K - step * BK, other=0.0), acc)
        a_ptrs += BK
        b_ptrs += BK * stride_bk
    rows, columns = at_row + tl.arange(0, BM), at_column + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * stride_cm + columns[None, :], acc.to(tl.float16), mask=mask)


TUTORIAL = (96, 176, 208, 208, 176, 176)
TUTORIAL_WORDS: dict[str, Any] = {"BM": 64, "BN": 64, "BK": 64, "num_warps": 4, "num_stages": 4, "target": TARGET}


def test_the_tutorial_s_product_is_fetched_by_a_producer_and_stored_from_its_ring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The engine fetches and stores; the result has the bytes of slots that all consumers have read."""
    monkeypatch.setenv("TILEFW_VERIFY", "1")
    a, b = _halves(9, (96, 208), (208, 176))
    out = np.zeros((96, 176), np.float16)
    result = tutorial[6,](a, b, out, *TUTORIAL, **TUTORIAL_WORDS, checks="all")
    np.testing.assert_allclose(out, a.astype(np.float32) @ b.astype(np.float32), rtol=2e-3, atol=2e-3)
    text = result.artifact.text
    assert "cp.async.bulk.tensor.2d.shared" in text and "cp.async.bulk.tensor.2d.global" in text and "cp.async.c" not in text
    assert not result.remarks
    assert f"+{4 * 16384}], 32;" in text  # the barriers stand right behind the slots, for one warp that starts the engine
    assembled(text, tmp_path)


@pytest.mark.parametrize("removed", ["bar.sync 1, 128", "fence.proxy.async.shared::cta"])
def test_nothing_of_the_result_s_way_out_can_be_left_out(removed: str):
    a, b = _halves(9, (96, 208), (208, 176))
    out = np.zeros((96, 176), np.float16)
    artifact = tutorial.warmup(a, b, out, *TUTORIAL, **TUTORIAL_WORDS, grid=(6,)).artifact
    lines = artifact.text.splitlines()
    at = max(i for i, line in enumerate(lines) if line.strip() == f"{removed};")
    changed = replace(artifact, text="\n".join([*lines[:at], *lines[at + 1 :]]))
    with pytest.raises(CheckError):
        Module(changed, loader.find_target(TARGET)).only().launch((6,), [a, b, out, *TUTORIAL], checks="all")


@pytest.mark.parametrize("columns, stages, divided", [(256, 3, True), (128, 3, False), (256, 2, False)])
def test_roles_come_by_themselves_where_a_processor_has_room_for_one_workgroup_alone(columns: int, stages: int, divided: bool):
    """Sums of 128x256 on 8 warps fill a processor; of 128x128 two workgroups run side by side, and stay whole, as do rings of two
    slots, where a copy would come beside one product alone."""
    a, b = _halves(4, (160, 208), (208, 256))
    out = np.zeros((160, 256), np.float16)
    words = {**TUTORIAL_WORDS, "BM": 128, "BN": columns, "num_warps": 8, "num_stages": stages, "WISH": False}
    result = tutorial[2 * 256 // columns,](a, b, out, 160, 256, 208, 208, 256, 256, **words, checks="all")
    np.testing.assert_allclose(out, a.astype(np.float32) @ b.astype(np.float32), rtol=2e-3, atol=2e-3)
    assert ("setmaxnreg.inc" in result.artifact.text) == divided


@pytest.mark.parametrize("most", [160, 255])
def test_registers_are_not_dealt_out_where_the_launch_says_how_many_a_thread_has(most: int):
    """384 threads of 160 have fewer than 128 of 40 and 256 of 232 want, and of 255 more than a processor has."""
    a, b = _halves(4, (160, 208), (208, 256))
    words = {**TUTORIAL_WORDS, "BM": 128, "BN": 256, "num_warps": 8, "num_stages": 3, "WISH": False, "maxnreg": most}
    out = np.zeros((160, 256), np.float16)
    text = tutorial.warmup(a, b, out, 160, 256, 208, 208, 256, 256, **words, grid=(2,)).artifact.text
    assert "setmaxnreg" not in text and ".reqntid 256, 1, 1" in text and f".maxnreg {most}" in text


def test_what_is_stored_behind_the_loop_may_be_in_memory_that_the_loop_read():
    """The result begins where the last row of `a` lies: all copies have landed when it is stored."""
    a, b = _halves(4, (160, 208), (208, 256))
    memory = np.zeros(160 * 208 + 160 * 256, np.float16)
    memory[: 160 * 208] = a.reshape(-1)
    first, out = memory[: 160 * 208].reshape(160, 208), memory[159 * 208 :][: 159 * 256].reshape(159, 256)
    words = {**TUTORIAL_WORDS, "BM": 256, "BN": 128, "num_warps": 8, "num_stages": 3, "WISH": True}
    result = tutorial[2,](first, b, out, 159, 256, 208, 208, 256, 256, **words, checks="all")
    np.testing.assert_allclose(out, a[:159].astype(np.float32) @ b.astype(np.float32), rtol=2e-3, atol=2e-3)
    assert "setmaxnreg.inc" in result.artifact.text and not result.remarks
