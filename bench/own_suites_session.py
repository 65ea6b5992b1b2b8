"""The pytest plugin of own_suites.py: tilefw behind `import triton`, the small cases chosen, and a line of JSON for each test.

How a test is limited in time and told of is upstream_session.py's; `UPSTREAM` in the environment holds the settings as JSON.
"""

from __future__ import annotations

import functools
import math
import random
import signal
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import upstream
import upstream_session
from upstream_session import SETTINGS, pytest_collectreport, pytest_runtest_call, pytest_runtest_protocol

import tilefw.triton
from tilefw.runtime.launcher import Launcher
from tilefw.triton import torch_device

__all__ = ["pytest_collectreport", "pytest_runtest_call", "pytest_runtest_protocol"]


LAUNCHES: list[int] = []  # one for each launch of a kernel in the test that runs
MODES: list[Any] = []  # what stands for PyTorch's GPU
tilefw.triton.install()  # before the collection's conftest, which imports Triton


def pytest_configure(config: pytest.Config) -> None:
    for limited in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(limited, upstream_session._out_of_time)
    launch = Launcher.launch

    @functools.wraps(launch)
    def counted(*args: Any, **keywords: Any) -> Any:
        LAUNCHES.append(1)
        return launch(*args, **keywords)

    Launcher.launch = counted  # type: ignore[method-assign]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    LAUNCHES.clear()
    if not MODES:
        MODES.extend(filter(None, [torch_device._active()]))
    elif torch_device._active() is None:  # a test that ran out of time took it along
        torch._C._push_on_torch_function_stack(MODES[0])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or not report.passed:
        properties: dict[str, Any] = dict(report.user_properties)
        upstream.add(
            Path(SETTINGS["results"]), test=report.nodeid, reason=upstream_session._reason(report), target=SETTINGS["target"],
            outcome="error" if report.failed and report.when != "call" else report.outcome, launches=len(LAUNCHES),
            seconds=round(properties.get("seconds", 0.0), 3),
        )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    small = [item for item in items if numel(item) <= SETTINGS["numel"]]
    chosen = _thinned(small, SETTINGS["each"]) if SETTINGS["each"] else small
    done = {record["test"] for record in upstream.read(Path(SETTINGS["results"])) if _stays(record)}
    items[:] = sorted((item for item in chosen if item.nodeid not in done), key=numel)


def _stays(record: dict[str, Any]) -> bool:
    return not SETTINGS["again"] or record["outcome"] == "passed"


def _thinned(items: Sequence[pytest.Item], wanted: int) -> list[pytest.Item]:
    functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    draw = random.Random(SETTINGS["seed"])
    return [item for cases in functions.values() for item in (draw.sample(cases, wanted) if len(cases) > wanted else cases)]


def numel(item: pytest.Item) -> int:
    """The product of the whole numbers above 1 among a case's parameters: a bound of what its tensors hold."""
    drawn: Any = getattr(item, "callspec", None)
    return math.prod(map(_extent, drawn.params.values())) if drawn is not None else 1


def _extent(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return max(value, 1)
    if isinstance(value, list | tuple):
        whole = [element for element in value if isinstance(element, int) and not isinstance(element, bool)]
        offsets = len(whole) == len(value) > 1 and whole[0] == 0 and whole == sorted(whole)
        return max(whole[-1], 1) if offsets else math.prod(map(_extent, value))
    return 1
