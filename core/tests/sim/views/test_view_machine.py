"""The view machine's own properties: ways to memory, order of stores, loads in flight, barriers, fairness, exploration."""

from __future__ import annotations

import pytest

from tilefw.sim.memory.litmus import LitmusDialect, explore, read, sample
from tilefw.sim.memory.litmus.text import LitmusTextError
from tilefw.sim.memory.views import Adversary, Participant, SyncScope, ViewMachine

DIALECT = LitmusDialect(
    {"workgroup": SyncScope.WORKGROUP, "device": SyncScope.DEVICE, "system": SyncScope.SYSTEM},
    {"generic": "", "image": "image"},
    {
        "ld": ("load", ""), "st": ("store", ""), "atom": ("update", ""),
        "image_ld": ("load", "image"), "image_st": ("store", "image"),
    },
)
ONE = "P0@workgroup 0,device 0 ;"
TWO = "P0@workgroup 0,device 0 | P1@workgroup 0,device 0 ;"
APART = "P0@workgroup 0,device 0 | P1@workgroup 1,device 0 ;"


def shown(places: str, body: str, condition: str, initial: str = "") -> bool:
    test = read(f"LITMUS test\n{{ {initial} }}\n{places}\n{body}\nexists ({condition})", DIALECT)
    tally = explore(test)
    assert tally.complete
    assert sample(test, 400, seed=5).witnesses == 0 or tally.witnesses, "schedules show nothing that exploration does not"
    return tally.witnesses > 0


@pytest.mark.parametrize(
    ("body", "stale"),
    [
        ("st.weak x, 1 ;\nimage_ld.weak r0, i ;", True),
        ("st.weak x, 1 ;\nfence.proxy.image ;\nimage_ld.weak r0, i ;", False),
        ("image_st.weak i, 1 ;\nld.weak r0, x ;", True),
        ("image_st.weak i, 1 ;\nfence.proxy.image ;\nld.weak r0, x ;", False),
        ("image_st.weak i, 1 ;\nimage_ld.weak r0, i ;", False),
        ("st.weak x, 1 ;\nld.weak r0, y ;", True),
        ("st.weak x, 1 ;\nfence.proxy.alias ;\nld.weak r0, y ;", False),
        ("image_st.weak i, 1 ;\nfence.proxy.alias ;\nfence.proxy.image ;\nld.weak r0, y ;", True),
        ("image_st.weak i, 1 ;\nfence.proxy.image ;\nfence.proxy.alias ;\nld.weak r0, y ;", False),
    ],
)
def test_ways_to_memory_see_each_other_behind_the_right_fences_in_the_right_order(body, stale):
    assert shown(ONE, body, "0:r0 == 0", "x=0; i @ image aliases x; y @ generic aliases x;") == stale


def test_a_fence_of_a_way_serves_its_workgroup_only():
    body = "st.weak x, 1 | ld.acquire.device r0, f ;\nfence.proxy.image | image_ld.weak r1, i ;\nst.release.device f, 1 | ;"
    condition, initial = "1:r0 == 1 /\\ 1:r1 == 0", "x=0; i @ image aliases x;"
    assert not shown(TWO, body, condition, initial)
    assert shown(APART, body, condition, initial)


def test_weak_stores_that_nothing_orders_are_seen_in_both_orders_by_one_reader():
    body = "st.weak x, 1 | st.weak x, 2 | ld.weak r0, x ;\n | | ld.weak r1, x ;\n | | ld.weak r2, x ;"
    places = "P0@workgroup 0,device 0 | P1@workgroup 1,device 0 | P2@workgroup 2,device 0 ;"
    assert shown(places, body, "2:r0 == 1 /\\ 2:r1 == 2 /\\ 2:r2 == 1")
    assert not shown(places, body.replace("weak", "relaxed.device"), "2:r0 == 1 /\\ 2:r1 == 2 /\\ 2:r2 == 1")


def test_a_store_may_stand_before_one_that_came_first():
    """Final memory is the store that was made first: both orders of two atomics are possible, whoever was quicker."""
    body = "st.relaxed.device y, 1 | ld.relaxed.device r0, x ;\nst.relaxed.device x, 1 | st.relaxed.device y, 2 ;"
    assert shown(APART, body, "1:r0 == 1 /\\ y == 1")
    assert not shown(APART, body.replace("st.relaxed.device x", "st.release.device x").replace("ld.relaxed", "ld.acquire"),
                     "1:r0 == 1 /\\ y == 1")


def test_a_failed_compare_and_swap_stores_nothing():
    body = "atom.relaxed.device.cas r0, x, 5, 1 | atom.relaxed.device.cas r0, x, 0, 2 ;"
    assert not shown(APART, body, "x == 1")
    assert shown(APART, body, "x == 2 /\\ 0:r0 == 2")


def test_a_barrier_that_not_all_reach_is_stuck_and_one_that_counts_opens_for_its_number():
    body = "bar.sync 0 | bar.sync 1 ;\nbar.sync 1 | bar.sync 0 ;"
    stuck = explore(read(f"LITMUS bars\n{{ }}\n{TWO}\n{body}\nexists (x == 0)", DIALECT))
    assert stuck.stuck and not stuck.ends
    three = TWO.replace(" ;", " | P2@workgroup 0,device 0 ;")
    for wanted, ends in ((2, True), (4, False)):
        counted = f"st.weak x, 1 | ld.weak r0, x | ;\nbar.sync 1, 1, {wanted} | bar.sync 1, 1, {wanted} | bar.sync 1, 1, {wanted} ;"
        assert bool(explore(read(f"LITMUS bars\n{{ }}\n{three}\n{counted}\nexists (x == 1)", DIALECT)).ends) == ends


def test_a_fair_adversary_shows_a_waiting_loop_what_was_stored():
    machine = ViewMachine([Participant(0, 0), Participant(1, 0)], Adversary(seed=1, stale=1.0, patience=8))
    machine.initialise("flag", 0)
    machine.store(0, "flag", 1, "release", SyncScope.SYSTEM)
    values = [machine.load(1, "flag", "acquire", SyncScope.SYSTEM) for _ in range(9)]
    assert values == [0] * 8 + [1]
    assert machine.load(1, "flag") == 1, "what was acquired is known"


def test_one_seed_gives_one_course():
    test = read(f"LITMUS sb\n{{ }}\n{APART}\nst.weak x, 1 | st.weak y, 1 ;\nld.weak r0, y | ld.weak r0, x ;\n"
                "exists (0:r0 == 0 /\\ 1:r0 == 0)", DIALECT)
    assert sample(test, 50, seed=9) == sample(test, 50, seed=9)
    assert len({sample(test, 50, seed=seed).witnesses for seed in range(8)}) > 1


def test_exploration_that_is_cut_short_says_so():
    test = read(f"LITMUS sb\n{{ }}\n{APART}\nst.weak x, 1 | st.weak y, 1 ;\nld.weak r0, y | ld.weak r0, x ;\nexists (x == 3)")
    assert not explore(test, limit=3).complete and explore(test).complete


@pytest.mark.parametrize("body", ["st.weak x | ;", "ld.sideways r0, x | ;", "fence.sc.planet | ;", "beq r0, 1, NOWHERE | ;"])
def test_text_that_is_no_test_is_named(body):
    with pytest.raises(LitmusTextError, match="broken"):
        read(f"LITMUS broken\n{{ }}\n{TWO}\n{body}\nexists (x == 1)", DIALECT)


@pytest.mark.parametrize(("initial", "threads", "condition", "said"), [
    ("", "", "exists (x == 0)", "no threads"),
    ("", "P0@workgroup 0,device 0 ;", "exists (x == 0", "no condition"),
    ("", "P0@workgroup 0,device 0 ;", "exists (x == 0 ?)", "no condition"),
    ("y @ nowhere aliases x;", "P0@workgroup 0,device 0 ;", "exists (x == 0)", "none of the ways generic"),
])
def test_what_is_no_condition_no_thread_or_no_way_is_named(initial, threads, condition, said):
    with pytest.raises(LitmusTextError, match=said):
        read(f"LITMUS broken\n{{ {initial} }}\n{threads}\n{condition}")
