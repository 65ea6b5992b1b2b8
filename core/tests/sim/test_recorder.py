"""A recorded launch says of each atomic access whether memory holds another value since."""

import numpy as np
import pytest
from running import run


def atomics(out):
    return [access for one in out.report.trace.batches[0].runs for access in one.accesses if access.kind == "atomic"]


@pytest.mark.parametrize("guarded", ["@p0 atomadd r1, a0, 1", "atomadd_where r1, p0, a0, 1"])
def test_an_access_of_no_lane_says_nothing_of_the_one_before_it(guarded):
    out = run(f"param a0, arg0\nlt p0, tid, 0\natomadd r0, a0, 3\n{guarded}\nend", np.array([10], np.uint32), trace=True)
    (access,) = atomics(out)
    assert access.changed and out.arrays[0].tolist() == [34]


def test_an_atomic_access_that_leaves_memory_as_it_was_has_changed_nothing():
    out = run("param a0, arg0\natomcas r0, a0, 1, 2\nend", np.array([10], np.uint32), trace=True)
    (access,) = atomics(out)
    assert not access.changed and out.arrays[0].tolist() == [10]
