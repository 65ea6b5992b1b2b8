"""A launch that is put on the processor at once does what one does that goes the general way, and goes that way where it must."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.runtime.launcher import run_at

SHIFT = tl.constexpr(1)


@tilefw.jit
def moved(x, out, n, step, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * step + SHIFT, mask=at < n)


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The launches that go the general way."""
    seen: list[Any] = []

    def told(*args: Any) -> Any:
        seen.append(args)
        return run_at(*args)

    monkeypatch.setattr("tilefw.runtime.launcher.run_at", told)
    yield seen


def run(x: Any, out: Any, n: int, step: float = 2.0, **keywords: Any) -> Any:
    return moved[(2,)](x, out, n, step, BLOCK=8, **keywords)


X = np.arange(16, dtype=np.float32)


def test_only_what_is_new_goes_the_general_way(general: list[Any]) -> None:
    out = np.zeros(16, np.float32)
    results = [run(X, out, n, step) for n, step in ((9, 2.0), (10, 3.0), (16, 2.0), (16, 4.0), (10, 5.0))]
    assert len(general) == 2  # a size that 16 divides is another specialisation
    assert out.tolist() == [*(X[:10] * 5 + 1), *(X[10:] * 4 + 1)]
    assert {result.executor for result in results} == {"hw"} and list(results[0].times)[-3:] == list(results[-1].times)[-3:]
    run(X, out[8:], 8)
    assert len(general) == 2
    run(out, out, 8)  # not disjoint
    run(out, out, 8)
    assert len(general) == 3 and out[8:].tolist() == (X[:8] * 2 + 1).tolist()
    general.clear()
    run(X, out, 9, num_warps=4)
    with tilefw.target("cpu", seed=3):
        run(X, out, 9)
    run(X, out, 9)
    assert len(general) == 2


def test_what_a_kernel_must_not_write_goes_the_general_way(general: list[Any]) -> None:
    fixed, out = X.copy(), np.zeros(16, np.float32)
    run(fixed, out, 9)
    fixed.flags.writeable = False
    general.clear()
    run(fixed, out, 9)
    out.flags.writeable = False
    with pytest.raises(tilefw.api.errors.LaunchError, match="read-only"):
        run(X, out, 9, 7.0)
    assert len(general) == 2


def test_a_global_that_changes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    out = np.zeros(16, np.float32)
    run(X, out, 9)
    run(X, out, 9)
    monkeypatch.setitem(moved.fn.__globals__, "SHIFT", tl.constexpr(100))
    run(X, out, 9)
    assert out[:9].tolist() == (X[:9] * 2 + 100).tolist()


def test_who_takes_the_code_away_has_it_again() -> None:
    out = np.zeros(16, np.float32)
    run(X, out, 9)
    moved.device_caches[0][0].clear()
    run(X, out, 9)
    assert len(moved.device_caches[0][0]) == 1


def test_a_number_that_does_not_fit_is_told(general: list[Any]) -> None:
    out = np.zeros(16, np.float32)
    run(X, out, 9, 1.0)
    general.clear()
    run(X, out, 9, 1e300)  # infinity as a number of 32 bits, as the general way has it
    assert len(general) == 1 and np.isinf(out[1])


def test_empty_grids_and_checks_go_the_general_way(general: list[Any]) -> None:
    out = np.zeros(16, np.float32)
    run(X, out, 9)
    general.clear()
    moved[(0,)](X, out, 9, 2.0, BLOCK=8)
    run(X, out, 9, checks="bounds")
    assert len(general) == 2
    with pytest.raises(tilefw.CheckError, match="out of bounds"):
        moved[(2,)](X, out[:4].copy(), 9, 2.0, BLOCK=8, checks="bounds")


def test_threads_launch_side_by_side() -> None:
    run(X, np.zeros(16, np.float32), 9)
    wrong: list[int] = []

    def work(number: int) -> None:
        with tilefw.target("cpu"):
            out = np.zeros(16, np.float32)
            for turn in range(200):
                run(X, out, 9, float(number + turn))
                if out[3] != 3 * (number + turn) + 1:
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
