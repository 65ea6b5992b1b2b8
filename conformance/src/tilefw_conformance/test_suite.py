"""The suite as pytest sees it: `test_case[TARGET-ID]`, one test a case and target."""

from __future__ import annotations

import pytest

from tilefw.runtime.loader import find
from tilefw_conformance.case import Case
from tilefw_conformance.runner import run
from tilefw_conformance.suite import expectations_of


def test_case(conformance_case: tuple[str, Case]) -> None:
    name, case = conformance_case
    target = find(name)
    result = run(case, target, expectations_of(target))
    if result.outcome == "unsupported":
        pytest.skip(f"unsupported: {', '.join(sorted(result.missing))}")
    if result.outcome == "xfail":
        pytest.xfail(result.reason)
    if not result.good:
        pytest.fail(result.message(), pytrace=False)
