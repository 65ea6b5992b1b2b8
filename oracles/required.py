"""Skips are counted, and a skip for want of an oracle that this run must have is a failure.

`TILEFW_REQUIRE_ORACLES=triton,llvm` names the oracles that were installed for the run, as `.ci/run` does; without it an absent
oracle is skipped with its reason, as on a user's machine.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

VARIABLE = "TILEFW_REQUIRE_ORACLES"
# What the reasons of skipped tests say where the oracle is absent.
ORACLES = {
    "triton": r"^Triton is not installed|install triton==|^triton [\w.]+ is installed|No module named 'triton'",
    "ptxas": r"\bptxas\b",
    "llvm": r"\bLLVM 22\b|\bllvm-\w+-22\b|\bllc-22\b|\bld\.lld-22\b",
    "browser": r"^no browser here",
    "onnx": r"^the ONNX pack is an extra|^tilefw-onnx is not installed|No module named 'onnx'",
    "torch": r"^PyTorch is not installed|^torch is not installed|No module named 'torch'",
    "jax": r"^JAX is not installed|^tilefw-jax is not installed|No module named 'jax'",
    "mmasim": r"^mmasim is not installed",
    "cutile": r"^cuTile is not installed|No module named 'cuda'",
    "dask": r"^Dask distributed is not installed|No module named 'distributed'",
}


def required() -> frozenset[str]:
    """The oracles that this run must have. Raises pytest.UsageError for a name that is none."""
    names = frozenset(filter(None, os.environ.get(VARIABLE, "").split(",")))
    if unknown := sorted(names - ORACLES.keys()):
        raise pytest.UsageError(f"{VARIABLE} names {', '.join(unknown)}; the oracles are {', '.join(ORACLES)}")
    return names


def missed(reason: str, names: frozenset[str]) -> str | None:
    """Which of the oracles `names` a skip with this reason is for want of; None for any other skip."""
    return next((name for name in sorted(names) if re.search(ORACLES[name], reason)), None)


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why a report is skipped, without pytest's own prefix."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr or "")
    return text.removeprefix("Skipped: ")


def _judge(report: Any) -> None:
    """Turn the skip of a required oracle into a failure."""
    if report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = reason_of(report)
    if name := missed(reason, required()):
        report.outcome = "failed"
        report.longrepr = f"{VARIABLE} names {name}, and this did not run: {reason}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, None]:
    _judge((yield).get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, None]:
    _judge((yield).get_result())


def pytest_terminal_summary(terminalreporter: Any) -> None:
    counted = Counter(reason_of(report) for report in terminalreporter.stats.get("skipped", ()))
    if counted:
        terminalreporter.section("skipped, by reason")
    for reason, count in counted.most_common():
        terminalreporter.line(f"{count:6}  {reason}")
