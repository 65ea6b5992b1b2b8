"""`pytest --pyargs tilefw_conformance --target T`: a test for each case and target (the options stand in pytest_options.py)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from tilefw_conformance.pytest_session import Pair, Session

# Machine passes check what they did.
os.environ.setdefault("TILEFW_VERIFY", "1")

_SESSION = pytest.StashKey["Session"]()


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
    pairs = _session(metafunc.config).pairs
    metafunc.parametrize("conformance_case", pairs, ids=[f"{target}-{case.id}" for target, case in pairs])


def pytest_collection_finish(session: pytest.Session) -> None:
    """What -k and its like left is what runs."""
    called = (item.callspec.params for item in session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec"))
    pairs = [cast("Pair", values["conformance_case"]) for values in called if "conformance_case" in values]
    if not session.config.option.collectonly and _SESSION in session.config.stash:
        session.config.stash[_SESSION].begin(pairs)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _SESSION in config.stash:
        config.stash[_SESSION].close()


@pytest.fixture
def conformance_session(request: pytest.FixtureRequest) -> Session:
    return _session(request.config)


def _session(config: pytest.Config) -> Session:
    """The run behind the tests; made once, as it starts processes."""
    from tilefw.api.errors import KernelError
    from tilefw_conformance.pytest_session import Session

    if _SESSION not in config.stash:
        try:
            config.stash[_SESSION] = Session(config)
        except KernelError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[_SESSION]
