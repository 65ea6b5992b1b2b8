"""Barriers that count: phases, arrivals, announced bytes, waits that suspend, and what is reported when they go wrong."""

from __future__ import annotations

import numpy as np
import pytest

from isa.hopper import codes, run

INIT = "@%p0 mbarrier.init.shared.b64 [%r2], {count};\nbar.sync 0;\n"
WAIT = """{{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%r2], {parity}; @!done bra again; }}
"""
INDEX = "mul.wide.u32 %d9, %r0, 4;\nadd.u64 %d1, %d1, %d9;\n"


def test_a_phase_hands_what_a_wave_wrote_to_another() -> None:
    """Wave 0 writes and arrives; wave 1 waits, reads, arrives on the second barrier for the next round."""
    body = INIT.format(count=32) + """
shl.b32 %r3, %r0, 2; add.u32 %r3, %r3, %r1;
setp.ge.u32 %p1, %r0, 32;
@%p1 bra consumer;
mul.lo.u32 %r4, %r0, 3;
st.shared.u32 [%r3], %r4;
mbarrier.arrive.shared.b64 %d8, [%r2];
bra end;
consumer:
""" + WAIT.format(parity=0) + """
ld.shared.u32 %r5, [%r3-128];
st.global.u32 [%d1], %r5;
end:
"""
    body = body.replace("consumer:\n", "consumer:\nsub.u32 %r6, %r0, 32; mul.wide.u32 %d9, %r6, 4; add.u64 %d1, %d1, %d9;\n")
    for seed in (0, 1, 2):
        (_, out), findings = run(body, [np.zeros(4, np.uint32), np.zeros(32, np.uint32)], block=64, seed=seed)
        assert findings == () and out.tolist() == [3 * i for i in range(32)]


def test_without_the_wait_the_two_race() -> None:
    body = INIT.format(count=32) + """
shl.b32 %r3, %r0, 2; add.u32 %r3, %r3, %r1;
setp.ge.u32 %p1, %r0, 32;
@%p1 bra consumer;
st.shared.u32 [%r3], %r0;
mbarrier.arrive.shared.b64 %d8, [%r2];
bra end;
consumer:
ld.shared.u32 %r5, [%r3-128];
st.global.u32 [%d1], %r5;
end:
"""
    assert "TFW0804" in codes(run(body, [np.zeros(4, np.uint32), np.zeros(32, np.uint32)], block=64)[1])


def test_states_name_phases_and_parities_alternate() -> None:
    """Three phases, waited for by state, then by parity; the state tells how many arrivals were wanted."""
    body = INIT.format(count=32) + INDEX + """
mbarrier.arrive.shared.b64 %d8, [%r2];
{ .reg .pred done; a: mbarrier.test_wait.shared.b64 done, [%r2], %d8; @!done bra a; }
mbarrier.arrive.shared.b64 %d8, [%r2];
{ .reg .pred done; b: mbarrier.try_wait.shared.b64 done, [%r2], %d8, 1000; @!done bra b; }
mbarrier.arrive.shared.b64 %d8, [%r2];
""" + WAIT.format(parity=0) + """
mbarrier.pending_count.b64 %r5, %d8;
mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 1;
st.global.u32 [%d1], %r5;
"""
    (_, out), findings = run(body, [np.zeros(1, np.uint32), np.zeros(32, np.uint32)])
    assert findings == () and out.tolist() == [32 - i for i in range(32)]


def test_an_arrival_that_is_missing_is_a_deadlock_with_its_cause() -> None:
    _, findings = run(INIT.format(count=33) + "mbarrier.arrive.shared.b64 %d8, [%r2];\n" + WAIT.format(parity=0), [])
    (found,) = findings
    assert found.code == "TFW0811" and "wants 1 of 33 arrivals" in (found.note or "")
    assert "32 threads of waves [0] wait on the barrier at 0x1000" in (found.note or "")


def test_bytes_that_never_come_are_a_deadlock_with_their_number() -> None:
    body = INIT.format(count=1) + "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 48;\n" + WAIT.format(parity=0)
    (found,) = run(body, [])[1]
    assert found.code == "TFW0811" and "wants 48 bytes" in (found.note or "")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("@%p0 mbarrier.arrive.shared.b64 _, [%r2];", "was not made yet"),
        ("@%p0 mbarrier.init.shared.b64 [%r2], 0;", "wants 1 to 1048575 arrivals"),
        ("@%p0 mbarrier.init.shared.b64 [%r2], 1;\n@%p0 mbarrier.inval.shared.b64 [%r2];\n"
         "@%p0 mbarrier.arrive.shared.b64 _, [%r2];", "or has been ended"),
        ("@%p0 mbarrier.init.shared.b64 [%r2], 2;\n@%p0 mbarrier.arrive.shared.b64 _, [%r2], 3;", "more arrivals or bytes"),
        ("@%p0 mbarrier.init.shared.b64 [%r2], 2;\n@%p0 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r2], 2000000;",
         "more arrivals or bytes"),
        ("@%p0 mbarrier.init.shared.b64 [%r2], 1;\nbar.sync 0;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r2], 2000000;",
         "more arrivals or bytes"),
        (INIT.format(count=1) + WAIT.format(parity=2), "a parity is 0 or 1"),
        (INIT.format(count=1) + WAIT.format(parity=-2), "a parity is 0 or 1"),
        (INIT.format(count=1) + "cp.async.mbarrier.arrive.shared.b64 [%r2+8];", "was not made yet"),
    ],
)
def test_misuse_is_a_finding(code: str, words: str) -> None:
    (found,) = run(code, [])[1]
    assert found.code == "TFW0824" and words in found.message


def test_a_parity_may_be_a_predicate_whose_sign_is_extended() -> None:
    """-1 waits for the phase of parity 1, which is over as the first phase begins."""
    body = INIT.format(count=1) + WAIT.format(parity=-1) + INDEX + "st.global.u32 [%d1], %r0;\n"
    (_, out), findings = run(body, [np.zeros(4), np.zeros(32, np.uint32)])
    assert findings == () and out.tolist() == list(range(32))


def test_barriers_of_a_ring_that_a_short_loop_does_not_reach_are_no_finding() -> None:
    make = "@%p0 mbarrier.init.shared.b64 [%r20], 1;\n"
    ring = "mov.u32 %r20, %r2; mov.u32 %r21, 0;\nnext:\n" + make
    ring += "add.u32 %r20, %r20, 8; add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, 4;\n@%p1 bra next;\nbar.sync 0;\n"
    assert run(ring + "@%p0 mbarrier.arrive.shared.b64 _, [%r2];\n".replace("_,", "%d8,") + WAIT.format(parity=0), [])[1] == ()


def test_a_writer_need_know_of_the_readers_alone() -> None:
    """Waves 1 and 2 read a place and arrive; wave 0 writes there behind them, whatever wave 3 is at."""
    body = INIT.format(count=64) + """
mov.u32 %r6, 5; @%p0 st.shared.u32 [%r1], %r6;
bar.sync 0;
setp.lt.u32 %p1, %r0, 32;
@%p1 bra writer;
setp.ge.u32 %p2, %r0, 96;
@%p2 bra end;
ld.shared.u32 %r5, [%r1];
""" + INDEX + """
st.global.u32 [%d1], %r5;
setp.lt.u32 %p3, %r0, 96;
@%p3 mbarrier.arrive.shared.b64 _, [%r2];
bra end;
writer:
""" + WAIT.format(parity=0) + """
@%p0 st.shared.u32 [%r1], %r0;
end:
"""
    arrays = [np.zeros(1, np.uint32), np.zeros(128, np.uint32)]
    for seed in (0, 1):
        (_, out), findings = run(body, arrays, block=128, seed=seed)
        assert findings == () and out.sum() == 5 * 64
    one = body.replace("[%r2], 64;", "[%r2], 32;").replace("setp.lt.u32 %p3, %r0, 96;", "setp.lt.u32 %p3, %r0, 64;")
    assert "TFW0804" in codes(run(one, arrays, block=128)[1])


def test_arrivals_of_one_instruction_at_many_barriers_hand_over_too() -> None:
    """Each wave of 32 workgroups arrives at a barrier of its own, and waits for the next wave's."""
    body = """
setp.lt.u32 %p1, %r0, 4; shl.b32 %r3, %r0, 3; add.u32 %r3, %r3, %r2;
@%p1 mbarrier.init.shared.b64 [%r3], 32;
bar.sync 0;
shl.b32 %r4, %r0, 2; add.u32 %r4, %r4, %r1; st.shared.u32 [%r4], %r0;
shr.u32 %r5, %r0, 5; shl.b32 %r6, %r5, 3; add.u32 %r6, %r6, %r2;
mbarrier.arrive.shared.b64 _, [%r6];
add.u32 %r5, %r5, 1; and.b32 %r5, %r5, 3; shl.b32 %r6, %r5, 3; add.u32 %r2, %r6, %r2;
""" + WAIT.format(parity=0) + """
add.u32 %r7, %r0, 32; and.b32 %r7, %r7, 127; shl.b32 %r8, %r7, 2; add.u32 %r8, %r8, %r1; ld.shared.u32 %r9, [%r8];
""" + INDEX + "st.global.u32 [%d1], %r9;\n"
    (_, out), findings = run(body, [np.zeros(1, np.uint32), np.zeros(128, np.uint32)], grid=32, block=128)
    assert findings == () and np.array_equal(out, (np.arange(128) + 32) % 128)


def test_dropped_threads_are_not_waited_for() -> None:
    body = INIT.format(count=32) + INDEX + """
setp.lt.u32 %p1, %r0, 8;
@%p1 mbarrier.arrive_drop.shared.b64 _, [%r2];
@!%p1 mbarrier.arrive.shared.b64 _, [%r2];
@!%p1 mbarrier.arrive.shared.b64 %d8, [%r2];
""" + WAIT.format(parity=1) + "st.global.u32 [%d1], %r0;\n"
    (_, out), findings = run(body, [np.zeros(1, np.uint32), np.zeros(32, np.uint32)])
    assert findings == () and out.tolist() == list(range(32))


def test_copies_in_groups_arrive_too() -> None:
    body = INIT.format(count=32) + """
mul.wide.u32 %d9, %r0, 4; add.u64 %d2, %d0, %d9; add.u64 %d1, %d1, %d9;
shl.b32 %r3, %r0, 2; add.u32 %r3, %r3, %r1;
cp.async.ca.shared.global [%r3], [%d2], 4;
cp.async.mbarrier.arrive.noinc.shared.b64 [%r2];
""" + WAIT.format(parity=0) + "ld.shared.u32 %r5, [%r3];\nst.global.u32 [%d1], %r5;\n"
    data = np.arange(32, dtype=np.uint32)
    (_, out), findings = run(body, [data, np.zeros(32, np.uint32)])
    assert findings == () and np.array_equal(out, data)


@pytest.mark.parametrize("use", [WAIT.format(parity=1), "mbarrier.arrive.shared.b64 _, [%r2];\n"])
def test_a_barrier_is_made_before_others_use_it(use: str) -> None:
    """The maker's own arrival behind it, which is strong, does not hide that nothing orders the two waves."""
    made = "@%p0 mbarrier.init.shared.b64 [%r2], 65;\n@%p0 mbarrier.arrive.shared.b64 _, [%r2];\n"
    assert run(made + "bar.sync 0;\n" + use, [], block=64)[1] == ()
    (found,) = run(made + use, [], block=64)[1]
    assert found.code == "TFW0804" and "use of a barrier" in found.message and "mbarrier.init" in found.other
