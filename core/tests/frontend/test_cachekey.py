"""The cache key changes with everything that changes the code, and with nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tilefw.frontend.watched import Watched

BASE = """import types

N = tl.constexpr(3)


OFFSET, INNER = 0, 11
settings = types.ModuleType("settings")
settings.deeper = types.ModuleType("settings.deeper")
settings.deeper.LIMIT = 12


def plain(x, y=13, *, z=14):
    return x + OFFSET + y + z + sum(INNER for _ in range(x)) + settings.deeper.LIMIT


@constexpr_function
def twice(x):
    return 2 * plain(x)


WRAPPED = tl.constexpr(lambda x: x + 7)
NAME = tl.constexpr("abc")


@tilefw.jit
def helper(y, k=2):
    return y * k + N


@tilefw.jit
def kernel(x_ptr, n):
    tl.static_assert(NAME.upper() != "")
    tl.store(x_ptr, helper(n) + twice(1) + WRAPPED(1) + math.pi)
"""


def key(load: Callable[..., dict[str, Any]], text: str = BASE, file: str = "kernel.py") -> str:
    return load(text, file)["kernel"].cache_key_source()


def test_equal_sources_have_equal_keys(load: Callable[..., dict[str, Any]]) -> None:
    assert key(load) == key(load)


@pytest.mark.parametrize(("old", "new"), [
    ("helper(n) +", "helper(n) -"),
    ("y * k", "y - k"),
    ("constexpr(3)", "constexpr(4)"),
    ("constexpr(3)", "constexpr(3.0)"),
    ("2 * plain", "3 * plain"),
    ("x + 7", "x + 8"),
    ("= 0, 11", "= 1, 11"),
    ("x + OFFSET", "x - OFFSET"),
    ("y=13", "y=3"),
    ("z=14", "z=4"),
    ("0, 11", "0, 10"),
    ("LIMIT = 12", "LIMIT = 2"),
    ('"abc"', '"abd"'),
    ("k=2", "k=3"),
    ("math.pi", "math.e"),
    ("def kernel", "\n\ndef kernel"),
])
def test_the_key_sees_text_callees_and_globals(old: str, new: str, load: Callable[..., dict[str, Any]]) -> None:
    assert BASE.count(old) == 1
    assert key(load) != key(load, BASE.replace(old, new))


def test_the_key_sees_the_file(load: Callable[..., dict[str, Any]]) -> None:
    assert key(load) != key(load, file="other.py")


def test_the_key_follows_a_global_that_changes_later(load: Callable[..., dict[str, Any]]) -> None:
    names = load(BASE)
    before = names["kernel"].cache_key_source()
    names["N"] = type(names["N"])(5)
    assert names["kernel"].cache_key_source() != before
    names["N"] = type(names["N"])(3)
    assert names["kernel"].cache_key_source() == before


def test_a_launch_is_no_longer_known_once_a_default_or_a_value_of_a_module_changes(load: Callable[..., dict[str, Any]]) -> None:
    text = """import types

settings = types.ModuleType("settings")
settings.LIMIT = 1


@constexpr_function
def limit(x=0, *, y=0):
    return settings.LIMIT + x + y


@tilefw.jit
def kernel(x_ptr, n):
    tl.store(x_ptr, limit())
"""

    def value(names: dict[str, Any]) -> None:
        names["settings"].LIMIT = 2

    def default(names: dict[str, Any]) -> None:
        names["limit"].fn.__defaults__ = (1,)

    def keyword(names: dict[str, Any]) -> None:
        names["limit"].fn.__kwdefaults__["y"] = 1

    for change in (value, default, keyword):
        names, watched = load(text, "kernel.py"), Watched()
        before = names["kernel"].cache_key_source(watched)
        assert watched.unchanged()
        change(names)
        assert not watched.unchanged() and names["kernel"].cache_key_source() != before


def test_unrelated_globals_do_not_count(load: Callable[..., dict[str, Any]]) -> None:
    names = load(BASE)
    before = names["kernel"].cache_key_source()
    names["unrelated"] = object()
    assert names["kernel"].cache_key_source() == before


def test_locals_hide_globals(load: Callable[..., dict[str, Any]]) -> None:
    names = load("@tilefw.jit\ndef kernel(x_ptr, n):\n    total = n\n    tl.store(x_ptr, total)\n")
    before = names["kernel"].cache_key_source()
    names["total"] = 5
    assert names["kernel"].cache_key_source() == before


def test_recursion_ends(load: Callable[..., dict[str, Any]]) -> None:
    text = """@tilefw.jit
def even(x, D: tl.constexpr):
    return x if D == 0 else odd(x, D - 1)


@tilefw.jit
def odd(x, D: tl.constexpr):
    return even(x, D - 1)


@tilefw.jit
def kernel(x_ptr, n):
    tl.store(x_ptr, even(n, 4))
"""
    assert key(load, text) != key(load, text.replace("D == 0", "D == 2"))


def test_making_a_key_loads_no_xdsl_and_no_numpy() -> None:
    program = (
        "import sys, tilefw, tilefw.language as tl\n"
        "text = 'def kernel(x_ptr, n):\\n    tl.store(x_ptr, n)\\n'\n"
        "names = {'tl': tl}\n"
        "exec(text, names)\n"
        "tilefw.jit(source=text)(names['kernel']).cache_key_source()\n"
        "print([m for m in ('xdsl', 'numpy') if m in sys.modules])\n"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
