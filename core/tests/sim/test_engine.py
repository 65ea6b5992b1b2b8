"""Lock-step execution: results do not depend on how lanes, waves and workgroups are grouped."""

from dataclasses import replace

import numpy as np
import pytest
from running import run
from toy import CHIP

HUGE = replace(CHIP, max_grid=(2**31 - 1, 1, 1))
ADDRESSES = """
    param a0, arg0
    param a1, arg1
"""


def test_each_thread_adds_its_elements():
    x = np.arange(512, dtype=np.uint32)
    out = run(ADDRESSES + """
        mul r0, group, 64
        add r0, r0, tid
        index a2, a0, r0
        index a3, a1, r0
        load r1, a2
        add r1, r1, 5
        store a3, r1
        end
    """, x, 512 * 4, grid=8, block=64)
    assert out.report.findings == ()
    assert (out.arrays[1] == x + 5).all()
    assert out.report.counters["bytes.global.read"] == 2048
    assert out.report.counters["instructions"] == 512 * 10


COLLATZ = ADDRESSES + """
        mul r0, group, 20
        add r0, r0, tid
        index a2, a0, r0
        load r1, a2
        mov r2, 0
loop:   eq p0, r1, 1
        @p0 jump done
        and r3, r1, 1
        eq p1, r3, 1
        @p1 jump odd
half:   mov r4, r1
        mov r5, 0
sub:    lt p2, r4, 2
        @p2 jump halved
        sub r4, r4, 2
        add r5, r5, 1
        jump sub
halved: mov r1, r5
        jump next
odd:    mul r1, r1, 3
        add r1, r1, 1
next:   add r2, r2, 1
        jump loop
done:   index a3, a1, r0
        store a3, r2
        end
"""


def _collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_lanes_that_diverge_in_loops_and_branches_each_go_their_own_way(seed):
    x = np.array([1 + i % 27 for i in range(60)], dtype=np.uint32)
    out = run(COLLATZ, x, 240, grid=3, block=20, seed=seed)
    assert out.report.findings == ()
    assert out.arrays[1].tolist() == [_collatz(int(n)) for n in x]
    assert out.report.counters["divergent_branches"] > 0


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_counters_are_of_waves_and_workgroups_in_any_order_of_execution(seed):
    """Three workgroups of three waves meet at two barriers; one wave of each parts at one branch."""
    out = run("""
        lt p0, tid, 12
        @p0 jump first
        add r1, r1, 1
first:  lt p1, wave, 2
        @p1 jump second
        add r1, r1, 1
second: bar 0
        bar 0
        end
    """, grid=3, block=24, seed=seed)
    assert out.report.findings == ()
    assert out.report.counters["barriers"] == 3 * 2
    assert out.report.counters["divergent_branches"] == 3 * 1  # `lt p0` parts wave 1 alone; `lt p1` no wave


def test_an_early_end_of_some_lanes_leaves_the_others_running():
    out = run("""
        param a0, arg0
        lt p0, tid, 5
        @p0 end
        index a1, a0, tid
        store a1, tid
        bar 0
        end
    """, np.zeros(16, np.uint32), block=16)
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == [0] * 5 + list(range(5, 16))


def test_functions_called_by_some_lanes_return_to_them():
    out = run("""
        param a0, arg0
        mov r1, tid
        lt p0, tid, 3
        @p0 call twice
        @!p0 call thrice
        index a1, a0, tid
        store a1, r1
        end
twice:  add r1, r1, r1
        return
thrice: mul r1, r1, 3
        return
    """, np.zeros(16, np.uint32), block=16)
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == [0, 2, 4] + [3 * i for i in range(3, 16)]


def test_waves_exchange_through_shared_memory_across_a_barrier():
    out = run("""
        param a0, arg0
        index a1, shared, tid
        lstore a1, tid
        bar 0
        sub r0, 31, tid
        index a2, shared, r0
        lload r1, a2
        index a3, a0, tid
        store a3, r1
        end
    """, np.zeros(32, np.uint32), block=32, shared=128)
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == list(range(31, -1, -1))


def test_waves_may_come_to_one_barrier_from_different_instructions():
    out = run("""
        param a0, arg0
        index a1, shared, tid
        lstore a1, tid
        lt p0, wave, 1
        @p0 jump other
        bar 0
        jump read
other:  bar 0
read:   sub r0, 15, tid
        index a2, shared, r0
        lload r1, a2
        index a3, a0, tid
        store a3, r1
        end
    """, np.zeros(16, np.uint32), block=16, shared=64)
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == list(range(15, -1, -1))


@pytest.mark.parametrize("barrier", ["barn 1, 16", "barw 1, 2"])
def test_counted_barriers_join_only_their_waves(barrier):
    """Two waves of eight lanes each, as threads or as waves."""
    out = run("""
        param a0, arg0
        index a1, shared, tid
        lt p0, wave, 2
        @!p0 jump rest
        lstore a1, tid
        BARRIER
        sub r0, 15, tid
        index a2, shared, r0
        lload r1, a2
        index a3, a0, tid
        store a3, r1
rest:   end
    """.replace("BARRIER", barrier), np.zeros(32, np.uint32), block=32, shared=128)
    assert out.report.findings == ()
    assert out.arrays[0].tolist()[:16] == list(range(15, -1, -1))


def test_a_reducing_barrier_counts_predicates():
    out = run("""
        param a0, arg0
        lt p0, tid, 5
        barpop r1, 0, p0
        index a1, a0, tid
        store a1, r1
        end
    """, np.zeros(16, np.uint32), block=16)
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == [5] * 16


LOCKED_COUNT = """
        param a0, arg0
        param a1, arg1
spin:   atomcas r0, a0, 0, 1
        eq p0, r0, 0
        @!p0 jump spin
        acquire r1, a1
        add r1, r1, 1
        store a1, r1
        release r2, a0, 0
        end
"""


def test_a_spin_lock_within_a_wave_ends():
    out = run(LOCKED_COUNT, np.zeros(1, np.uint32), np.zeros(1, np.uint32), block=8, grid=2, budget=10**6,
        checks=frozenset({"bounds", "initialisation", "barriers"}))
    assert out.report.findings == ()
    assert out.arrays[1].tolist() == [16]


@pytest.mark.parametrize("seed", [None, 0])
def test_who_waits_for_a_lock_does_not_take_the_time_of_who_holds_it(seed):
    workgroups = 130  # in three batches, one workgroup of all of which holds the lock
    words = np.zeros((2, 1), np.uint32)
    out = run(LOCKED_COUNT, *words, block=1, grid=workgroups, seed=seed, budget=10**7, checks=frozenset())
    assert out.report.findings == ()
    assert out.arrays[1].tolist() == [workgroups]
    turns = out.report.counters["atomics"] / workgroups**2  # all that wait poll at the same time
    assert turns < 6


def test_a_sample_that_waits_for_a_workgroup_outside_it_is_reported(monkeypatch):
    """Each workgroup waits for what the one before it hands on."""
    monkeypatch.setattr("tilefw.sim.engine.run.VAIN_TURNS", 4)
    chain = """
        param a0, arg0
spin:   atomcas r0, a0, group, group
        eq p0, r0, group
        @!p0 jump spin
        add r1, group, 1
        release r2, a0, r1
        end
    """
    for programs in (None, (0, 1, 2), tuple(range(70))):
        out = run(chain, np.zeros(1, np.uint32), grid=70, block=1, budget=10**7, checks=frozenset(), programs=programs)
        assert out.report.findings == ()
        assert out.arrays[0].tolist() == [len(programs or range(70))]
    (finding,) = run(
        chain, np.zeros(1, np.uint32), grid=70, block=1, budget=10**7, checks=frozenset(), programs=(0, 2, 3)
    ).report.findings
    assert (finding.code, finding.workgroup) == ("TFW0811", (2, 0, 0))


def test_a_workgroup_that_waits_for_a_later_one_lets_it_in():
    out = run("""
        param a0, arg0
        lt p0, group, 1
        @!p0 jump give
spin:   acquire r0, a0
        eq p1, r0, 7
        @!p1 jump spin
        end
give:   eq p2, group, 199
        @p2 release r1, a0, 7
        end
    """, np.zeros(1, np.uint32), grid=200, block=256, budget=10**9, checks=frozenset())
    assert out.report.findings == ()


def test_atomics_give_each_lane_its_own_turn():
    out = run("""
        param a0, arg0
        param a1, arg1
        atomadd r0, a0, 3
        index a2, a1, tid
        store a2, r0
        end
    """, np.array([10], np.uint32), np.zeros(64, np.uint32), block=64)
    assert out.arrays[0].tolist() == [10 + 3 * 64]
    assert sorted(out.arrays[1].tolist()) == [10 + 3 * i for i in range(64)]


def test_a_trap_stops_the_launch_with_its_place():
    out = run("lt p0, tid, 3\n@!p0 trap\nend", block=8)
    finding = out.finding("trap")
    assert finding.code == "TFW0812" and finding.lane == 3 and finding.code_place.line == 2


def test_an_endless_recursion_is_told():
    out = run("call self\nend\nself: call self\nreturn", budget=10**9)
    assert "nested" in out.finding("trap").message


def test_a_huge_grid_takes_no_memory_and_ends_by_its_budget():
    out = run("end", grid=1000, block=1, chip=HUGE, budget=2000)
    assert out.report.findings == ()
    assert run("end", grid=2**31 - 1, block=1, chip=HUGE, budget=2000).finding("budget").code == "TFW0810"


def test_a_seed_parts_waves_that_would_step_together():
    """Without the barrier each order gives its own result; with it all agree."""
    text = """
        param a0, arg0
        index a1, shared, tid
        lstore a1, tid
        {barrier}
        sub r0, 63, tid
        index a2, shared, r0
        lload r1, a2
        index a3, a0, tid
        store a3, r1
        end
    """
    def outcome(barrier: str, seed: int) -> bytes:
        program = text.format(barrier=barrier)
        return run(program, np.zeros(64, np.uint32), block=64, shared=256, seed=seed, checks=frozenset()).arrays[0].tobytes()

    assert len({outcome("", seed) for seed in range(6)}) > 1
    assert len({outcome("bar 0", seed) for seed in range(6)}) == 1
