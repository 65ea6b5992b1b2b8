"""Rows mean in a kernel what they mean in the table, where the language's own operators have other ideas."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

from tilefw.graph.builder import ModuleBuilder
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.meaning import run
from tilefw.graph.session import Session

WORDS = np.array([7, -7, 1 << 20, -(1 << 31), 0, 5, 6, 1], np.int32)
OTHERS = np.array([0, 2, 40, -1, 33, -3, 7, 1], np.int32)
FLOATS = np.array([0.7, -0.7, 1.5, -2.5, np.nan, 65519.0, 3.0004, 0.3], np.float32)
DIVISORS = np.array([3.0, 7.0, -1.1, 0.3, 1.0, 2.5, 11.0, -0.7], np.float32)


def of_integers(s, x, y):
    return [s(row, x, y) for row in ("divs", "rems", "divu", "remu", "shl", "shrs", "shru", "minu", "maxu", "ltu")]


def of_one_bit(s, x, y):
    bit, other = s("trunci", x, to="int1"), s("trunci", y, to="int1")
    signed = [s(row, bit, other) for row in ("lts", "les", "gts", "ges", "mins", "maxs")]
    return [*signed, s("exts", bit, to="int32"), s("extu", bit, to="int32"), s("s2f", bit, to="fp32"), s("u2f", bit, to="fp32")]


def of_casts(s, x, _y):
    half = s("castf", x, to="fp16")
    half.owner.properties["rounding"] = StringAttr("rtz")
    return [half, *(s(row, x, to=kind) for row in ("f2s", "f2u") for kind in ("int1", "int8", "int32"))]


def of_doubles(s, x, y):
    return [s("sqrt_rn", x), s("div_rn", x, y)]


def of_halves(s, x, y):
    """Each step is rounded to 16 bits."""
    quotient = s("div_rn", x, y)
    return [s("subf", s("mulf", quotient, 1.5), s("sqrt_rn", s("absf", y))), s("remf", x, y), s("floor", x)]


CASES = {
    "integers": (of_integers, "int32", WORDS, OTHERS), "one bit": (of_one_bit, "int32", WORDS, OTHERS),
    "casts": (of_casts, "fp32", FLOATS, DIVISORS), "doubles": (of_doubles, "fp64", FLOATS, DIVISORS),
    "halves": (of_halves, "fp16", FLOATS, DIVISORS),
}


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("case", CASES)
def test_a_kernel_computes_what_the_table_says(case, target):
    body, kind, *given = CASES[case]
    b = ModuleBuilder()
    values = b.fused_map(body, *(b.input(name, kind, (8,)) for name in "xy"))
    for place, value in enumerate(values):
        b.output(f"y{place}", value)
    module = b.module()
    held = [one.astype({"int32": "i4", "fp32": "f4", "fp64": "f8", "fp16": "f2"}[kind]) for one in given]
    wanted = run(module, [one.astype(np.float64) if kind.startswith("fp") else one for one in held])
    with Session(compile_graph(kernel_graph(module), target)) as session:
        found = session.run(dict(zip("xy", held, strict=True)))
    for array, due in zip(found.values(), wanted, strict=True):
        np.testing.assert_array_equal(array.astype(due.dtype), due)
