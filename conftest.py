"""For all tests of the tree: the package `oracles` on the path, machine passes that check their work, one default target, oracles
that must run where they were installed, tests that must have asserted something, and long campaigns left out of a run that does not
name them."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.setdefault("TILEFW_VERIFY", "1")
os.environ.setdefault("TILEFW_TARGET", "reference")  # of tests that name none, whichever plugins are installed beside
pytest_plugins = ["oracles.required", "oracles.asserting"]


def pytest_configure(config: pytest.Config) -> None:
    from hypothesis import HealthCheck, settings

    from oracles.assertion_marks import leave_plain

    leave_plain(config.pluginmanager.rewrite_hook, ("tilefw", "tilefw_conformance"))
    config.addinivalue_line("markers", "campaign: a long run, left out unless -m names it")
    # How fast examples are made and run depends on what else the machine does, and says nothing of the code.
    settings.register_profile("tree", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("tree")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "campaign" in config.getoption("markexpr"):
        return
    for item in items:
        if "campaign" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="a long campaign: run with -m campaign"))
