"""`pytest --pyargs tilefw_conformance --target T`: the options stand here, so that no other pytest run gains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilefw_conformance.case import LEVELS

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tilefw", "tilefw conformance suite")
    options = (
        ("--tilefw-target", "--target", {"action": "append", "default": [], "metavar": "T", "help": "target to test; repeatable"}),
        ("--tilefw-level", "--level", {"default": "core", "choices": LEVELS, "help": "levels up to this one (default: core)"}),
    )
    for own, short, facts in options:
        destination = own.removeprefix("--").replace("-", "_")
        try:
            group.addoption(own, short, dest=destination, **facts)
        except ValueError:  # another plugin's option has the short name: ours keeps its long one
            group.addoption(own, dest=destination, **facts)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """`unsupported` is an outcome of its own: neither a pass nor a test that was left out."""
    if report.skipped and isinstance(report.longrepr, tuple) and "unsupported: " in report.longrepr[2]:
        return "unsupported", "u", "UNSUPPORTED"
    return None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "conformance_case" not in metafunc.fixturenames:
        return
    from tilefw_conformance.case import bundled
    from tilefw_conformance.selection import select

    targets = metafunc.config.getoption("tilefw_target")
    cases = select(bundled(), metafunc.config.getoption("tilefw_level"), None)
    pairs = [(target, case) for target in targets for case in cases]
    metafunc.parametrize("conformance_case", pairs, ids=[f"{target}-{case.id}" for target, case in pairs])
