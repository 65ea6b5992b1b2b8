"""For all tests of the tree: the package `oracles` on the path, machine passes that check their work, one default target, oracles
that must run where they were installed, tests that must have asserted something, long campaigns left out of a run that does not
name them, and a sample of the tests that have a great many cases (`--each N`)."""

import os
import random
import sys
from collections import defaultdict
from pathlib import Path

import pytest

_MANY = 40  # cases of one test function

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


def pytest_addoption(parser: pytest.Parser) -> None:
    words = f"of a test with more than {_MANY} cases run an Nth (`tox -e every-case` runs all of them)"
    parser.addoption("--each", type=int, default=1, metavar="N", help=words)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _leave_campaigns_out(config, items)
    _keep_each(config, items)


def _keep_each(config: pytest.Config, items: list[pytest.Item]) -> None:
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    kept = {item for name, found in cases.items() for item in _share(name, found, config.getoption("each"))}
    left = [item for item in items if item not in kept]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item in kept]


def _share(name: str, cases: list[pytest.Item], each: int) -> list[pytest.Item]:
    """Drawn by the test's name: steps of N through a table would meet one column of its parameters again and again."""
    return cases if len(cases) <= _MANY or each == 1 else random.Random(name).sample(cases, len(cases) // each)


def _leave_campaigns_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "campaign" in config.getoption("markexpr"):
        return
    for item in items:
        if "campaign" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="a long campaign: run with -m campaign"))
