"""Matrices spread over registers by the formulas of AMD's matrix instruction calculator, one by one, and multiplied by a row.

The formulas stand here as the calculator writes them, in divisions and remainders, apart from the bit maps that they judge.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from served import CHIP

from cdna3.lanes import WAVE, lanes, meaning, registers, stacked
from tilefw.api.integers import ceil_div
from tilefw_amd.chips import Chip
from tilefw_amd.isa.meaning.fragments import MatrixShape

_FLOAT8 = {
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}


def numpy_types(chip: Chip) -> dict[str, Any]:
    """NumPy's type of each type of element."""
    return {
        "f16": np.float16, "bf16": ml_dtypes.bfloat16, "xf32": np.float32, "f32": np.float32, "f64": np.float64, "i8": np.int8,
        "i32": np.int32, "fp4": ml_dtypes.float4_e2m1fn, "fp6": ml_dtypes.float6_e2m3fn,
        "bf6": ml_dtypes.float6_e3m2fn, **{name: _FLOAT8[form] for name, form in chip.float8.items()},
    }  # fmt: skip


NUMPY = numpy_types(CHIP)


def _input_place(place: int, k: int, held: int, size: int) -> tuple[int, int]:
    """(Group of lanes, slot in a lane) of number `place` of k; of 32 bytes to a lane the second half has the second half of k."""
    if held * size <= 16:
        return place // held, place % held
    half, within = place // (k // 2), place % (k // 2)
    return within // (held // 2), within % (held // 2) + half * (held // 2)


def spread_input(matrices: np.ndarray, sparse_k: int | None = None) -> np.ndarray:
    """A of [waves, blocks, m, k] (or B transposed) as words [waves, registers, lanes]."""
    waves, blocks, m, k = matrices.shape
    held = k // (WAVE // (m * blocks))
    out = np.zeros((waves, WAVE, held), matrices.dtype)
    for block in range(blocks):
        for place in range(k):
            group, slot = _input_place(place, k, held, out.itemsize)
            first = block * m + group * m * blocks
            out[:, first : first + m, slot] = matrices[:, block, :, place]
    words = out.view(np.uint32) if out.itemsize * held >= 4 else out
    return words.reshape(waves, WAVE, -1).transpose(0, 2, 1)


def _output_place(shape: MatrixShape, i: int, block: int) -> tuple[int, int]:
    """(Register of an element's width, first lane) of row i."""
    height = 1 if shape.d == "f64" else 4
    in_register = WAVE // shape.n
    together = max(1, ceil_div(WAVE, shape.n * shape.m // height))
    element = block * (shape.m * shape.n // WAVE) + i // (height * in_register) * height + i % height
    lane = block % together * shape.n + i // height % in_register * together * shape.n
    return element, lane


def spread_sums(shape: MatrixShape, matrices: np.ndarray) -> np.ndarray:
    """C of [waves, blocks, m, n] as words [waves, registers, lanes]."""
    waves = len(matrices)
    out = np.zeros((waves, shape.m * shape.n * shape.blocks // WAVE, WAVE), matrices.dtype)
    for block in range(shape.blocks):
        for i in range(shape.m):
            element, lane = _output_place(shape, i, block)
            out[:, element, lane : lane + shape.n] = matrices[:, block, i]
    if shape.d != "f64":
        return out.view(np.uint32)
    pairs = out.view(np.uint32).reshape(waves, -1, WAVE, 2)
    return pairs.transpose(0, 1, 3, 2).reshape(waves, -1, WAVE)


def gather_sums(shape: MatrixShape, words: np.ndarray) -> np.ndarray:
    """The inverse of `spread_sums`."""
    waves = len(words)
    if shape.d == "f64":
        words = np.ascontiguousarray(words.reshape(waves, -1, 2, WAVE).transpose(0, 1, 3, 2)).reshape(waves, -1, 2 * WAVE)
    values = np.ascontiguousarray(words, np.uint32).view(NUMPY[shape.d])
    out = np.zeros((waves, shape.blocks, shape.m, shape.n), values.dtype)
    for block in range(shape.blocks):
        for i in range(shape.m):
            element, lane = _output_place(shape, i, block)
            out[:, block, i] = values[:, element, lane : lane + shape.n]
    return out


def _value(words: np.ndarray, name: str) -> Any:
    """An operand as the meaning takes it: registers, or one value where the type is a number."""
    parts = registers(words)
    return parts[0] if name == "f32" else parts


def multiply(
    shape: MatrixShape, a: np.ndarray, b: np.ndarray, c: np.ndarray, index: np.ndarray | None = None, hardware: bool = False,
    chip: Chip | None = None, **modifiers: Any,
) -> np.ndarray:  # fmt: skip
    """D [waves, blocks, m, n] for a [waves, blocks, m, k], b [waves, blocks, k, n], c; `index` words of a sparse product."""
    operands = [
        _value(spread_input(np.ascontiguousarray(a)), shape.a_type.name),
        _value(spread_input(np.ascontiguousarray(b.swapaxes(2, 3))), shape.b_type.name),
    ]
    sums = _value(spread_sums(shape, np.ascontiguousarray(c)), shape.d_type.name)
    operands += [sums] if index is None else [index, sums]
    result = meaning(shape.name, chip=chip, **modifiers)(lanes(len(a), hardware), *operands)
    return gather_sums(shape, stacked(result))
