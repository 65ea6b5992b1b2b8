"""Shared memory and events: a barrier orders an access once its wave has waited for it; copies land with their event."""

import numpy as np
import pytest
from wave_toy import run

HEAD = """
        wload2 w4:w5, w0:w1, 0
        wait near 0
        mul v1, v0, 4
        sub v2, 31, v0
        mul v2, v2, 4
"""
TAIL = "\nwait near 0, far 0\nstore w4:w5, v1, v3\nend"


def told(text: str, *, block: int = 32, seed: int = 0, **options) -> list:
    out = run(HEAD + text + TAIL, np.arange(1, 65, dtype=np.uint32), block=block, shared=512, seed=seed, **options)
    return [f for f in out.report.findings if f.check != "leftovers"]


STORE_LOAD = "lstore v1, v0\n{before}\nbar\n{after}\nlload v3, v2"


@pytest.mark.parametrize("seed", [0, 1])
def test_a_store_that_is_not_waited_for_before_the_barrier_races(seed):
    assert told(STORE_LOAD.format(before="wait near 0", after=""), seed=seed) == []
    for after in ("", "wait near 0"):
        (finding,) = told(STORE_LOAD.format(before="", after=after), seed=seed)
        assert finding.check == "races" and finding.instruction == "lload v3, v2" and "lstore v1, v0" in finding.other
        assert "the queue near" in finding.note


def test_a_load_that_is_not_waited_for_before_the_barrier_races_with_a_store():
    text = "lstore v1, v0\nwait near 0\nbar\nlload v3, v2\n{before}\nbar\nlstore v1, 7"
    assert told(text.format(before="wait near 0")) == []
    (finding,) = told(text.format(before=""))
    assert finding.check == "races" and finding.instruction == "lstore v1, 7" and "lload" in finding.other and finding.note


def test_a_wait_and_a_barrier_later_order_it_too():
    assert told("lstore v1, v0\nbar\nwait near 0\nbar\nlload v3, v2") == []


def test_a_wait_may_leave_the_newest():
    """The first of two stores is finished, the second is not."""
    text = "lstore v1, v0\nadd v5, v1, 128\nlstore v5, v0\nwait near 1\nbar\nlload v3, {read}"
    assert told(text.format(read="v2")) == []
    assert [f.check for f in told("add v2, v2, 128\n" + text.format(read="v2"))] == ["races"]


def test_readers_of_one_place_are_taken_one_by_one():
    """All waves read word 0 and wait for it, then begin to read word 1 and do not; then one wave writes either."""
    text = """
        lstore v1, v0
        wait near 0
        bar
        lload v3, 0
        wait near 0
        lload v4, 4
        bar
        mask 1
        less w3, wave, 1
        jz w3, over
        lstore {written}, 9
over:   wait near 0
        less w12, v3, v4            # a load whose value nobody uses would be in no race
        jz w12, out
out:    mask 255
    """
    assert told(text.format(written=0)) == []
    assert [f.check for f in told(text.format(written=4))] == ["races"]


def test_stores_that_waves_leave_in_a_loop_stay_apart():
    """Each round stores behind the barrier and waits for all but its own newest store."""
    text = """
        wmov w3, 6
        mov v6, v1
loop:   lstore v6, v0
        wait near {left}
        bar
        lload v3, {read}
        wait near 0
        bar
        wsub w3, w3, 1
        jz w3, done
        jump loop
done:   wait near 0
    """
    assert told(text.format(left=0, read="v2")) == []
    assert {f.check for f in told(text.format(left=1, read="v2"))} == {"races"}
    assert told(text.format(left=1, read="v1")) == []


def test_global_memory_is_ordered_by_barriers_alone():
    assert told("store w4:w5, v1, v0\nbar\nload v3, w4:w5, v2\nwait far 0\nbar") == []
    assert {f.check for f in told("store w4:w5, v1, v0\nload v3, w4:w5, v2\nwait far 0\nbar")} == {"races"}


COPY = "copy v1, w4:w5, v1\n{before}\nbar\nlload v3, v2"


@pytest.mark.parametrize("seed", [0, 1])
def test_copies_land_at_the_wait_for_their_event(seed):
    out = run(HEAD + COPY.format(before="wait far 0") + TAIL, np.arange(32, dtype=np.uint32), block=32, shared=128, seed=seed)
    assert out.report.findings == () and out.arrays[0].tolist() == list(range(31, -1, -1))
    finding = next(f for f in told(COPY.format(before=""), seed=seed) if f.check == "pending")
    assert finding.instruction == "lload v3, v2" and "copy" in finding.other
    assert "races" in {f.check for f in told(COPY.replace("bar", "").format(before="wait far 0"), seed=seed)}


def test_copies_land_in_the_order_of_their_queue():
    text = "copy v1, w4:w5, v1\n{later}\nwait far {left}\nbar\nlload v3, v2\nwait near 0"
    assert told(text.format(later="load v4, w4:w5, v1", left=1)) == []
    assert "pending" in {f.check for f in told(text.format(later="", left=1))}
    assert "pending" in {f.check for f in told(text.format(later="load v4, w4:w5, v1", left=2))}


@pytest.mark.parametrize("checks", [frozenset(), frozenset({"races"})])
def test_copies_land_whether_races_are_looked_for_or_not(checks):
    out = run(HEAD + COPY.format(before="wait far 0") + TAIL, np.arange(32, dtype=np.uint32), block=32, shared=128, checks=checks)
    assert out.arrays[0].tolist() == list(range(31, -1, -1))


def test_a_copy_that_nobody_waits_for_is_left_over():
    out = run(HEAD + "copy v1, w4:w5, v1\nend", np.arange(32, dtype=np.uint32), block=32, shared=128)
    assert "never waited for" in out.finding("leftovers").message


def test_waves_wait_for_themselves():
    """Only odd waves wait: the copies of even ones have not landed."""
    text = "copy v1, w4:w5, v1\nwand w3, wave, 1\njz w3, meet\nwait far 0\nmeet: bar\nlload v3, v2\nwait near 0"
    finding = next(f for f in told(text) if f.check == "pending")
    assert finding.instruction == "lload v3, v2" and finding.count == 16


def test_stores_that_masked_loads_leave_unread_are_no_finding():
    text = "mul v1, v0, 4\nmov v3, 0\nlstore v1, v0\nwait near 0\nbar\nmask 15\nlload v3, v1\nwait near 0\nend"
    assert run(text, 8, block=32, shared=128).report.findings == ()
