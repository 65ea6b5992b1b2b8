"""How input arrays are drawn: normal, uniform, small integers, special values; always from the caller's generator."""

from __future__ import annotations

import numpy as np

from tilefw.api.dtypes import dtype
from tilefw.kernels import formats
from tilefw.kernels.spec import Buffer

# What uninitialised memory looks like to a wrong kernel: outputs start with this byte, which decodes to no likely result.
_FILL = 0xA5


def draw(rng: np.random.Generator, kind: str, shape: tuple[int, ...], name: str) -> Buffer:
    """Random inputs of this shape, of element type `name` (`fp16`, `int32`). `kind` selects their range: one of `INPUTS`,
    `FINITE` or `ROWS` of `tilefw.kernels.index`, any other one is `normal`. Raises KeyError for a name that is no type.
    """
    values = (_floats if dtype(name).is_float else _integers)(rng, kind, shape, name)
    return Buffer(formats.store(values, name), name)


def empty(shape: tuple[int, ...], name: str) -> Buffer:
    """An output array of this shape, of element type `name`. It is filled with a byte pattern, not with zeros, so that an
    element that the kernel never writes is found. Raises KeyError for a name that is no type."""
    dtype_ = formats.array_dtype(name)
    raw = np.full((*shape, dtype_.itemsize), _FILL & ((1 << min(8, dtype(name).bits)) - 1), np.uint8)
    return Buffer(raw.view(dtype_).reshape(shape), name)


def nonzero(buffer: Buffer) -> Buffer:
    """The same integers with every zero made one, for divisors."""
    return Buffer(np.where(buffer.array == 0, buffer.array.dtype.type(1), buffer.array), buffer.dtype)


def _floats(rng: np.random.Generator, kind: str, shape: tuple[int, ...], name: str) -> np.ndarray:
    if kind == "ints":
        return rng.integers(-8, 9, shape).astype(np.float64)
    if kind in ("uniform", "low"):
        return rng.uniform(-2.0, 2.0, shape) - (200.0 if kind == "low" else 0.0)
    values = rng.standard_normal(shape)
    if kind == "tiny":
        return values * 2.0 ** (1 - dtype(name).bias)
    if kind == "rare":
        _insert_specials(rng, values, _poles(name))
    elif kind == "poles":
        _scatter(rng, values, np.concatenate([_poles(name), [0.5, -0.5, 1.0, -1.0, 2.0, -2.0]]))
    elif kind in ("specials", "edges"):
        special = _special_floats(name)
        _scatter(rng, values, special if kind == "specials" else special[~(np.isfinite(special) & (np.abs(special) > 1e3))])
    return values


def _integers(rng: np.random.Generator, kind: str, shape: tuple[int, ...], name: str) -> np.ndarray:
    """`normal` and `uniform` draw from all values of the type: integer arithmetic wraps, so none is out of range."""
    element = dtype(name)
    wide = np.int64 if element.is_signed else np.uint64
    low, high = (-(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1) if element.is_signed else (0, (1 << element.bits) - 1)
    if kind == "ints":
        return rng.integers(max(low, -8), min(high, 8), shape, dtype=wide, endpoint=True)
    if kind == "low":
        return rng.integers(low, low // 2, shape, dtype=wide, endpoint=True)
    if kind == "tiny":
        return rng.integers(max(low, -1), 1, shape, dtype=wide, endpoint=True)
    values = rng.integers(low, high, shape, dtype=wide, endpoint=True)
    if kind in ("specials", "edges"):
        powers = [1 << k for k in range(element.bits)]
        ends = {low, low + 1, high, high - 1, 0, *powers, *(-power for power in powers)}
        _scatter(rng, values, np.array(sorted(v for v in ends if low <= v <= high), dtype=wide))
    return values


def _special_floats(name: str) -> np.ndarray:
    """Zeros, infinities, NaN, the ends of the normal and subnormal ranges, ties between neighbours, a few whole numbers."""
    element = dtype(name)
    least_normal = 2.0 ** (1 - element.bias)
    step = 2.0 ** (1 - element.bias - element.mantissa_bits)
    top = formats.largest(name)
    unit = 2.0**-element.mantissa_bits
    ordinary = [0.5, 1 - unit / 2, 1.0, 1 + unit, 1.5, 2.5, 3.5, 127.5]
    magnitudes = [0.0, step, least_normal - step, least_normal, *ordinary, top / 2, top]
    infinite = [np.inf] if element.specials == "ieee" else []
    return np.array([s * m for m in magnitudes + infinite for s in (1, -1)] + [np.nan] * (element.specials != "finite"))


def _poles(name: str) -> np.ndarray:
    """Zeros of both signs, infinities and NaN, as far as the format has them."""
    element = dtype(name)
    infinite = [np.inf, -np.inf] if element.specials == "ieee" else []
    return np.array([0.0, -0.0, *infinite] + [np.nan] * (element.specials != "finite"))


def _insert_specials(rng: np.random.Generator, values: np.ndarray, specials: np.ndarray) -> None:
    """One of `specials` in every third row, or as every 61st element of a vector: most rows must not notice."""
    rows = values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values[: values.size // 61 * 61].reshape(-1, 61)
    if rows.size:
        chosen = np.arange(0, len(rows), 3)
        rows[chosen, rng.integers(0, rows.shape[1], chosen.size)] = specials[np.arange(chosen.size) % specials.size]


def _scatter(rng: np.random.Generator, values: np.ndarray, specials: np.ndarray) -> None:
    """About half of `values` replaced by `specials`, each at least once where there is room."""
    flat = values.reshape(-1)
    places = rng.permutation(flat.size)[: max(flat.size // 2, min(flat.size, specials.size))]
    flat[places] = specials[np.arange(places.size) % specials.size]
