"""Overlap hides the shorter of computation and communication, and never more."""

import pytest
from toy_system import toy

from tilefw.api.errors import CodeError
from tilefw.distributed.links.overlap import VARIANTS, TiledWork, overlapped


def work(tile_us, gathers):
    return TiledWork(tiles=640, tile_us=tile_us, tile_bytes=10_000, processors=64, gathers=gathers)


@pytest.mark.parametrize("gathers", [False, True])
@pytest.mark.parametrize("tile_us", [1, 30, 300])
def test_overlap_takes_no_less_than_either_part_and_no_more_than_both_with_a_wave(tile_us, gathers):
    one = work(tile_us, gathers)
    compute, sending = 10 * tile_us, 3 * 640 * 10_000 / 80e3
    bulk = overlapped(toy(), 4, one, "bulk_synchronous")
    hidden = overlapped(toy(), 4, one, "producer_consumer")
    assert bulk == pytest.approx(compute + sending + 10)
    assert max(compute, sending) <= hidden <= max(compute, sending) + max(compute, sending) / 10 + 3.001
    assert hidden < bulk


def test_processors_that_send_are_worth_it_where_sending_is_what_takes_long():
    few, many = work(1, False), work(300, False)
    times = {tiles: [overlapped(toy(), 4, tiles, "specialised", senders) for senders in (1, 8)] for tiles in (few, many)}
    assert times[few][1] < times[few][0] and times[many][0] < times[many][1]


def test_a_variant_that_is_not_there_names_the_nearest():
    with pytest.raises(CodeError, match="did you mean 'producer_consumer'"):
        overlapped(toy(), 4, work(1, False), "producer-consumer")
    with pytest.raises(CodeError, match="64 of 64 processors"):
        overlapped(toy(), 4, work(1, False), "specialised", 64)
    assert len(VARIANTS) == 3
