"""Clusters: places in them, shared memory of others, their barrier, copies to all; leaders of warps, budgets of registers."""

from __future__ import annotations

import numpy as np
import pytest

from isa.hopper import CHIP, codes, kernel, run
from tilefw.api import CodeError, LaunchError
from tilefw_nvidia.load import artifact

TWO = ".reqnctapercluster 2, 1, 1"
RANK = "mov.u32 %r6, %cluster_ctarank; mov.u32 %r7, %ctaid.x; xor.b32 %r8, %r6, 1;\n"
PLACE = "shl.b32 %r3, %r0, 2; add.u32 %r4, %r3, %r1; mad.lo.u32 %r9, %r7, 128, %r3; cvt.u64.u32 %d9, %r9; add.u64 %d8, %d1, %d9;\n"
MEET = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
WRITE = "mad.lo.u32 %r5, %r7, 100, %r0; st.shared.u32 [%r4], %r5;\n"
REMOTE = "mapa.shared::cluster.u32 %r11, %r4, %r8; ld.shared::cluster.u32 %r5, [%r11];\n"
KEEP = "st.global.u32 [%d8], %r5;\n"
INPUT, OUT = np.arange(32, dtype=np.uint32), np.zeros((4, 32), np.uint32)


@pytest.mark.parametrize("seed", [0, 5])
def test_each_reads_the_others_memory(seed: int) -> None:
    (_, out), findings = run(RANK + PLACE + WRITE + MEET + REMOTE + MEET + KEEP, [INPUT, OUT], 4, directives=TWO, seed=seed)
    assert findings == ()
    assert np.array_equal(out, np.arange(32) + 100 * np.array([[1], [0], [3], [2]]))


@pytest.mark.parametrize("compiled", ["0", "always"])
def test_memory_that_the_other_has_read_may_be_written_behind_a_meeting(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_JIT", compiled)
    again = "ld.shared.u32 %r12, [%r4]; add.u32 %r12, %r12, 1; st.shared.u32 [%r4], %r12;\n"
    for between, found in ((MEET, set()), ("", {"TFW0804"})):
        body = RANK + PLACE + WRITE + MEET + REMOTE + between + again + MEET + KEEP
        assert set(codes(run(body, [INPUT, OUT], 4, directives=TWO)[1])) == found


@pytest.mark.parametrize("seed", [0, 5])
def test_memory_that_both_have_read_may_be_written_behind_a_meeting_of_the_cluster(seed: int) -> None:
    """Of four clusters: that others of the launch are strangers does not matter in shared memory."""
    both = REMOTE + "ld.shared.u32 %r12, [%r4]; add.u32 %r5, %r5, %r12;\n"
    again = "add.u32 %r12, %r12, 1; st.shared.u32 [%r4], %r12;\n"
    for between, found in ((MEET, set()), ("", {"TFW0804"})):
        body = RANK + PLACE + WRITE + MEET + both + between + again + MEET + KEEP
        findings = run(body, [INPUT, np.zeros((8, 32), np.uint32)], 8, directives=TWO, seed=seed)[1]
        assert set(codes(findings)) == found


def test_without_the_first_meeting_they_race_and_without_the_second_memory_is_gone() -> None:
    assert "TFW0804" in codes(run(RANK + PLACE + WRITE + REMOTE + MEET + KEEP, [INPUT, OUT], 4, directives=TWO)[1])
    leave = "setp.eq.u32 %p2, %r6, 0;\n@%p2 ret;\nmov.u32 %r20, 0;\n" + "add.u32 %r20, %r20, 1;\n" * 3
    assert "TFW0828" in codes(run(RANK + PLACE + WRITE + MEET + leave + REMOTE + KEEP, [INPUT, OUT], 4, directives=TWO)[1])


def test_who_has_not_passed_yet_knows_nothing_of_what_others_did_since() -> None:
    """The first writes behind the barrier and comes to it again; the second, which is late, reads that behind the first meeting."""
    late = "mov.u32 %r20, 0;\n" + "add.u32 %r20, %r20, 1;\n" * 20
    arrive, wait = MEET.splitlines(keepends=True)
    body = RANK + PLACE + "mov.u32 %r5, 7; setp.eq.u32 %p2, %r6, 0;\n" + arrive + "@!%p2 bra other;\n" + wait
    body += "st.shared.u32 [%r4], %r5;\n" + arrive + "bra both;\nother:\n" + late + wait + REMOTE + arrive + "both:\n" + wait
    assert codes(run(body + MEET + KEEP, [INPUT, OUT], 2, directives=TWO)[1]) == {"TFW0804"}


def test_a_relaxed_arrival_tells_what_its_own_fence_covers_alone() -> None:
    """Of two warps one fences, later and often, and reads what the other wrote without a fence."""
    fences = "@!%p2 fence.acq_rel.cluster;\n" * 5
    body = RANK + PLACE + "mov.u32 %r5, 7; setp.lt.u32 %p2, %r0, 32;\n@%p2 st.shared.u32 [%r4], %r5;\n" + fences
    body += MEET.replace("arrive", "arrive.relaxed") + "@!%p2 ld.shared.u32 %r5, [%r4+-128];\n" + MEET
    body += "@!%p2 st.global.u32 [%d8+-128], %r5;\n"
    assert codes(run(body, [INPUT, OUT], 2, 64, directives=TWO)[1]) == {"TFW0804"}
    assert run(body.replace("arrive.relaxed", "arrive"), [INPUT, OUT], 2, 64, directives=TWO)[1] == ()


def test_who_never_arrives_is_a_deadlock_of_the_cluster() -> None:
    body = RANK + "setp.eq.u32 %p2, %r6, 0;\n@%p2 barrier.cluster.arrive;\nbarrier.cluster.wait;\n" + "barrier.cluster.arrive;\n"
    body = body.replace("barrier.cluster.wait;", "@%p2 barrier.cluster.wait;\n@!%p2 bar.sync 1, 64;")
    (found,) = run(body, [], 2, directives=TWO)[1]
    assert found.code == "TFW0811"


def test_generic_addresses_and_special_registers_know_the_cluster() -> None:
    body = RANK + PLACE + WRITE + MEET + """
mov.u32 %r20, %cluster_nctarank; mov.u32 %r21, %clusterid.x; mov.u32 %r22, %nclusterid.x; mov.u32 %r23, %cluster_ctaid.x;
cvt.u64.u32 %d11, %r4; cvta.shared.u64 %d12, %d11; mapa.u64 %d13, %d12, %r8;
ld.u32 %r5, [%d13]; getctarank.u32 %r24, %d13;
mad.lo.u32 %r5, %r20, 1000, %r5; mad.lo.u32 %r5, %r21, 10000, %r5; mad.lo.u32 %r5, %r22, 100000, %r5;
mad.lo.u32 %r5, %r23, 1000000, %r5; mad.lo.u32 %r5, %r24, 10000000, %r5;
""".replace("getctarank.u32 %r24, %d13", "getctarank.u64 %r24, %d13") + MEET + KEEP
    (_, out), findings = run(body, [INPUT, OUT], 4, directives=TWO)
    assert findings == ()
    at = np.arange(4)[:, None]
    wanted = np.arange(32) + 100 * (at ^ 1) + 2000 + 10000 * (at // 2) + 200000 + 1000000 * (at % 2) + 10000000 * ((at % 2) ^ 1)
    assert np.array_equal(out, wanted)


def test_arrivals_at_the_others_barrier_hand_over_stores() -> None:
    """Each stores into the other's memory and delivers the bytes to its barrier."""
    body = RANK + PLACE + """
@%p0 mbarrier.init.shared.b64 [%r2], 1;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;
fence.mbarrier_init.release.cluster;
""" + MEET + """
mapa.shared::cluster.u32 %r11, %r4, %r8; mapa.shared::cluster.u32 %r12, %r2, %r8;
mad.lo.u32 %r5, %r7, 100, %r0;
st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r11], %r5, [%r12];
{ .reg .pred done; again: mbarrier.try_wait.parity.acquire.cluster.shared.b64 done, [%r2], 0; @!done bra again; }
ld.shared.u32 %r5, [%r4];
""" + MEET + KEEP
    (_, out), findings = run(body, [INPUT, OUT], 4, directives=TWO)
    assert findings == ()
    assert np.array_equal(out, np.arange(32) + 100 * np.array([[1], [0], [3], [2]]))


def test_a_fence_before_a_relaxed_arrival_tells_that_barriers_are_made() -> None:
    """The second warp uses its own workgroup's barrier, and the other's, behind the cluster's barrier alone (PTX ISA, "fence")."""
    fence = "fence.mbarrier_init.release.cluster;\n"
    body = RANK + "@%p0 mbarrier.init.shared.b64 [%r2], 128;\n" + fence + MEET.replace("arrive", "arrive.relaxed") + """
mapa.shared::cluster.u32 %r12, %r2, %r8;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12]; mbarrier.arrive.release.cluster.shared::cta.b64 _, [%r2];
""" + MEET
    assert run(body, [], 2, 64, directives=TWO)[1] == ()
    assert codes(run(body.replace(fence, ""), [], 2, 64, directives=TWO)[1]) == {"TFW0804"}


def test_one_load_goes_to_both() -> None:
    body = RANK + PLACE + """
@%p0 mbarrier.init.shared.b64 [%r2], 1;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;
fence.mbarrier_init.release.cluster;
""" + MEET + """
setp.eq.u32 %p2, %r6, 0; and.pred %p2, %p2, %p0; mov.u16 %h1, 3;
@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d0], 128, [%r2], %h1;
{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%r2], 0; @!done bra again; }
ld.shared.u32 %r5, [%r4];
""" + MEET + KEEP
    for seed in (0, 2):
        (_, out), findings = run(body, [INPUT, OUT], 4, directives=TWO, seed=seed)
        assert findings == () and np.array_equal(out, np.tile(INPUT, (4, 1)))


# A tile of 16 rows of 8 f16 at %r1; its descriptor: 128 bytes from one half to the next.
PRODUCT = """
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%r20, %r21, %r22, %r23}, %d20, %p5, 1, 1, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
bar.sync 0;
"""
FETCH = """
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 256;
@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d0], 256, [%r2], %h1;
{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%r2], PARITY; @!done bra again; }
"""
EMPTY = """
@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];
{ .reg .pred done; @!%p2 bra past; again: mbarrier.try_wait.parity.acquire.cluster.shared.b64 done, [%r24], 0; @!done bra again;
past: mov.u32 %r27, 0; }
"""


def test_a_copy_may_overwrite_what_units_of_another_workgroup_have_read_once_it_knows() -> None:
    """Both multiply by a tile and tell the first, which then sends the next tile to both."""
    body = RANK + PLACE + """
setp.eq.u32 %p2, %r6, 0; and.pred %p2, %p2, %p0; mov.u16 %h1, 3; setp.ne.u32 %p5, %r0, %r0; add.u32 %r24, %r2, 8;
mov.u32 %r20, 0; mov.u32 %r21, 0; mov.u32 %r22, 0; mov.u32 %r23, 0; mov.u32 %r25, 0;
mapa.shared::cluster.u32 %r12, %r24, %r25; shr.u32 %r26, %r1, 4; cvt.u64.u32 %d20, %r26; or.b64 %d20, %d20, 34360262656;
@%p0 mbarrier.init.shared.b64 [%r2], 1;
@%p2 mbarrier.init.shared.b64 [%r24], 2;
fence.mbarrier_init.release.cluster;
""" + MEET + FETCH.replace("PARITY", "0") + PRODUCT + EMPTY + FETCH.replace("PARITY", "1") + PRODUCT + MEET
    tile = [np.zeros(128, np.float16), np.zeros(1, np.uint32)]
    for seed in (0, 1):
        assert run(body, tile, 2, 128, directives=TWO, seed=seed)[1] == ()
    assert "TFW0804" in codes(run(body.replace(EMPTY, ""), tile, 2, 128, directives=TWO)[1])


def test_a_workgroup_alone_is_a_cluster_of_one() -> None:
    body = "mov.u32 %r7, 0;\n" + PLACE + WRITE + """
cvt.u64.u32 %d11, %r4; cvta.shared.u64 %d12, %d11; mov.u32 %r8, 0; mapa.u64 %d13, %d12, %r8; ld.u32 %r5, [%d13];
mapa.shared::cluster.u32 %r11, %r4, %r8; ld.shared::cluster.u32 %r6, [%r11]; add.u32 %r5, %r5, %r6;
""" + KEEP
    (_, out), findings = run(body, [INPUT, np.zeros(32, np.uint32)])
    assert findings == () and np.array_equal(out, 2 * np.arange(32))


def test_a_grid_has_whole_clusters() -> None:
    with pytest.raises(LaunchError) as refused:
        run("", [], 3, directives=TWO)
    assert refused.value.code == "TFW0343"


def test_one_lane_of_a_warp_is_elected() -> None:
    body = """
setp.ge.u32 %p2, %r0, 5;
@!%p2 bra skip;
elect.sync %r5|%p3, 0xffffffe0;
selp.u32 %r5, 100, %r5, %p3;
mul.wide.u32 %d9, %r0, 4; add.u64 %d8, %d1, %d9; st.global.u32 [%d8], %r5;
skip:
"""
    (_, out), findings = run(body, [INPUT, np.zeros(32, np.uint32)])
    assert findings == () and out.tolist() == [0] * 5 + [100] + [5] * 26


@pytest.mark.parametrize("count", [16, 20, 264])
def test_budgets_of_registers_are_24_to_256_in_eights(count: int) -> None:
    good = kernel("setmaxnreg.dec.sync.aligned.u32 24;\nsetmaxnreg.inc.sync.aligned.u32 240;\ngriddepcontrol.wait;", 0)
    artifact(good, "k.ptx", CHIP)
    with pytest.raises(CodeError, match="24 to 256"):
        artifact(kernel(f"setmaxnreg.dec.sync.aligned.u32 {count};", 0), "k.ptx", CHIP)


@pytest.mark.parametrize("deals, message", [
    ("setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.inc.sync.aligned.u32 48;", ""),
    ("setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.inc.sync.aligned.u32 32;", "that is not more"),
    ("setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.dec.sync.aligned.u32 48;", "that is not fewer"),
])
def test_a_warp_gets_more_registers_or_gives_some_away(deals: str, message: str) -> None:
    _, findings = run(deals, [INPUT])
    assert [message in finding.message for finding in findings] == [True] * bool(message)


@pytest.mark.parametrize("count, fits", [(232, True), (248, False)])
def test_the_warps_of_a_workgroup_share_its_registers(count: int, fits: bool) -> None:
    """384 threads: a third of them keep 40 registers."""
    body = f"""
mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 128;
@%p1 bra few;
setmaxnreg.inc.sync.aligned.u32 {count};
ret;
few:
setmaxnreg.dec.sync.aligned.u32 40;
"""
    _, findings = run(body, [INPUT], block=384)
    assert (findings == ()) == fits and all("registers; it has 65536" in finding.message for finding in findings)
