"""The cache key changes with everything that changes the code, and with nothing else."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
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


ALSO_ASSIGNED = """N = tl.constexpr({value})


@tilefw.jit
def kernel(x_ptr, n, FLAG: tl.constexpr = False):
    {body}
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
def helper(x, F: tl.constexpr = limit):
    return x + F()


@tilefw.jit
def kernel(x_ptr, n):
    tl.store(x_ptr, CALLED)
"""

    def value(names: dict[str, Any]) -> None:
        names["settings"].LIMIT = 2

    def default(names: dict[str, Any]) -> None:
        names["limit"].fn.__defaults__ = (1,)

    def keyword(names: dict[str, Any]) -> None:
        names["limit"].fn.__kwdefaults__["y"] = 1

    def keywords(names: dict[str, Any]) -> None:
        names["limit"].fn.__kwdefaults__ = {"y": 1}

    for change, called in product((value, default, keyword, keywords), ("limit()", "helper(n)")):
        names, watched = load(text.replace("CALLED", called), "kernel.py"), Watched()
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


HOST = """import enum
import functools
import types


class Base:
    DEPTH = 1


class Settings(Base):
    WIDTH = 2
    SCALES = {"small": [3], "large": frozenset({"a", "b"})}

    @property
    def height(self):
        return self.rows + 4

    @staticmethod
    def area(x):
        return x + 5

    def __init__(self, rows):
        self.rows, self.later = rows, 17

    def __call__(self):
        return self._inner() + 6

    def _inner(self):
        return HIDDEN

    @functools.cached_property
    def lazy(self):
        return self.later + 16


class Mode(enum.Enum):
    FAST = 7


class Slotted:
    __slots__ = ("size", "__own")

    def __init__(self):
        self.size = 8
        self.__own = 15

    def own(self):
        return self.__own


HIDDEN = 9
given, slotted = Settings(10), Slotted()
outer = types.ModuleType("outer")
outer.inner = types.ModuleType("outer.inner")
outer.inner.LIMIT = 11
outer.inner.read = lambda: outer.inner.LIMIT + outer.inner.DEEP
outer.inner.DEEP = 12


@functools.lru_cache
def cached(x):
    return x + 13


@constexpr_function
def host(name="WIDTH"):
    if name in {"WIDTH", "DEPTH", "other"}:
        return getattr(Settings, "DEPTH") + Settings.WIDTH + Settings.SCALES["small"][0] + Settings.area(1)
    found = given.height + given() + given.lazy + slotted.size + slotted.own()
    return found + Mode.FAST.value + outer.inner.read() + cached(0) + later(0)


later = functools.partial(lambda x, y: x + y, 14)


@tilefw.jit
def kernel(x_ptr, n):
    tl.store(x_ptr, host())
"""


@pytest.mark.parametrize("number", range(1, 18))
def test_the_key_sees_what_host_functions_read_of_classes_objects_and_modules(
    number: int, load: Callable[..., dict[str, Any]]
) -> None:
    changed = re.sub(rf"\b{number}\b", "99", HOST, count=1)
    assert changed != HOST and key(load, changed) != key(load, HOST)


def test_the_key_follows_classes_and_objects_that_change_later(load: Callable[..., dict[str, Any]]) -> None:
    names, watched = load(HOST, "kernel.py"), Watched()
    seen = {names["kernel"].cache_key_source(watched)}
    changed = (("Settings", "WIDTH"), ("Base", "DEPTH"), ("given", "rows"), ("given", "later"), ("slotted", "size"))
    for owner, name in (*changed, ("slotted", "_Slotted__own")):
        setattr(names[owner], name, 20)
        assert not watched.unchanged()
        seen.add(names["kernel"].cache_key_source())
    names["Settings"].SCALES["small"][0] = 4
    seen.add(names["kernel"].cache_key_source())
    assert len(seen) == 8
    names["Settings"].uncalled = lambda: 21
    assert names["kernel"].cache_key_source() in seen


def test_the_key_sees_modules_imported_inside_a_function(
    load: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "imported_inside").mkdir()
    (tmp_path / "imported_inside" / "__init__.py").write_text("FIRST = 1\n")
    (tmp_path / "imported_inside" / "sizes.py").write_text("WIDTH = 2\n\ndef width():\n    return WIDTH\n")
    for statement, used in (
        ("import imported_inside.sizes as s", "s.WIDTH"),
        ("from imported_inside.sizes import width", "width()"),
        ("from imported_inside import sizes", "sizes.width()"),
        ("import imported_inside", "imported_inside.FIRST"),
    ):
        text = f"@constexpr_function\ndef host():\n    {statement}\n    return {used}\n\n" + HOST[HOST.index("@tilefw.jit"):]
        for module in [name for name in sys.modules if name.startswith("imported_inside")]:
            monkeypatch.delitem(sys.modules, module)
        names, watched = load(text, "kernel.py"), Watched()
        before = names["kernel"].cache_key_source(watched)
        assert watched.unchanged()
        module = importlib.import_module("imported_inside" if "FIRST" in used else "imported_inside.sizes")
        monkeypatch.setattr(module, "FIRST" if "FIRST" in used else "WIDTH", 5)
        assert not watched.unchanged() and names["kernel"].cache_key_source() != before


def test_the_key_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import tilefw\nimport tilefw.language as tl\nfrom tilefw.runtime.compilation.kernel_source import stable\n"
        "constexpr_function = tilefw.constexpr_function\n" + HOST + "\nprint(kernel.cache_key_source())\n"
        "print(stable(frozenset({'a', 'b', 'c'})), stable({'a': {'x', 'y', 'z'}}))\n"
    )
    said = set()
    for seed in "12":
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        said.add(subprocess.check_output([sys.executable, "program.py"], cwd=tmp_path, env=environment, text=True))
    assert len(said) == 1


def test_objects_that_all_know_one_another_are_told_once_each(load: Callable[..., dict[str, Any]]) -> None:
    text = """class Node:
    pass


nodes = [Node() for _ in range(30)]
for number, node in enumerate(nodes):
    node.number, node.links = number, [other for other in nodes if other is not node]


@constexpr_function
def host():
    return nodes[0].links[1].links[2].number


@tilefw.jit
def kernel(x_ptr, n):
    tl.store(x_ptr, host())
"""
    names = load(text, "kernel.py")
    before = names["kernel"].cache_key_source()
    names["nodes"][29].number = 50
    assert names["kernel"].cache_key_source() != before


@pytest.mark.parametrize("body", [
    "n = n + N\n    N: tl.constexpr = 4\n    tl.store(x_ptr, n + N)",
    "N = N + 1\n    tl.store(x_ptr, N)",
    "if FLAG:\n        N = 4\n    tl.store(x_ptr, n + N)",
    "taken = [N for N in (1, 2)]\n    tl.store(x_ptr, n + N + taken[0])",
    "for i in range(n):\n        tl.store(x_ptr, N)\n        N = i",
])
def test_a_global_that_a_kernel_may_read_before_it_assigns_the_name_counts(load: Callable[..., dict[str, Any]], body: str) -> None:
    assert key(load, ALSO_ASSIGNED.format(value=3, body=body)) != key(load, ALSO_ASSIGNED.format(value=4, body=body))


@pytest.mark.parametrize("body", [
    "N = n + 1\n    tl.store(x_ptr, N)",
    "if FLAG:\n        N = 4\n    else:\n        N = n\n    tl.store(x_ptr, N)",
    "for N in range(n):\n        tl.store(x_ptr, N)",
    "tl.store(x_ptr, sum([N for N in (1, 2)]))",
])
def test_a_global_whose_name_the_kernel_has_assigned_does_not(load: Callable[..., dict[str, Any]], body: str) -> None:
    assert key(load, ALSO_ASSIGNED.format(value=3, body=body)) == key(load, ALSO_ASSIGNED.format(value=4, body=body))
