"""Weak memory orders what barriers and atomics of shared memory order, and shows what engines store: right code stays right."""

from __future__ import annotations

import numpy as np
import pytest

from isa.hopper import CHIP, kernel
from isa.machine import launch

TWO = ".reqnctapercluster 2, 1, 1"
INIT = "@%p0 mbarrier.init.shared.b64 [%r2], 32;\nbar.sync 0;\n"
WAIT = "{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%r2], 0; @!done bra again; }\n"
CLEAR = "@%p0 st.shared.u32 [%r2], 0;\nbar.sync 0;\n"
POLL = "poll: ld.acquire.cta.shared.u32 %r4, [%r2];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra poll;\n"
# The first warp stores to memory of all, the second one reads it behind what orders the two.
PASSING = """
setp.ge.u32 %p1, %r0, 32;
mov.u32 %r5, 7; mov.u32 %r7, 1;
@%p1 bra reader;
st.global.u32 [%d0], %r5;
{told}
bra end;
reader:
{heard}
ld.global.u32 %r6, [%d0];
st.global.u32 [%d1], %r6;
end:
"""
ARRIVE = "mbarrier.arrive.shared.b64 %d8, [%r2];\n"
ORDERED = {
    "barrier that counts": INIT + PASSING.format(told=ARRIVE, heard=WAIT),
    "flag": CLEAR + PASSING.format(told="st.release.cta.shared.u32 [%r2], %r7;", heard=POLL),
    "atomic": CLEAR + PASSING.format(told="atom.release.cta.shared.add.u32 %r8, [%r2], 1;", heard=POLL),
}
RELAXED = ORDERED["flag"].replace("st.release.cta.shared", "st.relaxed.cta.shared")
CLUSTER = """
mov.u32 %r6, %cluster_ctarank; mov.u32 %r5, 7;
setp.eq.u32 %p1, %r6, 0;
@%p1 st.global.u32 [%d0], %r5;
barrier.cluster.arrive{order};
barrier.cluster.wait;
@!%p1 ld.global.u32 %r7, [%d0];
@!%p1 st.global.u32 [%d1], %r7;
"""
OVERWRITTEN = """
shl.b32 %r3, %r0, 2; add.u32 %r4, %r3, %r1; cvt.u64.u32 %d9, %r3; add.u64 %d8, %d0, %d9; add.u64 %d9, %d1, %d9;
mov.u32 %r5, 1; st.global.u32 [%d8], %r5;
add.u32 %r5, %r0, 7; st.shared.u32 [%r4], %r5;
fence.proxy.async;
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1], 128;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;
bar.sync 0;
ld.global.u32 %r6, [%d8];
st.global.u32 [%d9], %r6;
"""


def read(body: str, seed: int, grid: int = 1, block: int = 64, directives: str = "") -> list[int]:
    """The second array after a launch in weak memory."""
    arrays = [np.zeros(32, np.uint32), np.zeros(32, np.uint32)]
    text = kernel(body, 2, directives=directives)
    buffers, findings = launch(text, arrays, grid, block, CHIP, checks=frozenset({"weak_memory"}), seed=seed)
    assert not findings
    return np.frombuffer(buffers[1], np.uint32).tolist()


@pytest.mark.parametrize("body", ORDERED.values(), ids=ORDERED)
def test_shared_memory_orders_memory_of_all(body: str) -> None:
    assert {read(body, seed)[0] for seed in range(1, 16)} == {7}


def test_a_relaxed_flag_in_shared_memory_orders_nothing() -> None:
    assert {read(RELAXED, seed)[0] for seed in range(1, 16)} == {0, 7}


def test_the_barrier_of_a_cluster_orders_as_far_as_it_releases() -> None:
    assert {read(CLUSTER.format(order=""), seed, 2, 32, TWO)[0] for seed in range(1, 16)} == {7}
    assert {read(CLUSTER.format(order=".relaxed"), seed, 2, 32, TWO)[0] for seed in range(1, 16)} == {0, 7}


def test_what_an_engine_stored_over_a_store_is_what_loads_read() -> None:
    for seed in range(1, 4):
        assert read(OVERWRITTEN, seed, block=32) == [7 + i for i in range(32)]
