"""The pytest plugin of upstream.py: tilefw behind `import triton` while Triton's own tests run, and a line of JSON for each test.

The tests' own support, `triton._internal_testing` and `triton.tools.mxfp`, is loaded from the checkout. `UPSTREAM` in the
environment holds the settings of the run as JSON.
"""

from __future__ import annotations

import functools
import json
import os
import random
import re
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import upstream
import upstream_known

import tilefw.triton
from tilefw.runtime.jit import JITFunction
from tilefw.triton import chip

SETTINGS: dict[str, Any] = json.loads(os.environ["UPSTREAM"])
STARTED = time.monotonic()
SUPPORT = {"triton._internal_testing": "_internal_testing.py", "triton.tools.mxfp": "tools/mxfp.py"}
WAITING = 10  # a test's time in all, in times of a processor's: on a busy machine it waits for others
# Modules that Triton's own `import triton` loads, so that tests use them without importing them.
LOADED_WITH_TRITON = ("runtime", "runtime.jit", "compiler", "testing", "language", "tools", "tools.tensor_descriptor")


class SupportFinder:
    """Finds what the tests bring with them in the checkout."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if name not in SUPPORT:
            return None
        return spec_from_file_location(name, Path(SETTINGS["checkout"], "python", "triton", SUPPORT[name]))


class TestTimeoutError(BaseException):
    """A test ran longer than its limit: no `except Exception` of a test or a compiler may take it."""


def pytest_configure(config: pytest.Config) -> None:
    backend, arch = SETTINGS["seen_as"].split(":")
    seen = chip.GPUTarget(backend, int(arch) if arch.isdecimal() else arch, 64 if backend == "hip" else 32)
    itself = chip.current_target
    chip.current_target = lambda: itself() if _running() in upstream_known.AS_ITSELF and chip.target_info().triton else seen
    tilefw.triton.install()
    sys.meta_path.insert(0, SupportFinder())  # type: ignore[arg-type]
    for name in LOADED_WITH_TRITON:
        __import__(f"triton.{name}")
    for limited in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(limited, _out_of_time)
    run = JITFunction.run

    @functools.wraps(run)
    def noted(*args: Any, **keywords: Any) -> Any:
        result = run(*args, **keywords)
        os.environ["TRITON_INTERPRET"] = str(int(_running() in upstream_known.INTERPRETED))
        return result

    JITFunction.run = noted  # type: ignore[method-assign]


def _running() -> str:
    """The function of the test that runs."""
    return re.split(r"[\[ ]", os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[2])[0]


def _out_of_time(number: int, frame: FrameType | None) -> None:
    raise TestTimeoutError(f"longer than {SETTINGS['time_limit']} seconds of a processor, or {WAITING} times that in all")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if SETTINGS["listed"]:
        listed = set(Path(SETTINGS["listed"]).read_text("utf-8").splitlines())
        items[:] = [item for item in items if _case(item) in listed]
    if SETTINGS["each"]:
        functions: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            functions[item.nodeid.partition("[")[0]].append(item)
        items[:] = [item for cases in functions.values() for item in _drawn(cases, SETTINGS["each"])]
    items[:] = _drawn(items, SETTINGS["sample"] or len(items))
    if SETTINGS["list"]:
        Path(SETTINGS["results"]).write_text("".join(f"{_case(item)}\n" for item in items), "utf-8")
        items.clear()
    else:
        done = {record["test"] for record in upstream.read(Path(SETTINGS["results"]))}
        items[:] = [item for item in items if item.nodeid not in done]
        if SETTINGS["shuffle"]:
            random.Random(SETTINGS["seed"]).shuffle(items)
        items.sort(key=lambda item: item.nodeid.partition("::")[2].partition("[")[0] in SETTINGS["last"])


def _case(item: pytest.Item) -> str:
    """A test's name without its folder: `test_core.py::test_dot[…]`."""
    return f"{item.path.name}::{item.nodeid.partition('::')[2]}"


def _drawn(items: list[pytest.Item], wanted: int) -> list[pytest.Item]:
    """As many of the items as wanted, in their order."""
    if wanted >= len(items):
        return items
    return [items[index] for index in sorted(random.Random(SETTINGS["seed"]).sample(range(len(items)), wanted))]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    if SETTINGS["seconds"] and time.monotonic() - STARTED > SETTINGS["seconds"]:
        return True  # nothing of it runs and nothing is said of it: it waits for the next session
    upstream.begun_file(Path(SETTINGS["results"])).write_text(item.nodeid, "utf-8")
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    limits = {signal.ITIMER_PROF: SETTINGS["time_limit"], signal.ITIMER_REAL: SETTINGS["time_limit"] * WAITING}
    for timer, limit in limits.items():
        signal.setitimer(timer, limit)
    began = time.process_time()
    try:
        return (yield)
    except TestTimeoutError as error:
        raise AssertionError(f"TestTimeoutError: {error}") from None
    finally:
        item.user_properties.append(("seconds", time.process_time() - began))
        for timer in limits:
            signal.setitimer(timer, 0)
        os.environ["TRITON_INTERPRET"] = "0"


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _write(report.nodeid, "error", _last_line(str(report.longrepr)), 0.0)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or not report.passed:
        outcome = "error" if report.failed and report.when != "call" else report.outcome
        properties: dict[str, Any] = dict(report.user_properties)
        _write(report.nodeid, outcome, _reason(report), properties.get("seconds", 0.0))


def _reason(report: pytest.TestReport) -> str:
    if report.passed:
        return ""
    if isinstance(report.longrepr, tuple):  # a skip: file, line, reason
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message) if crash is not None else str(report.longrepr)


def _last_line(text: str) -> str:
    return next((line.removeprefix("E").strip() for line in reversed(text.splitlines()) if line.startswith("E")), text)


def _write(test: str, outcome: str, reason: str, seconds: float) -> None:
    upstream.add(
        Path(SETTINGS["results"]), test=test, outcome=outcome, reason=reason, seconds=round(seconds, 3), target=SETTINGS["target"]
    )
