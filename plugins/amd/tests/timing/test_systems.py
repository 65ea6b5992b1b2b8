"""The files of systems are whole: each collective that a system can have is played, near what is published of it."""

import pytest

from tilefw.distributed.links import OPERATIONS, collective, direct_all_reduce, read_system, system_names

PACKAGE = "tilefw_amd.systems"


@pytest.mark.parametrize("name", system_names(PACKAGE))
def test_every_system_plays_every_collective(name):
    system = read_system(PACKAGE, name)
    for operation in OPERATIONS:
        assert 1 < collective(system, operation, 4, 4096).microseconds < collective(system, operation, 4, 1 << 26).microseconds


def test_two_devices_have_one_link_and_eight_have_seven():
    """rccl-tests on eight MI300X: bus bandwidth 47.7 GB/s of two devices, 313 GB/s of eight."""
    system, size = read_system(PACKAGE, "mi300x"), 4 << 30
    for ranks, published in ((2, 47.7), (8, 312.9)):
        bus = 2 * (ranks - 1) / ranks * size / collective(system, "all_reduce", ranks, size).microseconds / 1e3
        assert bus == pytest.approx(published, rel=0.02)


def test_a_die_of_a_package_sends_by_the_links_that_leave_it():
    """MI250: four links of 50 GB/s raw leave the package of a die."""
    system, size = read_system(PACKAGE, "mi250x"), 1 << 30
    for operation, sends in (("all_gather", 1), ("all_reduce", 2), ("all_to_all", 1)):
        assert collective(system, operation, 16, size).microseconds > sends * 15 / 16 * size / 200e3


def test_a_kernel_that_reads_from_one_peer_has_one_link():
    system = read_system(PACKAGE, "mi300x")
    played = direct_all_reduce(system, "one_shot", 2, 1 << 24, "packets")
    assert (played.microseconds - played.launch) * 48e3 == pytest.approx(1 << 24)
