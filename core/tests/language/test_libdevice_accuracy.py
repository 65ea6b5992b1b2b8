"""libdevice's functions are within an ulp of the exact value, in float32 and float64; special values are IEEE 754's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libdevice_calls import FLOATS, called, same

from tilefw.api.errors import KernelError
from tilefw.runtime.plugins.loader import find_target

Wide = np.longdouble
SIZE = 256
PI = 4 * np.arctan(Wide(1))


def half_turns(function: Callable[[Any], Any], x: Any) -> Any:
    """sin or cos of pi * x, from an angle below a half turn."""
    return function(PI * np.fmod(x, Wide(2)))


def length(*x: Any) -> Any:
    return np.sqrt(sum(a * a for a in x))


# Function: what it is in the widest floats, and the interval of its operands in float32 and float64.
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[float, float], tuple[float, float]]] = {
    "exp10": (lambda x: np.power(Wide(10), x), (-37, 38), (-300, 308)),
    "log10": (np.log10, (0, 10), (0, 10)),
    "sinh": (np.sinh, (-88, 88), (-700, 700)),
    "cosh": (np.cosh, (-88, 88), (-700, 700)),
    "asinh": (np.arcsinh, (-10, 10), (-1e9, 1e9)),
    "acosh": (np.arccosh, (1, 10), (1, 1e9)),
    "atanh": (np.arctanh, (-1, 1), (-1, 1)),
    "sinpi": (lambda x: half_turns(np.sin, x), (-0.9, 0.9), (-0.9, 0.9)),
    "cospi": (lambda x: half_turns(np.cos, x), (-0.4, 0.4), (-0.4, 0.4)),
    "asin": (np.arcsin, (-1, 1), (-1, 1)),
    "acos": (np.arccos, (-1, 1), (-1, 1)),
    "atan": (np.arctan, (-8, 8), (-1e9, 1e9)),
    "atan2": (np.arctan2, (-8, 8), (-1e9, 1e9)),
    "cbrt": (np.cbrt, (-100, 100), (-1e200, 1e200)),
    "rcbrt": (lambda x: 1 / np.cbrt(x), (-100, 100), (-1e200, 1e200)),
    "hypot": (length, (-1e18, 1e18), (-1e150, 1e150)),
    "rhypot": (lambda *x: 1 / length(*x), (-8, 8), (-8, 8)),
    "norm3d": (length, (-8, 8), (-8, 8)),
    "rnorm3d": (lambda *x: 1 / length(*x), (-8, 8), (-8, 8)),
    "norm4d": (length, (-8, 8), (-8, 8)),
    "rnorm4d": (lambda *x: 1 / length(*x), (-8, 8), (-8, 8)),
}
OPERANDS = {"atan2": 2, "hypot": 2, "rhypot": 2, "norm3d": 3, "rnorm3d": 3, "norm4d": 4, "rnorm4d": 4}


def drawn(name: str, dtype: Any, size: int = SIZE) -> list[np.ndarray]:
    """Operands over the interval, half of them near the number in it where the function is hardest: 0 or 1."""
    rng = np.random.default_rng(11)
    _, single, double = FUNCTIONS[name]
    low, high = single if dtype is np.float32 else double
    centre = 0.0 if low < 0 else 1.0
    found = []
    for _ in range(OPERANDS.get(name, 1)):
        wide = rng.uniform(low, high, size // 2)
        near = centre + rng.choice([-1, 1], size // 2) * np.exp(rng.uniform(-12, -0.5, size // 2))
        found.append(rng.permutation(np.concatenate([wide, np.clip(near, low, high)])).astype(dtype))
    return found


def ulps(found: np.ndarray, exact: Any) -> float:
    """The largest distance in units of the last place of the exact values."""
    info = np.finfo(found.dtype)
    exponent = np.maximum(np.frexp(exact)[1] - 1, int(info.minexp))
    return float(np.max(np.abs(found.astype(Wide) - exact) / np.ldexp(Wide(1), exponent - int(info.nmant))))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_within_an_ulp(name: str, dtype: Any) -> None:
    if dtype is np.float64 and np.finfo(Wide).nmant <= 60:
        pytest.skip("this machine has no floats wider than float64")
    operands = drawn(name, dtype)
    found = called(name, dtype, *operands)
    assert ulps(found, FUNCTIONS[name][0](*(x.astype(Wide) for x in operands))) <= 1.0


@pytest.mark.parametrize("target", ["nvidia-sm80", "amd-cdna3", "spatial-sdm1"])
@pytest.mark.parametrize("name", ["asin", "hypot"])
def test_within_an_ulp_on_chips(name: str, target: str) -> None:
    try:
        find_target(target)
    except KernelError:
        pytest.skip(f"{target} is not installed")
    operands = drawn(name, np.float32, 64)
    found = called(name, np.float32, *operands, target=target)
    assert ulps(found, FUNCTIONS[name][0](*(x.astype(Wide) for x in operands))) <= 1.0


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80"])
def test_tangents_of_large_angles(target: str) -> None:
    try:
        find_target(target)
    except KernelError:
        pytest.skip(f"{target} is not installed")
    x = np.random.default_rng(2).uniform(-1e6, 1e6, 64).astype(np.float32)
    assert ulps(called("tan", np.float32, x, target=target), np.tan(x.astype(Wide))) <= 1.0


INF, NAN = math.inf, math.nan
SPECIAL: dict[str, dict[float, float]] = {
    "exp10": {-INF: 0.0, INF: INF, NAN: NAN, 0.0: 1.0, 2.0: 100.0, 1e3: INF, -1e3: 0.0},
    "log10": {-0.0: -INF, -1.0: NAN, INF: INF, NAN: NAN, 1.0: 0.0, 1000.0: 3.0},
    "sinh": {-INF: -INF, INF: INF, NAN: NAN, -0.0: -0.0, 1e3: INF, -1e3: -INF},
    "cosh": {-INF: INF, INF: INF, NAN: NAN, 0.0: 1.0, -1e3: INF},
    "asinh": {-INF: -INF, INF: INF, NAN: NAN, -0.0: -0.0},
    "acosh": {1.0: 0.0, 0.5: NAN, INF: INF, -INF: NAN, NAN: NAN},
    "atanh": {1.0: INF, -1.0: -INF, -0.0: -0.0, 1.5: NAN, INF: NAN, NAN: NAN},
    "sinpi": {-0.0: -0.0, 1.0: 0.0, -1.0: -0.0, 0.5: 1.0, -0.5: -1.0, 1e30: 0.0, INF: NAN, NAN: NAN},
    "cospi": {0.0: 1.0, 1.0: -1.0, 0.5: 0.0, -0.5: 0.0, 1.5: 0.0, 1e30: 1.0, INF: NAN, NAN: NAN},
    "asin": {-0.0: -0.0, 1.5: NAN, INF: NAN, NAN: NAN},
    "acos": {1.0: 0.0, -1.5: NAN, INF: NAN, NAN: NAN},
    "atan": {-0.0: -0.0, INF: math.pi / 2, -INF: -math.pi / 2, 1e30: math.pi / 2, NAN: NAN},
    "cbrt": {-0.0: -0.0, 8.0: 2.0, -27.0: -3.0, INF: INF, -INF: -INF, NAN: NAN},
    "rcbrt": {-0.0: -INF, 8.0: 0.5, INF: 0.0, -INF: -0.0, NAN: NAN},
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str, dtype: Any) -> None:
    cases = SPECIAL[name]
    found = called(name, dtype, np.array(list(cases), dtype))
    assert same(found, list(cases.values())), dict(zip(cases, found, strict=True))


@pytest.mark.parametrize("dtype", FLOATS)
def test_angles_of_axes_and_infinities(dtype: Any) -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN], dtype)
    y, x = (a.ravel() for a in np.meshgrid(values, values))
    expected = [math.atan2(a, b) for a, b in zip(y.tolist(), x.tolist(), strict=True)]
    assert same(called("atan2", dtype, y, x), expected)


def test_an_infinite_component_makes_a_length_infinite() -> None:
    x, y = np.array([INF, NAN, 0.0, NAN], np.float32), np.array([NAN, -INF, 0.0, 1.0], np.float32)
    assert same(called("hypot", np.float32, x, y), [INF, INF, 0.0, NAN])
    assert same(called("rhypot", np.float32, x, y), [0.0, 0.0, INF, NAN])
