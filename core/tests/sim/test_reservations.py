"""Load-reserved and store-conditional: of all that want a word one stores at a time, and any write in between is seen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import run
from toy import CHIP

from tilefw.sim.memory.reservations import Reservations

ARGUMENTS = """
    param a0, arg0
    param a1, arg1
"""
COUNT = ARGUMENTS + """
        mul r0, group, 64
        add r0, r0, tid
again:  lr r1, a0
        add r2, r1, 1
        sc p0, a0, r2
        @!p0 jump again
        index a2, a1, r0
        store a2, r1
        end
"""


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_increment_is_made_once(seed):
    """Lanes of a wave, waves and workgroups all want one word; what they find are the numbers from 0, each once."""
    out = run(COUNT, np.zeros(2, np.uint32), 256 * 4, grid=4, block=64, seed=seed)
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == [256, 0]
    assert sorted(out.arrays[1].tolist()) == list(range(256))


def one(between: str) -> int:
    """Whether a store-conditional succeeds after these instructions; a1 points to other memory."""
    body = ARGUMENTS + f"lr r1, a0\n{between}\nsc p0, a0, 9\nselect r2, p0, 1, 0\nindex a2, a1, 4\nstore a2, r2\nend\n"
    out = run(body, np.array([5, 6, 7, 8], np.uint32), np.zeros(8, np.uint32), block=1)
    (stored,) = out.arrays[1][4:5].tolist()
    assert out.arrays[0][0] == (9 if stored else out.arrays[0][0])
    return stored


@pytest.mark.parametrize("between, stored", [
    ("add r3, r1, 1", 1),
    ("store a1, 1", 1),  # elsewhere
    ("store a0, 5", 0),  # the value that is there already
    ("index a3, a0, 1\nstore a3, 1", 0),  # the other word of the 8 bytes
    ("index a3, a0, 2\nstore a3, 1", 1),  # the next 8 bytes
    ("atomadd r3, a0, 0", 0),
    ("index a3, a0, 2\nlr r4, a3", 0),  # a lane has one reservation
    ("sc p1, a0, 5", 0),  # and a store-conditional ends it
])
def test_what_ends_a_reservation(between, stored):
    assert one(between) == stored


def test_a_store_without_a_reservation_is_none():
    out = run(ARGUMENTS + "sc p0, a0, 9\nselect r2, p0, 1, 0\nstore a1, r2\nend\n", np.array([5], np.uint32), 4, block=1)
    assert (out.arrays[0][0], out.arrays[1][0]) == (5, 0)


THREADS = 2 * CHIP.wave_size  # of a launch of two workgroups of one wave


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["begin", "end", "take"]), st.integers(0, 15), st.integers(0, 7)), max_size=40))
def test_reservations_are_those_of_a_dictionary(steps):
    """One thread and one granule at a time, against the definition."""
    held, model = Reservations(THREADS), {}
    for step, thread, granule in steps:
        threads, places = np.array([thread]), np.array([granule * 8 + 4], np.uint64)
        if step == "begin":
            held.begin(threads, places)
            model[thread] = granule
        elif step == "end":
            held.end(0, places.view(np.int64), 4)
            model = {t: g for t, g in model.items() if g != granule}
        else:
            assert held.take(threads, places, None).tolist() == [model.pop(thread, None) == granule]
