"""A launch like one before is the same launch; one before which anything changed that decides it is made anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.frontend.watched import Watched
from tilefw.runtime import launch_site
from tilefw.runtime.executor import executor_for
from tilefw.runtime.jit import JITFunction
from tilefw.runtime.plugins.loader import find_target

STEP = tl.constexpr(1)
SCALE = 1


@tilefw.constexpr_function
def scaled(x):
    return x * SCALE


@tilefw.constexpr_function
def halvings(x):
    return 0 if x <= 1 else 1 + halvings(x // 2)


@tilefw.jit
def stepped(x):
    return x + STEP


@tilefw.jit
def kernel(out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, stepped(at) * scaled(1), at < n)


@tilefw.jit
def plus_global(x):
    return x + 10


def launched(fn: Any = kernel, n: int = 4, block: int = 4, **keywords: Any) -> tuple[list[int], str]:
    out = np.zeros(block, np.int32)
    keywords.setdefault("target", "reference")
    result = fn[(1,)](out, n, BLOCK=block, **keywords)
    return out.tolist(), result.found


@pytest.fixture(autouse=True)
def warm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path))
    launched()
    launched()
    assert len(kernel.launcher.known) >= 1


def test_nothing_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> str:
        raise AssertionError("the kernel's key is made again")

    monkeypatch.setattr(JITFunction, "cache_key_source", refused)
    assert launched() == ([1, 2, 3, 4], "memory")
    with pytest.raises(AssertionError, match="made again"):
        launched(n=16)


def test_a_variable_that_decides_nothing_leaves_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    known = list(kernel.launcher.known.values())
    monkeypatch.setenv("SOMEBODYS_STEP", "1")
    assert launched()[1] == "memory" and list(kernel.launcher.known.values()) == known


def test_another_device_of_the_target_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    target = find_target("reference")
    device = executor_for(target, "sim").device
    monkeypatch.setattr(type(device), "checks", frozenset({"bounds"}))
    out = np.zeros(4, np.int32)
    assert kernel[(1,)](out, 4, BLOCK=4, target="reference").checks == {"bounds"}
    target.executors.clear()
    assert launched()[0] == [1, 2, 3, 4] and executor_for(target, "sim").device is not device


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("STEP", tl.constexpr(5), [5, 6, 7, 8]), ("stepped", plus_global, [10, 11, 12, 13]), ("SCALE", 3, [3, 6, 9, 12])],
)
def test_what_a_kernel_or_a_function_of_it_reads_may_change(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object, expected: list[int]
) -> None:
    monkeypatch.setitem(globals(), name, value)
    assert launched()[0] == expected
    monkeypatch.undo()
    assert launched() == ([1, 2, 3, 4], "memory")


def test_a_callee_may_get_another_text(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {"tl": tl, "tilefw": tilefw}
    exec("def callee(x):\n    return x", made)
    callee = made["callee"] = tilefw.jit(source="def callee(x):\n    return x")(made["callee"])
    monkeypatch.setitem(globals(), "stepped", callee)
    assert launched()[0] == [0, 1, 2, 3]
    callee._unsafe_update_src("def callee(x):\n    return x + 7")
    assert launched()[0] == [7, 8, 9, 10]


def in_closure() -> tuple[Any, Callable[[Any], None]]:
    value = tl.constexpr(1)

    @tilefw.jit
    def closed(out_ptr, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at, at * value, at < n)

    def set(new: Any) -> None:
        nonlocal value
        value = new

    return closed, set


def test_a_variable_of_a_closure_may_change() -> None:
    closed, set = in_closure()
    assert launched(closed)[0] == [0, 1, 2, 3] and launched(closed)[1] == "memory"
    set(tl.constexpr(2))
    assert launched(closed)[0] == [0, 2, 4, 6]


def test_equal_constants_of_two_types_are_two() -> None:
    @tilefw.jit
    def typed(out_ptr, n, BLOCK: tl.constexpr, WHAT: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at, 1 if isinstance(WHAT, bool) else 2, at < n)

    assert [launched(typed, WHAT=what)[0][0] for what in (1, True, 1, True)] == [2, 1, 2, 1]


def test_items_of_a_tuple_are_told_apart_by_their_types() -> None:
    @tilefw.jit
    def squared(out_ptr, WHAT: tl.constexpr):
        tl.store(out_ptr, WHAT[0] * WHAT[0])

    out = np.zeros(1, np.int32)
    squared[(1,)](out, (200,))
    assert out[0] == 40000
    with pytest.raises(tilefw.KernelError, match=r"not constexpr np\.uint8\(64\)"), np.errstate(over="ignore"):
        squared[(1,)](out, (np.uint8(200),))  # its square wraps in eight bits, and is no number of Python's


def test_what_the_grids_function_changes_is_seen() -> None:
    class TensorDescriptor:  # as any library's
        strides, padding, round_f32_to_tf32 = (1,), "zero", False

        def __init__(self, base: np.ndarray[Any, Any], block: int) -> None:
            self.base, self.shape, self.block_shape = base, base.shape, [block]

    @tilefw.jit
    def filled(desc):
        desc.store([0], tl.full(desc.block_shape, 1, tl.int32))

    def run(block: int, then: int) -> int:
        out = np.zeros(16, np.int32)
        desc = TensorDescriptor(out, block)

        def grid(_: Any) -> tuple[int]:
            desc.block_shape = [then]
            return (1,)

        filled[grid](desc)
        return int(out.sum())

    assert [run(4, 8), run(4, 4), run(8, 8)] == [8, 4, 8]


def test_a_keyword_that_is_an_object_is_kept_by_its_meaning() -> None:
    sites, known = kernel.launcher.sites, kernel.launcher.known
    assert launched(checks=["races"])[1] == "memory"
    count = len(known)
    assert launched(checks={"races"})[1] == "memory" and len(known) == count
    assert sites.find({"checks": ["races"]}) is sites.find({"checks": {"races"}})


def test_what_warmup_gives_is_launched_as_it_was_warmed_up() -> None:
    bad = np.zeros(3, np.int32)
    kernel[(1,)](bad, 3, BLOCK=4, checks="none")
    warm = kernel.warmup(bad, 4, BLOCK=4, grid=(1,), checks="all")
    with pytest.raises(tilefw.KernelError, match="out of the bounds of out_ptr"):
        warm[(1,)](bad, 4, 4)


def test_what_a_launch_gives_is_launched_with_the_keywords_of_that_launch() -> None:
    out, bad = np.zeros(4, np.int32), np.zeros(3, np.int32)
    kernel[(1,)](out, 4, BLOCK=4, checks="none")
    result = kernel[(1,)](out, 4, BLOCK=4, checks="all")
    for args, keywords in (((out, 4), {}), ((out, 4, 4), {}), ((out, 4), {"BLOCK": 4}), ((out,), {"n": 4, "BLOCK": 4})):
        out[:] = 0
        result[(1,)](*args, **keywords)
        assert out.tolist() == [1, 2, 3, 4]
    with pytest.raises(tilefw.KernelError, match="out of the bounds of out_ptr"):
        result[(1,)](bad, 4)


def test_a_new_text_is_that_of_the_debug_build_too() -> None:
    text = "def one(out_ptr):\n    tl.store(out_ptr, {})"
    made: dict[str, Any] = {"tl": tl}
    exec(text.format(1), made)
    one, out = tilefw.jit(source=text.format(1))(made["one"]), np.zeros(1, np.int32)
    for number in (1, 2):
        one._unsafe_update_src(text.format(number))
        one[(1,)](out, debug=True)
        assert out[0] == number


def test_the_environment_and_the_context_are_read_at_each_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    out = np.zeros(4, np.int32)
    monkeypatch.setenv("TILEFW_TARGET", "reference")
    assert kernel[(1,)](out, 4, BLOCK=4).target == "reference"
    monkeypatch.setenv("TILEFW_TARGET", "nowhere-1")
    with pytest.raises(tilefw.UsageError, match="nowhere-1"):
        kernel[(1,)](out, 4, BLOCK=4)
    with tilefw.target("reference", checks="none"):
        assert kernel[(1,)](out, 4, BLOCK=4).checks == frozenset()
    with tilefw.target("reference"):
        assert kernel[(1,)](out, 4, BLOCK=4).checks
    monkeypatch.setenv("TILEFW_CACHE", "0")
    assert [launched()[1] for _ in range(2)] == ["", ""]


def test_alignment_and_what_a_number_is_divided_by_are_told_apart() -> None:
    whole = np.zeros(64, np.int32)
    for first, n in ((0, 4), (1, 4), (0, 16), (4, 1), (1, 1)):
        whole[:] = 0
        kernel[(1,)](whole[first:], n, BLOCK=4, target="reference")
        assert np.flatnonzero(whole).tolist() == list(range(first, first + min(n, 4)))


def test_only_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_site, "LIMIT", 4)

    @tilefw.jit
    def counted(out_ptr, n, BLOCK: tl.constexpr, K: tl.constexpr):
        tl.store(out_ptr, K)

    for k in range(7):
        counted.warmup(np.zeros(1, np.int32), 1, BLOCK=1, K=k, grid=(1,), target="reference")
    assert len(counted.launcher.known) == 4
    oldest: Any = next(iter(counted.launcher.known))
    assert oldest[-1][-1] == 3


def test_hooks_get_every_keyword() -> None:
    seen = []

    @tilefw.jit
    def hooked(out_ptr, n, BLOCK: tl.constexpr):
        tl.store(out_ptr, n)

    hooked.add_pre_run_hook(lambda *args, **keywords: seen.append(keywords))
    hooked[(1,)](np.zeros(1, np.int32), n=3, BLOCK=1, target="reference")
    assert seen == [{"n": 3, "BLOCK": 1, "target": "reference"}]


def test_functions_that_call_themselves_have_a_key() -> None:
    @tilefw.jit
    def halved(out_ptr, n, BLOCK: tl.constexpr):
        tl.store(out_ptr, halvings(BLOCK))

    assert [launched(halved, block=16)[0][0] for _ in range(2)] == [4, 4]


def test_an_object_that_may_change_is_read_at_each_launch() -> None:
    class Shown:
        word = "first"

        def __str__(self) -> str:
            return self.word

    watched = Watched()
    tilefw.jit(source="def reads(x):\n    return shown")(_reading(Shown())).cache_key_source(watched)
    assert not watched.unchanged()


def _reading(shown: object) -> Any:
    made: dict[str, Any] = {"shown": shown}
    exec("def reads(x):\n    return shown", made)
    return made["reads"]


def test_the_kernel_of_a_launch_has_the_constants_and_the_target_of_that_launch():
    asked = [(4, "reference"), (8, "reference"), (4, "cpu"), (4, "reference")]
    results = []
    for block, target in asked:
        results.append(kernel[(1,)](np.zeros(8, np.int32), 8, BLOCK=block, target=target))
    assert results[0].target == results[3].target != results[2].target
    for (block, _), result in zip(asked, results, strict=True):
        out = np.zeros(8, np.int32)
        again = result[(1,)](out, 8)
        assert (np.count_nonzero(out), again.target) == (block, result.target)
