"""`tilefw.language.distributed`: a peer's copy is as far as its heap is; signals, waits and fences order; mistakes are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.api.errors import CompileError, LaunchError
from tilefw.frontend import build_module
from tilefw.node_context import HIDDEN

HEAP = 4096  # bytes between the two heaps, which are halves of one array
N = 256


@tilefw.jit
def to_a_peer(src, dst, flag, out, N: tl.constexpr):
    """Every function once, from rank 0 to rank 1."""
    at = tl.arange(0, N)
    tld.put_signal(src + at, dst + at, flag, 1, value=7)
    token = tld.wait(tld.at(flag, 1), value=7)
    x = tld.load(tld.consume(dst + at, token), 1)
    tld.get(dst + at, dst + at, 1)
    tld.atomic_add(flag + 1 + at, at, 1, mask=at < 5)
    tld.fence("release")
    tld.atomic_add(flag, 1, 1, sem="relaxed")
    tld.signal(flag + 6, 1, 3, "add")
    tld.wait(tld.at(flag, 1), 2, 0, ">")
    tld.store(flag + 8 + at, at, tld.num_ranks() - 1, mask=at < 3)
    tld.quiet()
    tl.store(out + at, x + tld.rank() + 10 * tld.num_ranks())


@tilefw.jit
def met_alone(words):
    tld.barrier(words)
    tld.barrier_wait(words, tld.barrier_arrive(words, team=tld.team(0, 1, 1)))


def launched(kernel: Any, target: str, arrays: list[Any], signature: dict[str, str], folder: Path, **constexprs: Any) -> None:
    """Run one program, with the node context as its last argument."""
    artifact = tilefw.compile(kernel, target, signature, constexprs)
    assert [p.hidden for p in artifact.entries[0].parameters] == [*[None] * len(signature), HIDDEN]
    artifact.save(folder / "kernel.tfa")
    tilefw.load(folder / "kernel.tfa", target).only().launch((1,), arrays, checks="all")


def test_a_peers_copy_is_read_written_and_signalled(target: str, tmp_path: Path) -> None:
    heaps, src, out = np.zeros((2, HEAP // 4), np.int32), np.arange(N, dtype=np.int32), np.zeros(N, np.int32)
    heaps[1, 513] = 1
    signature = {"src": "*i32", "dst": "*i32", "flag": "*i32", "out": "*i32"}
    arrays = [src, heaps.reshape(-1), heaps.reshape(-1)[512:], out, np.array([0, 2, 0, HEAP], np.int64)]
    launched(to_a_peer, target, arrays, signature, tmp_path, N=N)
    assert (heaps[:, :N] == src).all() and (out == src + 20).all()
    assert heaps[1, 512:523].tolist() == [8, 1, 1, 2, 3, 4, 3, 0, 0, 1, 2]
    assert not heaps[0, N:].any()


def test_barriers_count_on(target: str, tmp_path: Path) -> None:
    words = np.zeros(2, np.int64)
    for _ in range(2):
        launched(met_alone, target, [words, np.array([0, 1, 4096], np.int64)], {"words": "*i64"}, tmp_path)
    assert words.tolist() == [4, 4]


@tilefw.jit
def handed_on(data, flag, out, PUBLISHED: tl.constexpr, TAKEN: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(data, 5)
        if PUBLISHED:
            tld.fence("release", "device")
        tl.atomic_xchg(flag, 1, sem="relaxed")
    else:
        while tl.atomic_add(flag, 0, sem="relaxed") == 0:
            pass
        if TAKEN:
            tld.fence("acquire", "device")
        tl.store(out, tl.load(data))


@pytest.mark.parametrize(("published", "taken"), [(True, True), (False, True), (True, False)])
def test_relaxed_atomics_order_with_a_fence_on_both_sides(published: bool, taken: bool) -> None:
    data, flag, out = (np.zeros(1, np.int32) for _ in range(3))
    with tilefw.target("reference"):
        found = _findings(data, flag, out, published, taken)
    assert (not found) == (published and taken)


def _findings(data: Any, flag: Any, out: Any, published: bool, taken: bool) -> str:
    try:
        handed_on[(2,)](data, flag, out, PUBLISHED=published, TAKEN=taken, checks="all")
    except tilefw.CheckError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("line", "code", "told"), [
    ("tld.wait(p, comparison='=')", "TFW0221", "comparison is one of '=='"),
    ("tld.wait(p, 0)", "TFW0221", "one word or more"),
    ("tld.signal(p, 0, op='mul')", "TFW0221", "op is one of 'set', 'add'"),
    ("tld.signal(p, 0, scope='cluster')", "TFW0221", "scope is one of 'cta'"),
    ("tld.fence('relaxed')", "TFW0221", "sem is one of 'acquire', 'release', 'acq_rel'"),
    ("tld.at(p, tl.arange(0, 4))", "TFW0201", "a rank is one integer"),
    ("tld.at(1, 0)", "TFW0206", "pointer"),
    ("tld.wait(x)", "TFW0220", "a pointer to int32 or int64"),
    ("tld.consume(p, 1)", "TFW0201", "a token is what tld.wait gives"),
    ("tld.barrier(team=tld.team(0, 1, 2))", "TFW0201", "the node's own barrier is of all ranks"),
    ("tld.barrier(p, team=2)", "TFW0878", "a team is what tld.team or tld.team_of makes"),
    ("tld.team(0, 0, 2)", "TFW0878", "its stride is not 0"),
    ("tld.team(0, 1, 0)", "TFW0878", "one rank or more"),
    ("tld.team(2, -1, 4)", "TFW0878", "a team's last rank is -1"),
    ("tld.team(x, 1, 2)", "TFW0878", "a team is made of integers"),
    ("tld.team_of((0, 2, 0))", "TFW0878", "rank 0 is in the team twice"),
    ("tld.team_of(3)", "TFW0878", "a tuple of ranks"),
    ("tld.team(0, 1, 1, tld.team_of((0, 2)))", "TFW0878", "listed too"),
    ("tld.world_rank(tld.team(), x)", "TFW0201", "a rank is one integer"),
])
def test_mistakes_are_told(line: str, code: str, told: str) -> None:
    def wrong(p, x):
        pass

    wrong.__globals__.update(tl=tl, tld=tld)
    kernel = tilefw.jit(wrong, source=f"def wrong(p, x):\n    {line}\n")
    with pytest.raises(CompileError, match=told) as caught:
        build_module(kernel, {"p": "*i32", "x": "*fp32"}, {})
    assert caught.value.code == code


def test_a_launch_on_one_device_says_that_there_is_no_node() -> None:
    with tilefw.target("reference"), pytest.raises(LaunchError, match="launched on no node") as caught:
        met_alone[(1,)](np.zeros(2, np.int64))
    assert caught.value.code == "TFW0871"
