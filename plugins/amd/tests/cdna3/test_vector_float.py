"""Float sums, products, minima and maxima against exact fractions, in every rounding mode, with special values and flushing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from cdna3.exact import FORMATS, NAN, crossed, flush, fused, pattern, product, same, samples, value
from cdna3.vector import run
from tilefw_amd.isa.row import Mode

ROUNDINGS = ("rn", "rz", "rp", "rm")
COUNTS = {"f16": 400, "f32": 400, "f64": 150}


def mode_of(rounding: str, flushes: bool) -> Mode:
    return Mode(rounding, rounding, flushes, flushes)


def columns(fmt: str, count: int, limit: int | None = None) -> tuple[np.ndarray, ...]:
    return crossed(*(samples(fmt, COUNTS[fmt], seed) for seed in range(count)), limit=limit or (3000 if fmt != "f64" else 800))


def check(
    name: str, fmt: str, given: tuple[np.ndarray, ...], reference: Callable[..., int], mode: Mode, flushes: bool = False
) -> None:
    """The row's results are the reference's on patterns, flushed before and after where the mode flushes."""
    found = run(name, *given, mode=mode)
    for index, sources in enumerate(zip(*(c.tolist() for c in given), strict=True)):
        numbers = [value(flush(s, fmt) if flushes else s, fmt) for s in sources]
        wanted = reference(*numbers)
        wanted = flush(wanted, fmt) if flushes else wanted
        assert same(int(found[index]), fmt) == wanted, (name, mode, [hex(s) for s in sources])


def total(a: float, b: float, fmt: str, rounding: str) -> int:
    return fused(a, 1.0, b, fmt, rounding)


BINARY = {"add": lambda a, b, f, r: total(a, b, f, r), "sub": lambda a, b, f, r: total(a, -b, f, r),
          "subrev": lambda a, b, f, r: total(b, -a, f, r), "mul": product}


@pytest.mark.parametrize("flushes", [False, True])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("fmt", FORMATS)
def test_sums_and_products_are_rounded_once(fmt: str, rounding: str, flushes: bool) -> None:
    given = columns(fmt, 2, 1500 if fmt != "f64" else 300)
    for name, reference in BINARY.items():
        if fmt == "f64" and name.startswith("sub"):
            continue
        check(f"v_{name}_{fmt}", fmt, given, lambda a, b, f=reference: f(a, b, fmt, rounding), mode_of(rounding, flushes), flushes)


# The order of the written sources, then d's old value: (a, b, c) of a * b + c.
FUSED = {
    "v_fma_f16": (0, 1, 2), "v_fma_legacy_f16": (0, 1, 2), "v_fma_f32": (0, 1, 2), "v_fma_f64": (0, 1, 2), "v_fmac_f32": (0, 1, 2),
    "v_fmac_f64": (0, 1, 2), "v_fmaak_f32": (0, 1, 2), "v_fmamk_f32": (0, 1, 2),
}


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", FUSED)
def test_fused_products_are_rounded_once(name: str, rounding: str) -> None:
    fmt = name[-3:]
    given = columns(fmt, 3, 2000 if fmt != "f64" or rounding == "rn" else 200)
    check(name, fmt, given, lambda a, b, c: fused(a, b, c, fmt, rounding), mode_of(rounding, False))


@pytest.mark.parametrize("name", ["v_fma_f32", "v_fma_f16", "v_fma_f64"])
def test_fused_products_flush(name: str) -> None:
    fmt = name[-3:]
    check(name, fmt, columns(fmt, 3), lambda a, b, c: fused(a, b, c, fmt), mode_of("rn", True), True)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", ["v_mad_f16", "v_mad_legacy_f16", "v_mac_f16", "v_madak_f16", "v_madmk_f16"])
def test_unfused_products_are_rounded_twice_and_flush(name: str, rounding: str) -> None:
    def reference(a: float, b: float, c: float) -> int:
        middle = product(a, b, "f16", rounding)
        return total(math.nan if middle == NAN else value(flush(middle, "f16"), "f16"), c, "f16", rounding)

    check(name, "f16", columns("f16", 3), reference, mode_of(rounding, False), flushes=True)


def test_mul_legacy_takes_zero_times_anything_as_zero() -> None:
    def reference(a: float, b: float) -> int:
        return 0 if a == 0 or b == 0 else product(a, b, "f32")

    check("v_mul_legacy_f32", "f32", columns("f32", 2), reference, Mode())


# --- minima and maxima, by the manual's pseudocode ---------------------------------------------------------------------------


def signaling(p: int, fmt: str) -> bool:
    return math.isnan(value(p, fmt)) and not p >> (FORMATS[fmt][1] - 1) & 1


def smaller(p: int, q: int, fmt: str, ieee: bool, largest: bool = False) -> int:
    a, b = value(p, fmt), value(q, fmt)
    if ieee and (signaling(p, fmt) or signaling(q, fmt)):
        return quiet(fmt)
    if math.isnan(a):
        return quiet(fmt) if math.isnan(b) else q
    if math.isnan(b):
        return p
    if a == b == 0:
        negative = q if math.copysign(1, b) < 0 else p
        positive = p if math.copysign(1, b) < 0 else q
        return positive if largest else negative
    return p if (a >= b if largest else a < b) else q


def larger(p: int, q: int, fmt: str, ieee: bool) -> int:
    return smaller(p, q, fmt, ieee, largest=True)


def quiet(fmt: str) -> int:
    bits, mantissa, _ = FORMATS[fmt]
    return ((1 << (bits - mantissa)) - 1) << (mantissa - 1) & (1 << (bits - 1)) - 1


def median(p: int, q: int, r: int, fmt: str, ieee: bool) -> int:
    a, b, c = (value(x, fmt) for x in (p, q, r))
    if math.isnan(a) or math.isnan(b) or math.isnan(c):
        return smaller(smaller(p, q, fmt, ieee), r, fmt, ieee)
    top = max(a, b, c)
    others = (q, r) if top == a else (p, r) if top == b else (p, q)
    return larger(*others, fmt, ieee)


EXTREMES = {
    "min": smaller, "max": larger, "med3": median, "min3": lambda p, q, r, f, i: smaller(smaller(p, q, f, i), r, f, i),
    "max3": lambda p, q, r, f, i: larger(larger(p, q, f, i), r, f, i),
}


@pytest.mark.parametrize("ieee", [True, False])
@pytest.mark.parametrize("fmt", FORMATS)
def test_minima_maxima_medians(fmt: str, ieee: bool) -> None:
    for name, reference in EXTREMES.items():
        if fmt == "f64" and "3" in name:
            continue
        given = columns(fmt, 3 if "3" in name else 2)
        found = run(f"v_{name}_{fmt}", *given, mode=Mode(ieee=ieee))
        for index, sources in enumerate(zip(*(c.tolist() for c in given), strict=True)):
            wanted = same(reference(*sources, fmt, ieee), fmt)
            assert same(int(found[index]), fmt) == wanted, (name, ieee, [hex(s) for s in sources])


def test_a_maximum_with_itself_quiets_and_flushes() -> None:
    patterns = np.array([0x00000001, 0x80000001, 0x7F800001, 0x3F800000], np.uint32)
    found = run("v_max_f32", patterns, patterns, mode=Mode(flush32=True)).tolist()
    assert found[:2] == [0, 0x80000000]
    assert math.isnan(value(found[2], "f32")) and found[2] >> 22 & 1
    assert found[3] == 0x3F800000


# --- cube maps ---------------------------------------------------------------------------------------------------------------


def cube(x: float, y: float, z: float) -> tuple[float, float, float, float]:
    """(face, s, t, twice the major axis), case by case as the manual has them."""
    if abs(z) >= abs(x) and abs(z) >= abs(y):
        return (5.0, -x, -y, 2 * z) if z < 0 else (4.0, x, -y, 2 * z)
    if abs(y) >= abs(x):
        return (3.0, x, -z, 2 * y) if y < 0 else (2.0, x, z, 2 * y)
    return (1.0, z, -y, 2 * x) if x < 0 else (0.0, -z, -y, 2 * x)


def test_cube_maps() -> None:
    given = tuple(np.random.default_rng(i).choice([-2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0], 500).astype(np.float32) for i in range(3))
    words = tuple(g.view(np.uint32) for g in given)
    for place, name in enumerate(("v_cubeid_f32", "v_cubesc_f32", "v_cubetc_f32", "v_cubema_f32")):
        found = run(name, *words)
        for index, numbers in enumerate(zip(*(g.tolist() for g in given), strict=True)):
            assert int(found[index]) == pattern(cube(*numbers)[place], "f32"), (name, numbers)
