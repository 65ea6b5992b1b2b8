"""Comparisons of all types with all operators, and float classes, against Python."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

from cdna3.exact import FORMATS, crossed, flush, samples, specials, value
from cdna3.test_vector_integer import column, signed
from cdna3.vector import VECTOR, run
from tilefw_amd.isa.row import Mode

ORDERED = {"lt": operator.lt, "eq": operator.eq, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
NAMES = sorted(n for n in VECTOR if n.startswith("v_cmp_") and "class" not in n)


def float_truth(name: str, a: float, b: float) -> bool:
    """By the words of the manual: lg is less or greater, n a negation, o ordered, u unordered."""
    if name in ("f", "tru"):
        return name == "tru"
    if name in ("o", "u"):
        return (math.isnan(a) or math.isnan(b)) == (name == "u")
    if name == "lg":
        return a < b or a > b
    if name in ORDERED:
        return ORDERED[name](a, b)
    return a != b if name == "neq" else not float_truth(name[1:], a, b)


def integer_truth(name: str, a: int, b: int) -> bool:
    return {"f": False, "t": True, "ne": a != b}[name] if name in ("f", "t", "ne") else ORDERED[name](a, b)


@pytest.mark.parametrize("name", NAMES)
def test_operators_hold_as_pythons(name: str) -> None:
    _, _, op, kind = name.split("_")
    if kind[0] == "f":
        a, b = crossed(samples(kind, 60, 1), samples(kind, 60, 2), limit=4000)
    else:
        bits = int(kind[1:])
        a, b = crossed(column(bits, 1), column(bits, 2))
    found = run(name, a, b)
    with_exec, _ = run(name.replace("cmp", "cmpx"), a, b)
    assert (found == with_exec).all()
    for index, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if kind[0] == "f":
            wanted = float_truth(op, value(x, kind), value(y, kind))
        else:
            wanted = integer_truth(op, *((signed(v, bits) if kind[0] == "i" else v) for v in (x, y)))
        assert bool(found[index]) == wanted, (hex(x), hex(y))


@pytest.mark.parametrize("fmt", FORMATS)
def test_flushed_subnormals_equal_zero(fmt: str) -> None:
    a, b = crossed(np.array(specials(fmt), samples(fmt, 0).dtype), samples(fmt, 40))
    found = run(f"v_cmp_lt_{fmt}", a, b, mode=Mode(flush32=True, flush64=True))
    for index, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        assert bool(found[index]) == (value(flush(x, fmt), fmt) < value(flush(y, fmt), fmt))


def class_of(pattern: int, fmt: str) -> int:
    bits, mantissa, _ = FORMATS[fmt]
    x = value(pattern, fmt)
    negative, size = pattern >> (bits - 1), pattern & ((1 << (bits - 1)) - 1)
    if math.isnan(x):
        return size >> (mantissa - 1) & 1
    steps = 3 if math.isinf(x) else 0 if x == 0 else 1 if size < 1 << mantissa else 2
    return 5 - steps if negative else 6 + steps


@pytest.mark.parametrize("fmt", FORMATS)
def test_classes(fmt: str) -> None:
    patterns = samples(fmt, 200)
    for bit in (*range(10), None):
        mask = 0xFFFFFC00 if bit is None else 1 << bit
        found = run(f"v_cmp_class_{fmt}", patterns, np.full(len(patterns), mask, np.uint32))
        assert found.tolist() == [class_of(p, fmt) == bit for p in patterns.tolist()]
