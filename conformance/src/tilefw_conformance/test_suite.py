"""The suite as pytest sees it: `test_case[TARGET-ID]`, one test a case and target."""

from __future__ import annotations

import pytest

from tilefw_conformance.case import Case
from tilefw_conformance.outcomes import GOOD
from tilefw_conformance.pytest_session import SuiteSession
from tilefw_conformance.report.wording import first_line
from tilefw_conformance.reproduction import message


def test_case(conformance_case: tuple[str, Case], conformance_session: SuiteSession) -> None:
    record = conformance_session.result(*conformance_case)
    outcome = record["outcome"]
    if outcome == "unsupported":
        pytest.skip(f"unsupported: {', '.join(record['missing'])}")
    if outcome == "over-capacity":
        pytest.skip(f"over-capacity: {first_line(record['error'])}")
    if outcome == "xfail":
        pytest.xfail(record["reason"])
    if outcome not in GOOD:
        pytest.fail(message(record), pytrace=False)
