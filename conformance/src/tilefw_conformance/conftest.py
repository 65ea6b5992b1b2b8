"""`pytest --pyargs tilefw_conformance --target T`: a test for each case and target (the options stand in pytest_options.py)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# Machine passes check what they did.
os.environ.setdefault("TILEFW_VERIFY", "1")


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
