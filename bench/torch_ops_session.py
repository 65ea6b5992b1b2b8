"""The pytest plugin of torch_ops.py: the backend "tilefw" in the place of PyTorch's own, and a line of JSON for each test.

A line holds what became of each kernel that the test made. How a test is limited in time and drawn is upstream_session.py's.
"""

from __future__ import annotations

import functools
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import tilefw_torch
import torch._inductor.compile_fx as compile_fx_module
import upstream
import upstream_session
from tilefw_torch import inductor_patches, reset_report, tilefw
from tilefw_torch.inductor_kernel import InductorKernel
from torch._inductor import config
from upstream_session import (
    SETTINGS,
    pytest_collection_modifyitems,
    pytest_collectreport,
    pytest_runtest_call,
    pytest_runtest_protocol,
)

__all__ = ["pytest_collection_modifyitems", "pytest_collectreport", "pytest_runtest_call", "pytest_runtest_protocol"]

KERNELS: list[dict[str, str]] = []  # of the test that runs: what became of each


def pytest_configure(config: pytest.Config) -> None:
    for limited in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(limited, upstream_session._out_of_time)
    _stand_in()
    _watch()


def _stand_in() -> None:
    """PyTorch's compiler is this backend, however a test asks for it."""
    itself = compile_fx_module.compile_fx

    @functools.wraps(itself)
    def compiled(model: Any, inputs: Any, inner_compile: Any = None, config_patches: Any = None, **keywords: Any) -> Any:
        if inductor_patches.CURRENT.get() is not None:
            given = {} if inner_compile is None else {"inner_compile": inner_compile}
            return itself(model, inputs, config_patches=config_patches, **given, **keywords)
        with config.patch(config_patches or {}):
            return tilefw(model, inputs, options={"target": SETTINGS["target"]})

    compile_fx_module.compile_fx = compiled
    config.cpu_backend = "triton"  # type: ignore[assignment]  # so that tests ask for Triton's text


def _watch() -> None:
    """Notes of each kernel how far it comes."""
    make, run = InductorKernel.__init__, InductorKernel.run
    notes: WeakKeyDictionary[InductorKernel, dict[str, str]] = WeakKeyDictionary()

    @functools.wraps(make)
    def made(self: InductorKernel, *args: Any, **keywords: Any) -> None:
        KERNELS.append({"state": "written", "said": ""})
        notes[self] = KERNELS[-1]
        _noted(notes[self], lambda: make(self, *args, **keywords))

    @functools.wraps(run)
    def ran(self: InductorKernel, *args: Any, **keywords: Any) -> None:
        _noted(notes[self], lambda: run(self, *args, **keywords))
        notes[self]["state"] = "launched"

    InductorKernel.__init__ = made  # type: ignore[method-assign]
    InductorKernel.run = ran  # type: ignore[method-assign]


def _noted(note: dict[str, str], step: Callable[[], None]) -> None:
    try:
        step()
    except BaseException as error:
        late = isinstance(error, upstream_session.TestTimeoutError)
        note.update(state="late" if late else "refused", said=_first(str(error) or type(error).__name__))
        raise


def _first(text: str) -> str:
    """The line that says what is wrong."""
    text = re.sub("\x1b\\[[0-9;]*m", "", text)
    return text[max(text.find("error["), 0) :].strip().partition("\n")[0][:200]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    KERNELS.clear()
    reset_report()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and report.passed:
        return
    properties: dict[str, Any] = dict(report.user_properties)
    upstream.add(
        Path(SETTINGS["results"]), test=report.nodeid, reason=upstream_session._reason(report)[:2000], target=SETTINGS["target"],
        outcome="error" if report.failed and report.when != "call" else report.outcome, kernels=KERNELS,
        fallbacks=tilefw_torch.report().fallbacks, seconds=round(properties.get("seconds", 0.0), 3),
    )
