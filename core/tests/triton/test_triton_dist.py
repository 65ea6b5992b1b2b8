"""Kernels in Triton-distributed's way: of a checkout as they are, its primitives and SHMEM's on a node. The checkout is made up."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilefw
from tilefw.api.errors import CodeError, CompileError, UnsupportedError
from tilefw.distributed.node import DeviceNode
from tilefw.triton.triton_dist import PACKAGE, open_checkout
from tilefw.triton.triton_dist.threads import COUNT, over_threads

N = 100
_COMMON = '''import cuda_driver
import triton
import triton.language as tl
from triton_dist.language.extra.language_extra import tid

WORLD = tl.constexpr(2)
raise RuntimeError("only kernels, imports and constants are taken")

@triton.jit
def _is_cta_master():
    return tid(0) + tid(1) + tid(2) == 0

def host_code():
    return cuda_driver.count()

@tl.constexpr_function
def half(n):
    return n // 2
'''
_KERNELS = '''import triton
import triton.language as tl
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device
from triton_dist.tools import aot_compile_spaces
from triton_dist.language.extra.language_extra import atomic_add, ld_acquire, __syncthreads, tid
from .common import WORLD, _is_cta_master, half, host_code

@triton.jit
def push(source, target, signals, n, BLOCK: tl.constexpr):
    """A transfer with a signal, and a wait that gives a token."""
    me, ranks = dl.rank(), dl.num_ranks()
    libshmem_device.putmem_signal_nbi_block(
        target, source, n * 4, signals + me, 5, libshmem_device.NVSHMEM_SIGNAL_SET, (me + 1) % ranks)
    token = dl.wait(signals + (me + 1) % ranks, 1, "sys", "acquire", waitValue=5)
    target = dl.consume_token(target, token)
    at = tl.arange(0, BLOCK)
    value = tl.load(target + at, mask=at < n)
    libshmem_device.barrier_all()
    tl.store(source + at, value + me, mask=at < n)

@triton.jit
def by_threads(words, counts, ranks):
    """One thread for each rank announces itself, and one for each waits."""
    thread = tid(0)
    if thread < ranks:
        atomic_add(dl.symm_at(words + dl.rank(), thread), thread + 1, scope="sys", semantic="release")
    if thread < ranks:
        while ld_acquire(words + thread, "sys") != dl.rank() + 1:
            pass
    __syncthreads()
    if _is_cta_master():
        tl.store(counts, WORLD)

@aot_compile_spaces({"meets": host_code()["signature"]})
@triton.jit(do_not_specialize=["SIZE"])
def meets(words, SIZE: tl.constexpr):
    tl.static_assert(half(SIZE) == 3)
    libshmem_device.barrier_all_block()
    if not _is_cta_master():
        atomic_add(words, 1, semantic="relaxed")
    libshmem_device.barrier(libshmem_device.NVSHMEM_TEAM_WORLD)

@triton.jit
def of_the_host(words):
    host_code()

@triton.jit
def of_a_team(words):
    libshmem_device.barrier(7)

@triton.jit
def misspelt(words):
    ld_acquire(words, scope="cluster")
'''


@pytest.fixture
def code(tmp_path: Path) -> ModuleType:
    folder = tmp_path / PACKAGE / "kernels"
    folder.mkdir(parents=True)
    (folder / "common.py").write_text(_COMMON)
    (folder / "made.py").write_text(_KERNELS)
    checkout = open_checkout(tmp_path)
    found = checkout.module("triton_dist.kernels.made")
    assert isinstance(found, ModuleType)
    return found


@pytest.fixture(params=["reference", "nvidia-sm80", "amd-cdna3"])
def node(request: pytest.FixtureRequest) -> DeviceNode:
    return tilefw.node(request.param, 2)


def test_transfers_signals_and_tokens_reach_the_other_rank(code: ModuleType, node: DeviceNode) -> None:
    values = [np.arange(N, dtype=np.int32) + 1000 * rank for rank in node.ranks]
    source, target, signals = node.array(values), node.zeros(N, "int32"), node.zeros(2, "int64")
    node.launch(code.push, (1,), source, target, signals, N, BLOCK=128, seed=3, checks="all")
    assert all((source[rank] == values[1 - rank] + rank).all() for rank in node.ranks)


def test_what_threads_do_apart_is_done_by_each(code: ModuleType, node: DeviceNode) -> None:
    words, counts = node.zeros(2, "int32"), node.zeros(1, "int32")
    node.launch(code.by_threads, (1,), words, counts, 2, seed=1, checks="all")
    assert [words[rank].tolist() for rank in node.ranks] == [[1, 1], [2, 2]]
    assert [counts[rank].tolist() for rank in node.ranks] == [[2], [2]]


def test_the_nodes_barrier_takes_no_word_of_an_array(code: ModuleType, node: DeviceNode) -> None:
    words = node.zeros(2, "int64")
    for _ in range(2):
        node.launch(code.meets, (1,), words, 7, checks="all")
    assert [words[rank].tolist() for rank in node.ranks] == [[254, 0], [254, 0]]  # 127 threads are not the first one
    assert [array.tolist() for array in node.heap.barrier] == [[8, 4], [8, 4]]


@pytest.mark.parametrize(("kernel", "error", "told"), [
    ("of_the_host", UnsupportedError, "serves no .*host_code"),
    ("of_a_team", CompileError, "team 7 is not all ranks"),
    ("misspelt", CompileError, "scope is one of 'cta'"),
])
def test_what_is_not_served_is_refused_by_name(code: ModuleType, kernel: str, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        node = tilefw.node("reference", 2)
        node.launch(getattr(code, kernel), (1,), node.zeros(2, "int32"))


@pytest.mark.parametrize(("body", "told"), [
    ("x = 0\n if tid(0) < 4:\n  x += 1", "keeps for later"),
    ("if tid(0) < 4:\n  __syncthreads()", "__syncthreads by threads that are apart"),
    ("return tid(0)", "differs from thread to thread"),
    ("n = 1\n mine = tid(0) * n\n n = 2\n if mine < 4:\n  st(p, mine)", "which changes"),
    ("if tid(0) < 4:\n  x = 1\n y = x", "which threads store apart"),
    ("put(p, tid(0))", "a function of all threads"),
    ("mine = tid(0)\n mine += 1\n if mine < 4:\n  st(p, mine)", "differs from thread to thread"),
    ("if q:\n  mine = tid(0)\n else:\n  mine = tid(0) * 2\n if mine < 4:\n  st(p, mine)", "on some of the ways"),
    ("mine = 0\n if q:\n  mine = tid(0)\n if mine < 4:\n  st(p, mine)", "on some of the ways"),
    ("mine = tid(0)\n for i in range(3):\n  if mine < 4:\n   st(p, mine)\n  mine = mine + 32", "on some of the ways"),
    ("mine = tid(0)\n if mine == 0:\n  mine = 7\n if mine < 4:\n  st(p, mine)", "on some of the ways"),
    ("mine = tid(0)\n if mine < 4:\n  mine = 7\n  st(p, mine)", "keeps for later"),
    ("mine = atomic_add(p + tid(0), 1)", "reads for later"),
    ("mine = ld(p + tid(0))\n __syncthreads()\n if tid(0) < 4:\n  st(p, mine)", "reads for later"),
    ("mine = count(tid(0))\n if tid(0) < 4:\n  st(p, mine)", "would compute anew"),
    ("if tid(0) == 0:\n  return\n st(p, tid(0))", "the end of one thread"),
])
def test_values_of_threads_that_a_program_cannot_have_are_refused(body: str, told: str) -> None:
    (function,) = ast.parse(f"def kernel(p):\n {body}\n").body
    assert isinstance(function, ast.FunctionDef)
    with pytest.raises(UnsupportedError, match=told):
        over_threads(function)


def done(body: str) -> list[tuple[int, int]]:
    """What 4 threads store: (where, what)."""
    (function,) = ast.parse(f"def kernel(p, n=0):\n {body}\n").body
    assert isinstance(function, ast.FunctionDef)
    stores: list[tuple[int, int]] = []
    known: dict[str, Any] = {COUNT: 4, "tid": lambda axis: 0, "st": lambda at, value: stores.append((at, value))}
    exec(ast.unparse(over_threads(function) or function), known)
    known["kernel"](0)
    return stores


@pytest.mark.parametrize(("body", "stored"), [
    ("if tid(0) < 2:\n  st(p + tid(0), 1)\n else:\n  st(p + tid(0), 2)", [(0, 1), (1, 1), (2, 2), (3, 2)]),
    ("if tid(0) < 100:\n  st(p + tid(0), 1)", [(0, 1), (1, 1), (2, 1), (3, 1)]),
    ("if tid(0) == 0:\n  st(p + tid(0), 1)", [(0, 1)]),
    ("if n == 0:\n  mine = tid(0) * 2\n  if mine < 3:\n   st(p, mine)", [(0, 0), (0, 2)]),
    ("for i in range(2):\n  mine = tid(0) + i\n  if mine < 2:\n   st(i, mine)", [(0, 0), (0, 1), (1, 1)]),
    ("mine = tid(0)\n mine = mine + 2\n if mine < 4:\n  st(p, mine)", [(0, 2), (0, 3)]),
])
def test_each_thread_does_its_own_part_once(body: str, stored: list[tuple[int, int]]) -> None:
    assert done(body) == stored


def test_files_without_kernels_are_told(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("def (\n")
    for name, told in (("empty.py", "no function under"), ("broken.py", "cannot be read"), ("absent.py", "cannot be read")):
        with pytest.raises(CodeError, match=told):
            open_checkout(tmp_path).kernels(tmp_path / name)
