"""The model of time of a stranger's chip: data and a page of code, and no figure that nothing depends on."""

import pytest

from tilefw.kernels.profiled import profiled, recorded
from tilefw.kernels.spec import load
from tilefw.runtime.plugins.loader import find_target
from tilefw.testing.figures import dead_figures

LAUNCHES = (("vector_add", {"n": "20000"}), ("matmul", {"m": "32", "n": "32", "k": "32"}), ("sparse_matvec", {}))


def test_every_figure_changes_the_time_of_some_launch() -> None:
    made = (recorded(load(name), parameters, "acme-x2") for name, parameters in LAUNCHES)
    assert dead_figures(find_target("acme-x2").backend, made) == set()


def test_a_profile_says_what_limits_a_kernel() -> None:
    profile = profiled(load("vector_add"), {"n": "200000"}, "acme-x1")
    assert profile.roofline[-1].nbytes == pytest.approx(3 * 4 * 200000, rel=0.05)
    assert profile.cycles >= profile.roofline[-1].nbytes / 256, "memory moves 256 bytes a cycle"
    assert profile.limits[0].cause in ("DRAM", "cache")
