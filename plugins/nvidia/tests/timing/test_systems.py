"""The files of systems are whole: each collective that a system can have is played, near what is published of it."""

import pytest

from tilefw.api.errors import CodeError
from tilefw.distributed.links import OPERATIONS, all_reduce_over_nodes, collective, read_system, system_names

PACKAGE = "tilefw_nvidia.systems"
NAMES = [name for name in system_names(PACKAGE) if name not in ("hgx", "hopper")]  # what others are like


@pytest.mark.parametrize("name", NAMES)
def test_every_system_plays_every_collective(name):
    system = read_system(PACKAGE, name)
    for operation in OPERATIONS:
        assert 1 < collective(system, operation, 4, 4096).microseconds < collective(system, operation, 4, 1 << 26).microseconds
    if "node_rate" in system:
        assert all_reduce_over_nodes(system, 2, 1 << 26).microseconds > 100


def test_a_name_that_is_not_there_names_the_nearest():
    with pytest.raises(CodeError, match="did you mean 'h100_sxm'"):
        read_system(PACKAGE, "h100_smx")


def test_fewer_links_of_a_device_carry_less():
    """An H800 has 8 of the 18 links of an H100."""
    few, all_links = read_system(PACKAGE, "h800"), read_system(PACKAGE, "h100_sxm")
    for operation in OPERATIONS:
        times = [collective(system, operation, 8, 1 << 30).microseconds for system in (few, all_links)]
        assert times[0] / times[1] == pytest.approx(18 / 8, rel=0.1)


def test_reduction_in_the_switch_reaches_the_published_rates_by_number_of_devices():
    """nccl issue 1455: 420, 440, 460 and 480 GB/s of bus bandwidth for five to eight devices."""
    system, size = read_system(PACKAGE, "h100_sxm"), 8 << 30
    for ranks, published in ((5, 420), (6, 440), (7, 460), (8, 480)):
        bus = 2 * (ranks - 1) / ranks * size / collective(system, "all_reduce", ranks, size, "in-switch").microseconds / 1e3
        assert bus == pytest.approx(published, rel=0.03)
