"""A launch of a kernel whose configuration is chosen already: what it asks anew, and what it refuses."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import LaunchError
from tilefw.runtime.launcher import Launcher

X = np.zeros(8, np.float32)


@tilefw.jit
def kernel(x_ptr, y, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Launcher, "launch", lambda *args: None)
    monkeypatch.setattr(Launcher, "warm_up", lambda *args: None)
    monkeypatch.setenv("TILEFW_AUTOTUNE", "first")


def tuned_of(count: int) -> Any:
    return tilefw.autotune([tilefw.Config({"BLOCK": 8}, num_warps=2, maxnreg=64 + i) for i in range(count)], key=["n"])(kernel)


def calls_of_a_launch(tuned: Any) -> int:
    """Calls of Python functions, generators and comprehensions too, in a launch that was made before."""
    called: list[str] = []
    tuned[(1,)](X, 1, 5)
    sys.setprofile(lambda frame, event, argument: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        tuned[(1,)](X, 1, 5)
    finally:
        sys.setprofile(None)
    return len(called)


def test_a_launch_calls_at_most_one_function_for_each_configuration() -> None:
    assert calls_of_a_launch(tuned_of(32)) - calls_of_a_launch(tuned_of(2)) <= 30


@pytest.mark.parametrize(("given", "named"), [({"num_warps": 4}, "num_warps"), ({"BLOCK": 4, "maxnreg": 32}, "BLOCK, maxnreg")])
def test_a_launch_sets_nothing_that_a_configuration_chooses(given: dict[str, int], named: str) -> None:
    with pytest.raises(LaunchError, match=f"sets {named}, which autotune chooses"):
        tuned_of(2)[(1,)](X, 1, 5, **given)


def test_a_launch_may_set_a_keyword_that_no_configuration_has() -> None:
    tuned_of(2)[(1,)](X, 1, 5, num_stages=2)


class OwnType:
    """A type of elements that compares by what it is called, and so has no hash."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnType) and other.name == self.name

    def __str__(self) -> str:
        return self.name


class OwnArray:
    def __init__(self, name: str) -> None:
        self.dtype = OwnType(name)


def test_arrays_of_another_type_are_tuned_for_anew_with_or_without_a_hash() -> None:
    tuned = tuned_of(2)
    for array in (X, X.astype(np.float16), X.copy(), OwnArray("a"), OwnArray("b"), OwnArray("a")):
        tuned[(1,)](array, 1, 5)
    assert len(tuned.cache) == 4
