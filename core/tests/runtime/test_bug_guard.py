"""What code under the guard raises is a bug of it; what a signal handler raises meanwhile belongs to whoever set it."""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api import InternalError, LaunchError
from tilefw.runtime.bug_guard import guarded


class Enough(BaseException):
    """As test timers and event loops raise: no Exception."""


def by_name(number: int, frame: FrameType | None) -> None:
    raise Enough


def through_a_call(number: int, frame: FrameType | None) -> None:
    by_name(number, None)


class Timer:
    def ring(self, number: int, frame: FrameType | None) -> None:
        raise Enough

    def __call__(self, *arguments: Any) -> None:
        self.ring(*arguments)


HANDLERS: dict[str, Callable[..., Any]] = {
    "function": by_name, "another function calls": through_a_call, "lambda": lambda *_: by_name(0, None), "method": Timer().ring,
    "callable": Timer(), "partial": functools.partial(lambda word, number, frame: by_name(number, None), "word"),
}


@pytest.fixture(params=HANDLERS)
def handled(request: pytest.FixtureRequest) -> Iterator[None]:
    """SIGUSR1 raises Enough, by a handler of each kind."""
    before = signal.signal(signal.SIGUSR1, HANDLERS[request.param])
    yield
    signal.signal(signal.SIGUSR1, before)


def busy(depth: int = 3) -> None:
    """The program that the signal interrupts."""
    if depth:
        busy(depth - 1)
    else:
        signal.raise_signal(signal.SIGUSR1)


def test_what_a_signal_handler_raises_passes(handled: None) -> None:
    dropped: list[bool] = []
    with pytest.raises(Enough), guarded("work", {}, failed=lambda: dropped.append(True)):
        busy()
    assert dropped == [True], "what was interrupted may be broken"


def test_a_signal_during_a_launch_ends_it_with_the_handlers_exception(handled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the compiler, where a test's timer finds it most often, and the next launch is whole."""
    from tilefw.tile.reference.backend import ReferenceBackend

    @tilefw.jit
    def double(x_ptr, BLOCK: tl.constexpr):
        at = x_ptr + tl.arange(0, BLOCK)
        tl.store(at, tl.load(at) * 2)

    array = np.arange(16, dtype=np.float32)
    with monkeypatch.context() as patched:
        patched.setenv("TILEFW_CACHE", "0")
        patched.setattr(ReferenceBackend, "pipeline", lambda *_: busy())
        with pytest.raises(Enough):
            double[(1,)](array, BLOCK=16, target="reference")
    double[(1,)](array, BLOCK=16, target="reference")
    assert np.array_equal(array, 2 * np.arange(16))


@pytest.mark.parametrize("error", [ZeroDivisionError("here"), SystemExit(3), Enough()])
def test_what_the_code_itself_raises_is_a_bug_with_a_reproducer(error: BaseException) -> None:
    message = f"work: {type(error).__name__}"
    with pytest.raises(InternalError, match=message) as caught, guarded("work", {"target": "t"}, lambda: "IR"):
        raise error
    assert caught.value.__cause__ is error and caught.value.reproducer is not None
    assert "// target: t" in Path(caught.value.reproducer).read_text()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), LaunchError("no", code="TFW0301"), InternalError("known")])
def test_what_is_no_bug_passes(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, guarded("work", {}):
        raise error
    assert caught.value is error


class Ring(Exception):
    """What programs raise in handlers most often: an ordinary exception."""


def ring(number: int, frame: FrameType | None) -> None:
    raise Ring


@pytest.fixture
def ringing() -> Iterator[None]:
    """SIGUSR1 raises Ring."""
    before = signal.signal(signal.SIGUSR1, ring)
    yield
    signal.signal(signal.SIGUSR1, before)


PLUGIN = """
import os, signal
from tilefw.api import TargetInfo, hookimpl
from tilefw.tile.reference.backend import ReferenceBackend
TILEFW_API = (0, 1)

@hookimpl
def tilefw_targets():
    return [TargetInfo("{name}-x1", "{name}", "x1", "a chip", "{module}:backend", frozenset({"emit"}))]

def backend(info):
    if os.environ.pop("TILEFW_RING", ""):
        signal.raise_signal(signal.SIGUSR1)
    return ReferenceBackend(info)
"""


def test_a_signal_while_a_backend_is_made_is_no_fault_of_the_plugin(
    ringing: None, install, registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("toy", PLUGIN)
    target = registry.find("toy-x1")
    monkeypatch.setenv("TILEFW_RING", "1")
    with pytest.raises(Ring):
        _ = target.backend
    assert target.backend.target.name == "toy-x1"


def test_a_signal_while_text_is_read_or_a_constant_computed_passes(ringing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilefw.frontend.expressions import evaluate
    from tilefw.tile.text import module

    with pytest.raises(Ring):
        evaluate(busy)
    with monkeypatch.context() as patched, pytest.raises(Ring):
        patched.setattr(module.LocatedParser, "parse_module", lambda _: busy())
        module.parse("builtin.module {\n}\n", "a.mlir")
    with monkeypatch.context() as patched, pytest.raises(Ring):
        patched.setattr(module, "plainly_right", lambda *_: busy())
        module.parse("builtin.module {\n}\n", "a.mlir")
