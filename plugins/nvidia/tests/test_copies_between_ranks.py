"""Copies by the engine and other ranks: each copy of several at one place counts, and a barrier that a copy completes tells what
its wave had done at the start. The programs are PTX, whose order of instructions is what they are about."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tilefw
import tilefw.language as tl
from oracles.node_subject import RecordedNode
from tilefw.api import CheckError
from tilefw.runtime.plugins.loader import find_target

TARGET = "nvidia-sm90a"
_HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry {name}(.param .u64 x, .param .u64 other, .param .u64 flag, .param .u64 answer, .param .u64 out)
.reqntid 64, 1, 1
{{
	.shared .align 128 .b8 memory[1280];
	.reg .pred %p<8>;
	.reg .b32 %r<16>;
	.reg .b64 %rd<8>;
	.reg .b64 %x, %other, %flag, %answer, %out;
	ld.param.u64 %x, [x];
	ld.param.u64 %other, [other];
	ld.param.u64 %flag, [flag];
	ld.param.u64 %answer, [answer];
	ld.param.u64 %out, [out];
	mov.u32 %r1, %tid.x;
	shl.b32 %r2, %r1, 2;
	cvt.u64.u32 %rd1, %r2;
	add.u64 %rd2, %x, %rd1;
	add.u64 %rd3, %out, %rd1;
	mov.u32 %r3, memory;
	add.u32 %r4, %r3, 1024;
	setp.ne.u32 %p1, %r1, 0;
"""
_BEGIN = """
	add.u32 %r5, %r3, %r2;
	st.shared.u32 [%r5], 7;
	fence.proxy.async;
	@%p1 bra made;
	mbarrier.init.shared.b64 [%r4], 1;
	fence.proxy.async;
made:
	bar.sync 0;
	setp.eq.u32 %p2, %r1, 32;
	@%p2 bra second;
	@%p1 bra done;
"""
STORE = """
	cp.async.bulk.global.shared::cta.bulk_group [%x], [%r3], 256;
	cp.async.bulk.commit_group;
"""
LOAD = """
	mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r4], 256;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%other], 256, [%r4];
"""
ALL, ALL_BUT_ONE = "\tcp.async.bulk.wait_group 0;\n", "\tcp.async.bulk.wait_group 1;\n"
OWN = "\tst.global.u32 [%x], 7;\n"
SIGNAL = "\tst.release.sys.global.u32 [%flag], 1;\n"
ANSWERED = """
unanswered:
	ld.acquire.sys.global.u32 %r6, [%answer];
	setp.eq.u32 %p3, %r6, 0;
	@%p3 bra unanswered;
"""
COPIED = """
	mbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0;
	@!%p4 bra second;
"""
_READER = """
waits:
	ld.acquire.sys.global.u32 %r6, [%flag];
	setp.eq.u32 %p3, %r6, 0;
	@%p3 bra waits;
	ld.global.u32 %r7, [%rd2];
	st.global.u32 [%rd3], %r7;
	bar.sync 0;
	@%p1 bra done;
	st.release.sys.global.u32 [%answer], 1;
"""


@tilefw.jit
def copies(x, other, flag, answer, out):
    tl.store(x, 1)


@tilefw.jit
def reads(x, other, flag, answer, out):
    tl.store(x, 2)


def of_two_ranks(first: str, second: str, seed: int) -> list[int] | str:
    """What rank 1 has in `out` behind what rank 0 and rank 1 do, or the instruction of rank 0 with which it races."""
    changed = {}
    for kernel, body in ((copies, first), (reads, second)):
        recorded = RecordedNode(TARGET, 1, {})
        recorded.run([(0, kernel, (1,), (recorded.zeros((1,), "int32"),) * 5)])
        (own,) = recorded.artifacts.values()
        text = f"{_HEAD.format(name=kernel.__name__)}{body}\ndone:\n\tret;\n}}\n"
        changed[own.text] = replace(own, text=text, binary=find_target(TARGET).backend.parse(text, kernel.__name__).binary)
    node = RecordedNode(TARGET, 2, changed)
    x, other, out = (node.zeros((64,), "int32", name=name) for name in ("x", "other", "out"))
    flag, answer = (node.zeros((1,), "int32") for _ in range(2))
    given = [x[0], other[0], flag[1], answer[0], out[1]]
    try:
        node.run([(rank, one, (1,), given, {"checks": "default,races"}) for rank, one in enumerate((copies, reads))], seed=seed)
    except CheckError as error:
        assert "of rank 1 and an access of rank 0" in error.message
        return error.findings[0].other or ""
    return out[1].tolist()


def read_by_the_other(first: str, second: str = "", seed: int = 0) -> str:
    """Rank 0's first wave does `first`, its second one `second`; rank 1 reads x behind the flag, and answers. What it has read, or
    the instruction with which it races."""
    found = of_two_ranks(f"{_BEGIN}{first}\tbra done;\nsecond:\n{second}", _READER, seed)
    return found if isinstance(found, str) else f"read {found == [7] * 64 or found[:2]}"


def test_each_of_two_copies_of_one_place_counts_until_it_has_ended():
    assert read_by_the_other(f"{STORE}{STORE}{ALL}{SIGNAL}{ANSWERED}") == "read True"
    assert "cp.async.bulk.global" in read_by_the_other(f"{STORE}{STORE}{ALL_BUT_ONE}{SIGNAL}{ANSWERED}{ALL}")


def test_a_store_of_its_wave_does_not_hide_a_copy_on_its_way():
    assert "cp.async.bulk.global" in read_by_the_other(f"{STORE}{OWN}{SIGNAL}{ANSWERED}{ALL}")


@pytest.mark.parametrize("seed", [0, 3])
def test_a_barrier_tells_what_was_done_at_the_start_of_the_copy_that_completes_it(seed):
    assert read_by_the_other(f"{OWN}{LOAD}", f"{COPIED}{SIGNAL}", seed) == "read [7, 0]"
    assert "st.global.u32 [%x], 7" in read_by_the_other(f"{LOAD}{OWN}", f"{COPIED}{SIGNAL}", seed)


def test_who_waits_for_a_copy_that_completes_on_a_barrier_is_behind_what_it_has_read():
    """The second wave stores what the copy reads, of which rank 1 has no part: the copy is of another agent than its wave."""
    over = "\tst.global.u32 [%other], 5;\n"
    assert read_by_the_other(f"{OWN}{LOAD}", f"{COPIED}{over}{SIGNAL}") == "read [7, 0]"


_ASYNCHRONOUS = """
	add.u32 %r5, %r3, %r2;
	cp.async.ca.shared.global [%r5], [%rd2], 4;
	cp.async.commit_group;
{before}
	bar.sync 0;
	@!%p1 st.release.sys.global.u32 [%flag], 1;
{behind}
"""
_WRITER = _READER.replace("ld.global.u32 %r7, [%rd2];\n\tst.global.u32 [%rd3], %r7;", "st.global.u32 [%rd2], 9;")


def test_what_an_asynchronous_copy_reads_is_released_behind_its_wait():
    """Rank 0 copies x, and tells rank 1 that it may write there: before or behind the wait."""
    wait = "\tcp.async.wait_group 0;"
    for seed in range(3):
        assert of_two_ranks(_ASYNCHRONOUS.format(before=wait, behind=""), _WRITER, seed) == [0] * 64
        found = of_two_ranks(_ASYNCHRONOUS.format(before="", behind=wait), _WRITER, seed)
        assert "cp.async.ca.shared.global" in found
