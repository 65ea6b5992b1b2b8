"""`pytest --pyargs tilefw_conformance --target T`: a test for each case and target (the options stand in pytest_options.py)."""

from __future__ import annotations

from typing import cast

import pytest

from tilefw_conformance.pytest_session import Pair, SuiteSession, begin, session_of


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Rightful refusals are outcomes of their own: neither passes nor tests that were left out."""
    if report.skipped and isinstance(report.longrepr, tuple):
        for outcome, letter in (("unsupported", "u"), ("over-capacity", "c")):
            if f"{outcome}: " in report.longrepr[2]:
                return outcome, letter, outcome.upper()
    return None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "conformance_case" not in metafunc.fixturenames:
        return
    if not metafunc.config.getoption("tilefw_target"):
        metafunc.parametrize("conformance_case", [pytest.param(None, marks=pytest.mark.skip("no --target"), id="no-target")])
        return
    pairs = session_of(metafunc.config).pairs
    metafunc.parametrize("conformance_case", pairs, ids=[f"{target}-{case.id}" for target, case in pairs])


def pytest_collection_finish(session: pytest.Session) -> None:
    """What -k and its like left is what runs."""
    called = (item.callspec.params for item in session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec"))
    pairs = [cast(Pair, values["conformance_case"]) for values in called if values.get("conformance_case")]
    if pairs and not session.config.option.collectonly:
        begin(session.config, pairs)


@pytest.fixture
def conformance_session(request: pytest.FixtureRequest) -> SuiteSession:
    return session_of(request.config)
