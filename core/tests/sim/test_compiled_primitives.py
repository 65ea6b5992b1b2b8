"""Every primitive that has lines gives, compiled, the bits that NumPy's form gives: rounding, flushing, clamping, edges and NaN."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tilefw.sim.algebra.recording import RecordingLanes
from tilefw.sim.compiled.nests import PrintedLanes, has_lines
from tilefw.testing.compiled_rows import disagreements

pytest.importorskip("llvmlite")

WIDTHS = (8, 16, 32, 64)
FLOATS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
FORMATS = {
    **FLOATS, "tf32": 32, "f8E5M2": 8, "f8E4M3FN": 8, "f8E5M2FNUZ": 8, "f8E4M3FNUZ": 8, "f6E3M2FN": 8, "f6E2M3FN": 8, "f4E2M1FN": 8,
    "f8E8M0FNU": 8,
}
MODES = ("rn", "rz", "rm", "rp")
SATURATIONS: tuple[dict[str, Any], ...] = ({}, {"ftz": True}, {"saturate": "unit"}, {"saturate": "finite"}, {"relu": True})
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
# In an ordinary run; the mark `campaign` has them all.
SHARE = 120

Case = tuple[str, tuple[int, ...], tuple[Any, ...], dict[str, Any]]
"""A primitive, the widths of its values, and what it takes behind them."""


def meaning(name: str, joined: bool, behind: tuple[Any, ...], keywords: dict[str, Any], lanes: Any, *values: Any) -> Any:
    return getattr(lanes, name)(*([values] if joined else values), *behind, **keywords)


def made(case: Case) -> Callable[..., Any]:
    name, _, behind, keywords = case
    return partial(meaning, name, name == "join", behind, keywords)


def integers() -> Iterator[Case]:
    for bits in WIDTHS:
        for name in ("add", "sub", "mul", "and_", "or_", "xor"):
            yield name, (bits, bits), (), {}
        for name in ("neg", "abs", "not_"):
            yield name, (bits,), (), {}
        for signed in (False, True):
            for name in ("div", "rem", "min", "max", "add_saturate", "sub_saturate"):
                yield name, (bits, bits), (signed,), {}
            yield "shr", (bits, 32), (signed,), {}
            if bits < 64:
                yield "mul_wide", (bits, bits), (signed,), {}
            if bits > 8:
                yield "mul_high", (bits, bits), (signed,), {}
            for op in COMPARISONS:
                yield "compare", (bits, bits), (op, signed), {}
        yield "shl", (bits, 32), (), {}
        yield "add_carry", (bits, bits, 1), (), {}
        yield "sub_borrow", (bits, bits, 1), (), {}
        yield "select", (1, bits, bits), (), {}
        yield "lookup3", (bits, bits, bits), (0xB2,), {}
        yield "truncate", (bits,), (1,), {}
        for other in WIDTHS:
            if other > bits:
                yield "zero_extend", (bits,), (other,), {}
                yield "sign_extend", (bits,), (other,), {}
                yield "zero_extend", (1,), (other,), {}
                yield "sign_extend", (1,), (other,), {}
                yield "truncate", (other,), (bits,), {}
                yield "split", (other,), (bits,), {}
                yield "join", (bits,) * (other // bits), (), {}
    for bits in (32, 64):
        for name in ("popcount", "leading_zeros", "reverse_bits"):
            yield name, (bits,), (), {}
    yield "permute_bytes", (32, 32, 32), (), {}
    for name in ("and_", "or_", "xor"):
        yield name, (1, 1), (), {}
    yield "not_", (1,), (), {}
    yield "select", (1, 1, 1), (), {}


def floats() -> Iterator[Case]:
    for fmt, bits in FLOATS.items():
        for ftz in (False, True):
            keywords = {"fmt": fmt, "ftz": ftz}
            for rounding in MODES:
                for saturate in (False, True):
                    how = {**keywords, "rounding": rounding, "saturate": saturate}
                    for name in ("fadd", "fsub", "fmul"):
                        yield name, (bits, bits), (), how
                    yield "ffma", (bits, bits, bits), (), how
            yield "fdiv", (bits, bits), (), keywords
            for name in ("fsqrt", "fneg", "fabs"):
                yield name, (bits,), (), keywords
            for nan in (False, True):
                yield "fmin", (bits, bits), (), {**keywords, "nan": nan}
                yield "fmax", (bits, bits), (), {**keywords, "nan": nan}
            for op in (*COMPARISONS, "num", "nan"):
                for unordered in (False, True):
                    yield "fcompare", (bits, bits), (op,), {**keywords, "unordered": unordered}
            for function in ("rcp", "rsqrt", "sqrt"):
                yield "fapprox", (bits,), (function,), keywords
            for rounding in (*MODES, "rna"):
                yield "fround", (bits,), (), {**keywords, "rounding": rounding}
                for whole in WIDTHS:
                    for signed in (False, True):
                        yield "float_to_int", (bits,), (), {**keywords, "bits": whole, "signed": signed, "rounding": rounding}
        for kind in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield "fclass", (bits,), (kind, fmt), {}
        for whole in WIDTHS:
            for signed in (False, True):
                for rounding in MODES:
                    yield "int_to_float", (whole,), (signed, fmt, rounding), {}
    for source, bits in FORMATS.items():
        for to in FORMATS:
            for rounding in (*MODES, "rna"):
                for how in SATURATIONS:
                    yield "fconvert", (bits,), (source, to, rounding), how


CASES = [*integers(), *floats()]


@pytest.mark.parametrize("case", random.Random(7).sample(CASES, SHARE), ids=str)
def test_a_primitive_means_the_same_compiled(case: Case) -> None:
    assert disagreements(made(case), case[1], count=96) in ([], None)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(16))
def test_every_primitive_means_the_same_compiled(part: int) -> None:
    wrong = [(case, found) for case in CASES[part::16] if (found := disagreements(made(case), case[1]))]
    assert wrong == []


def test_the_cases_cover_every_primitive_that_has_lines() -> None:
    """And nearly all of them do have some: a refusal for the wrong reason would hide behind `None`."""
    printed = {name for name in dir(PrintedLanes) if not name.startswith("_")} - {"lines", "const", "undefined"}
    assert {case[0] for case in CASES} == printed
    lanes = RecordingLanes(8)
    without = [case for case in CASES if not _compiled(case, lanes)]
    assert {case[0] for case in without} <= {"fconvert", "fadd", "fsub", "fmul", "ffma", "int_to_float", "fround"}
    assert len(without) < len(CASES) / 4


def test_a_value_may_be_passed_by_its_name() -> None:
    lanes: Any = RecordingLanes(8)
    a, b = lanes.symbol(32), lanes.symbol(32)
    lanes.shl(a, amount=b)
    lanes.join(parts=[a, b])
    assert _all_have_lines(lanes)


def _compiled(case: Case, lanes: RecordingLanes) -> bool:
    lanes.steps.clear()
    made(case)(lanes, *map(lanes.symbol, case[1]))
    return _all_have_lines(lanes)


def _all_have_lines(lanes: RecordingLanes) -> bool:
    return all(map(has_lines, lanes.steps))
