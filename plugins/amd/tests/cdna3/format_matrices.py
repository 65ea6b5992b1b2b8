"""Operands and sums of products whose formats modifiers name: drawn, and spread over registers in divisions and remainders."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from cdna3.lanes import WAVE
from tilefw_amd.isa.meaning.formats import FormatShape

# Bits of an element and NumPy's type of its codes.
ELEMENTS: dict[str, tuple[int, Any]] = {
    "fp8": (8, ml_dtypes.float8_e4m3fn), "bf8": (8, ml_dtypes.float8_e5m2), "fp6": (6, ml_dtypes.float6_e2m3fn),
    "bf6": (6, ml_dtypes.float6_e3m2fn), "fp4": (4, ml_dtypes.float4_e2m1fn),
}  # fmt: skip
WAVES = 2


def values(element: str, codes: np.ndarray) -> np.ndarray:
    return codes.view(ELEMENTS[element][1]).astype(np.float64)


def drawn(element: str, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Codes of the format whose sums of products are exact in f64."""
    codes = np.arange(1 << ELEMENTS[element][0], dtype=np.uint8)
    size_of = np.abs(values(element, codes))
    return rng.choice(codes[(size_of == 0) | ((size_of >= 2.0**-8) & (size_of <= 2.0**8))], size)


def k_of(element: str, lane: int, place: int, m: int, k: int) -> int:
    """Which k the element at `place` of a lane is."""
    group = lane // m
    if ELEMENTS[element][0] == 8:
        return 16 * group + place % 16 + place // 16 * (k // 2)
    return 32 * group + place


def spread(element: str, codes: np.ndarray) -> np.ndarray:
    """Rows [waves, m, k] of codes as words [waves, registers, lanes], element behind element."""
    waves, m, k = codes.shape
    bits = ELEMENTS[element][0]
    held = np.zeros((waves, WAVE, 32), np.uint8)
    for lane in range(WAVE):
        for place in range(32):
            held[:, lane, place] = codes[:, lane % m, k_of(element, lane, place, m, k)]
    stream = (held[..., None] >> np.arange(bits, dtype=np.uint8) & 1).reshape(waves, WAVE, 32 * bits)
    return np.packbits(stream, axis=2, bitorder="little").view(np.uint32).transpose(0, 2, 1)


def spread_sums(c: np.ndarray) -> np.ndarray:
    """C [waves, m, m]: column lane % m, row 4 * (lane // m) + register % 4, and further rows in further registers."""
    waves, m, _ = c.shape
    out = np.zeros((waves, m * m // WAVE, WAVE), np.float32)
    for lane in range(WAVE):
        for register in range(out.shape[1]):
            out[:, register, lane] = c[:, _row(lane, register, m), lane % m]
    return out.view(np.uint32)


def gather_sums(words: np.ndarray, m: int) -> np.ndarray:
    out = np.zeros((len(words), m, m), np.float32)
    for lane in range(WAVE):
        for register in range(words.shape[1]):
            out[:, _row(lane, register, m), lane % m] = np.ascontiguousarray(words).view(np.float32)[:, register, lane]
    return out


def _row(lane: int, register: int, m: int) -> int:
    return register // 4 * (4 * WAVE // m) + lane // m * 4 + register % 4


def operands(shape: FormatShape, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of A [waves, m, k] and of B transposed, values of C."""
    rng = np.random.default_rng(seed)
    a, b = (drawn(element, (WAVES, shape.m, shape.k), rng) for element in (shape.a, shape.b))
    return a, b, rng.integers(-64, 65, (WAVES, shape.m, shape.m)).astype(np.float32)


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """A x B + C of values, B transposed, rounded once to f32."""
    return (a @ b.swapaxes(1, 2) + c).astype(np.float32)
