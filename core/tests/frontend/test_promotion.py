"""Promotion: an independent statement of the rules, checked for every pair of types, and against Triton where installed."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.semantics import broadcast_shapes, number_type, promote

TYPES = {name: getattr(tl, name) for name in (
    "int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
    "float8e5", "float8e4nv", "float8e4b15",
)}
RANKS = {"float64": 5, "float32": 4, "float16": 3, "bfloat16": 2}
CASES = list(itertools.product(TYPES, TYPES, (False, True), (False, True), (False, True)))


def expected(left: str, right: str, left_number: bool, right_number: bool, division: bool) -> str | None:
    """Triton's rules in another form: None where the operands have no common type."""
    kinds = ["bool" if t == "int1" else "int" if "int" in t else "float" for t in (left, right)]
    order = ["bool", "int", "float"]
    if left_number != right_number:
        number, tile = (0, 1) if left_number else (1, 0)
        if order.index(kinds[number]) <= order.index(kinds[tile]):
            left = right = (left, right)[tile]
            kinds = [kinds[tile]] * 2
    if "float" in kinds:
        if "float64" in (left, right):
            return "float64"
        if division or "float32" in (left, right):
            return "float32"
        ranked = [t for t in (left, right) if t in RANKS]
        if "float16" in ranked:
            return "float16"
        if ranked:
            return "bfloat16" if left == right else "float32"
        if kinds == ["float", "float"]:
            return left if left == right else "float16"
        return None
    signs = ["uint" if t.startswith("uint") or t == "int1" else "int" for t in (left, right)]
    widths = [int(t.lstrip("uint")) for t in (left, right)]
    if signs[0] == signs[1]:
        return (left, right)[widths[1] >= widths[0]]
    if division:
        return None
    unsigned = signs.index("uint")
    return (left, right)[unsigned if widths[unsigned] >= widths[1 - unsigned] else 1 - unsigned]


@pytest.mark.parametrize("division", [False, True])
def test_every_pair_promotes_by_the_rules(division: bool) -> None:
    for left, right, a, b, _ in CASES:
        wanted = expected(left, right, a, b, division)
        if wanted is None:
            with pytest.raises(CompileError):
                promote(TYPES[left], a, TYPES[right], b, division)
        else:
            assert promote(TYPES[left], a, TYPES[right], b, division) == TYPES[wanted], (left, right, a, b)


def test_every_pair_promotes_as_in_triton() -> None:
    triton = pytest.importorskip("triton", reason="Triton is not installed")
    from triton.language.semantic import TritonSemantic

    oracle = TritonSemantic(None)
    for left, right, a, b, division in CASES:
        theirs = [getattr(triton.language, name) for name in (left, right)]
        try:
            wanted = oracle.computation_type_impl(theirs[0], a, theirs[1], b, division).name
        except TypeError:
            wanted = None
        try:
            found = promote(TYPES[left], a, TYPES[right], b, division).name
        except CompileError:
            found = None
        assert found == wanted, (left, right, a, b, division)


@given(st.one_of(st.booleans(), st.integers(-(2**65), 2**65), st.floats()))
def test_numbers_have_the_type_that_triton_gives_them(number: float | int | bool) -> None:
    triton = pytest.importorskip("triton", reason="Triton is not installed")
    from triton.language.semantic import TritonSemantic

    assert triton.__version__.startswith("3.")
    try:
        wanted = TritonSemantic(None).to_tensor_type(number).name
    except ValueError:
        wanted = None
    try:
        found = number_type(number).name
    except CompileError:
        found = None
    assert found == wanted


def test_types_of_numbers() -> None:
    for number, type in [
        (True, tl.int1), (0, tl.int32), (-(2**31), tl.int32), (2**31 - 1, tl.int32), (2**31, tl.uint32), (2**32 - 1, tl.uint32),
        (2**32, tl.int64), (-(2**31) - 1, tl.int64), (2**63, tl.uint64), (2**64 - 1, tl.uint64), (0.0, tl.float32),
        (float("nan"), tl.float32), (float("-inf"), tl.float32), (1e-38, tl.float64), (3e38, tl.float32), (1e39, tl.float64),
    ]:
        assert number_type(number) == type, number
    for number in (2**64, -(2**63) - 1):
        with pytest.raises(CompileError, match="64 bits"):
            number_type(number)


shapes = st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=4).map(tuple)


@given(shapes, shapes)
def test_shapes_broadcast_as_in_numpy(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    import numpy as np

    try:
        wanted = np.broadcast_shapes(left, right)
    except ValueError:
        with pytest.raises(CompileError, match="do not broadcast"):
            broadcast_shapes(left, right)
        return
    assert broadcast_shapes(left, right) == wanted == broadcast_shapes(right, left)
