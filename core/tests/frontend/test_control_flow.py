"""Control flow, held against Python itself: random programs of ifs, loops, early returns and calls give what Python gives.

A program works on three int32 scalars with arithmetic that Python and the device share (additions, small products,
bits), and stores them at its end. It is executed twice: as tile IR by the reference interpreter, and as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilefw.frontend import build_module

NAMES = ("a", "b", "c")
LOAD = Callable[..., dict[str, Any]]


def atoms() -> st.SearchStrategy[str]:
    return st.sampled_from([*NAMES, "n", "1", "3", "7"])


def expressions() -> st.SearchStrategy[str]:
    binary = st.tuples(atoms(), st.sampled_from(["+", "-", "&", "|", "^"]), atoms()).map(" ".join)
    call = st.tuples(st.sampled_from(["helper({})", "early({})", "pair({})[1]"]), atoms()).map(lambda t: t[0].format(t[1]))
    choice = st.tuples(atoms(), conditions(), atoms()).map(lambda t: f"({t[0]} + 0) if {t[1]} else ({t[2]} + 0)")
    return st.one_of(binary, atoms().map(lambda a: f"({a} & 15) * 3"), call, choice)


def conditions() -> st.SearchStrategy[str]:
    simple = st.tuples(atoms(), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.sampled_from([*NAMES, "n"])).map(" ".join)
    both = st.tuples(simple, st.sampled_from(["and", "or"]), simple).map(" ".join)
    return st.one_of(simple, both, simple.map(lambda c: f"not ({c})"))


def indent(block: str) -> str:
    return "".join(f"    {line}\n" for line in block.splitlines())


def statements(depth: int, returns: bool) -> st.SearchStrategy[str]:
    assign = st.tuples(st.sampled_from(NAMES), expressions()).map(lambda t: f"{t[0]} = ({t[1]}) & 1023\n")
    swap = st.permutations(NAMES).map(lambda p: f"{', '.join(NAMES)} = {', '.join(p)}\n")
    options = [assign, assign, assign, swap]
    if depth:
        body = st.lists(statements(depth - 1, returns), min_size=1, max_size=3).map("".join)
        inner = st.lists(statements(depth - 1, False), min_size=1, max_size=3).map("".join)
        options += [
            st.tuples(conditions(), body).map(lambda t: f"if {t[0]}:\n{indent(t[1])}"),
            st.tuples(conditions(), body, body).map(lambda t: f"if {t[0]}:\n{indent(t[1])}else:\n{indent(t[2])}"),
            st.tuples(conditions(), body, conditions(), body).map(
                lambda t: f"if {t[0]}:\n{indent(t[1])}elif {t[2]}:\n{indent(t[3])}"),
            st.tuples(st.sampled_from(["n & 3", "1, 5, 2", "5, 0, -2", "a & 3"]), inner).map(
                lambda t: f"for i in range({t[0]}):\n{indent('a = (a + i) & 1023' + chr(10) + t[1])}"),
            st.tuples(st.integers(1, 3), body).map(
                lambda t: f"for k in tl.static_range({t[0]}):\n{indent('b = b ^ k' + chr(10) + t[1])}"),
            inner.map(lambda block: f"t = n & 3\nwhile t > 0:\n{indent(block + 't = t - 1' + chr(10))}"),
        ]
        if returns:
            options.append(conditions().map(lambda c: f"if {c}:\n    out(a, b, c)\n    return\n"))
            options.append(st.tuples(conditions(), body).map(
                lambda t: f"if {t[0]}:\n{indent(t[1])}    out(a, b, c)\n    return\n"))
    return st.one_of(options)


HELPERS = """{jit}
def helper(y):
    y = y + 1
    if y > 5:
        y = y - 3
    return y


{jit}
def early(y):
    if y > 9:
        return y & 7
    elif y > 4:
        if y == 6:
            return 0
        y = y + 2
    return y * 2


{jit}
def pair(y):
    if y & 1 == 1:
        return 1, y
    return 0, y + 1


{out}

{jit}
def kernel(x_ptr, n):
    a = n
    b = n * 3
    c = 0
    t = 0
{body}    out(a, b, c)
"""
OUR_OUT = """@tilefw.jit
def store(x_ptr, a, b, c):
    tl.store(x_ptr, a)
    tl.store(x_ptr + 1, b)
    tl.store(x_ptr + 2, c)
"""


def device_text(body: str) -> str:
    text = HELPERS.format(jit="@tilefw.jit", out=OUR_OUT, body=indent(body))
    return text.replace("out(a, b, c)", "store(x_ptr, a, b, c)")


def python_result(body: str, n: int) -> list[int]:
    text = HELPERS.format(jit="", out="", body=indent(body)).replace("def kernel(x_ptr, n)", "def kernel(out, n)")
    text = text.replace("tl.static_range", "range")
    names: dict[str, Any] = {}
    exec(text, names)
    stored: list[int] = []
    names["kernel"](lambda *values: stored.extend(values) if not stored else None, n)
    return stored


def device_result(module: Any, n: int) -> list[int]:
    from tilefw.tile.reference import interpret
    from tilefw.tile.reference.memory import RefMemory

    memory = RefMemory()
    buffer = memory.allocate(12)
    buffer.write_bytes(np.zeros(12, np.uint8))
    report = interpret.run(module, None, (1, 1, 1), [buffer, n], memory=memory)
    assert not report.findings
    return np.frombuffer(buffer.read_bytes(12), np.int32).tolist()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.lists(statements(2, True), min_size=1, max_size=4).map("".join))
def test_random_programs_do_what_python_does(body: str, load: LOAD) -> None:
    module = build_module(load(device_text(body))["kernel"], {"x_ptr": "*i32", "n": "i32"}, {})
    module.verify()
    for n in (0, 1, 5, 6, 11):
        assert device_result(module, n) == python_result(body, n), (n, body)


@pytest.mark.parametrize("body", [
    "if n > 5:\n    if n > 10:\n        out(a, b, c)\n        return\n    a = 1\nelse:\n    a = 2\nb = a\n",
    "for k in tl.static_range(4):\n    if n == k:\n        out(a, b, c)\n        return\n    a = a + k\n",
    "for i in range(n):\n    a, b = b, a\n    if i > 2:\n        c = a\n",
    "while c < n and a < 100:\n    c = c + 1\n    for i in range(c):\n        a = a + 1\n",
    "for i in range(5, 0, -2):\n    c = c * 2 + i\n",
    "if n > 3:\n    pass\nelif n > 0:\n    out(a, b, c)\n    return\nc = 5\n",
])
def test_chosen_programs_do_what_python_does(body: str, load: LOAD) -> None:
    module = build_module(load(device_text(body))["kernel"], {"x_ptr": "*i32", "n": "i32"}, {})
    module.verify()
    for n in range(12):
        assert device_result(module, n) == python_result(body, n), n
