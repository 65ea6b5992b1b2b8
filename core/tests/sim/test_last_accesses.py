"""Several waves that read one place at different clocks keep a clock each, until the place is written or read anew."""

import numpy as np

from tilefw.sim.memory.regions import Region
from tilefw.sim.tracking.last_accesses import SEVERAL_WAVES, LastAccesses

GROUP = 64  # the actors of workgroup 0 are 64 and on


def places() -> LastAccesses:
    return LastAccesses(Region(0, 32), 4, np.int64)


def read(places: LastAccesses, granules: list[int], wave: int, clock: int) -> None:
    """As the race check notes the read of one more wave."""
    at = np.array(granules)
    actors = np.full(len(at), GROUP + wave, np.uint32)
    before = places.reader[at]
    if not before.any():
        places.reader[at], places.read[at] = actors, clock
        return
    places.note_several(at, before, actors, np.full(len(at), clock, np.int64))
    places.reader[at] = GROUP | SEVERAL_WAVES
    places.read[at] = np.maximum(places.read[at], clock)


def test_readers_at_one_clock_share_it() -> None:
    seen = places()
    for wave in range(3):
        read(seen, [0, 1], wave, 7)
    assert not seen.clocks_differ(np.array([0, 1])).any()
    assert seen.readers_clocks(np.array([0]), 3).tolist() == [[7, 7, 7]]


def test_readers_at_different_clocks_have_their_own() -> None:
    seen = places()
    read(seen, [0, 1, 2], 0, 9)
    read(seen, [0, 1], 1, 4)
    read(seen, [1], 2, 4)
    assert seen.clocks_differ(np.array([0, 1, 2])).tolist() == [True, True, False]
    assert seen.readers_clocks(np.array([0, 1]), 3).tolist() == [[9, 4, 0], [9, 4, 4]]
    assert seen.several(np.array([0, 1]), 3).tolist() == [[True, True, False], [True, True, True]]


def test_later_readers_join_those_that_shared_a_clock() -> None:
    seen = places()
    read(seen, [3], 0, 5)
    read(seen, [3], 1, 5)
    read(seen, [3], 2, 6)
    assert seen.readers_clocks(np.array([3]), 3).tolist() == [[5, 5, 6]]


def test_a_place_that_is_written_has_no_readers_clocks() -> None:
    seen = places()
    read(seen, [0], 0, 1)
    read(seen, [0], 1, 2)
    seen.forget_several(np.array([0]))
    assert not seen.clocks_differ(np.array([0])).any()


def test_places_that_are_cut_keep_their_clocks() -> None:
    seen = places()
    read(seen, [1], 0, 1)
    read(seen, [1], 1, 2)
    seen.refine(2)
    assert seen.readers_clocks(np.array([2, 3]), 2).tolist() == [[1, 2], [1, 2]]
