"""A row's meaning in its compiled form against NumPy's: the same bits for numbers drawn at random and those at the edges."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilefw.sim.algebra.floating import FloatLanes
from tilefw.sim.algebra.integer import IntegerLanes
from tilefw.sim.algebra.recording import RecordingLanes
from tilefw.sim.compiled.native import NativeFunction, object_of
from tilefw.sim.compiled.nests import FunctionText, Recorded, function_text, has_lines
from tilefw.sim.floats import UNSIGNED, Array

LANES = 8
MOST_REFUSED = 0.9
# What rounding, ranges and classes turn on, as f32, f64, f16 and the bytes of them.
_EDGES = (
    0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 2.0**-149, 2.0**-126, -(2.0**-127), 2.0**-24, 2.0**-25, 3 * 2.0**-25, 65504.0,
    65519.9, 65520.0, 448.0, 464.0, 57344.0, 61440.0, 240.0, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, 2.0**64, 3.4028234663852886e38,
    np.inf, -np.inf, np.nan, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-23,
)
_FLOATS = {16: np.float16, 32: np.float32, 64: np.float64}


class PureLanes(IntegerLanes, FloatLanes):
    """The executing form without frame and memory."""

    wave_size = LANES


def samples(bits: int, count: int, random: np.random.Generator) -> Array:
    """Patterns of a width: edges of integers and floats, random ones, some of few bits, and usual floats."""
    if bits == 1:
        return random.integers(0, 2, count).astype(np.bool_)
    dtype = UNSIGNED[bits]
    top = (1 << bits) - 1
    edges = [0, 1, 2, 7, 8, 31, 32, 63, 64, top, top - 1, top >> 1, (top >> 1) + 1, top ^ 1 << bits - 2]
    moderate = random.standard_normal(count) * 2.0 ** random.integers(-20, 20, count)
    drawn = random.integers(0, top, count, dtype=np.uint64, endpoint=True)
    drawn >>= random.integers(0, bits, count).astype(np.uint64) // np.uint64(2)
    usual = drawn.astype(dtype)
    if bits in _FLOATS:
        with np.errstate(all="ignore"):
            edges += np.array(_EDGES, _FLOATS[bits]).view(dtype).tolist()
            usual = moderate.astype(_FLOATS[bits]).view(dtype)
    chosen = np.array(edges, dtype=np.uint64)[random.integers(0, len(edges), count)]
    kind = random.random(count)
    return np.where(kind < 0.3, usual, np.where(kind < 0.6, chosen, drawn).astype(dtype))


def disagreements(meaning: Callable[..., Any], widths: Sequence[int], count: int = 256, seed: int = 0) -> list[str] | None:
    """Where the two forms of a meaning, on sources of these widths, differ; None where it has no compiled form, or no results.

    What the compiled form refuses is left to NumPy's, and so not compared; to refuse nearly everything is a difference.
    """
    lanes = RecordingLanes(LANES)
    inputs = tuple(lanes.symbol(bits) for bits in widths)
    results = meaning(lanes, *inputs)
    given = results if isinstance(results, (tuple, list)) else () if results is None else (results,)
    taken = {value.number for value in inputs}
    outputs = {value.number: place for place, value in enumerate(given) if value.number not in taken}
    if not outputs or not all(map(has_lines, lanes.steps)):
        return None
    recorded = Recorded(tuple(lanes.steps), inputs, tuple(given[place] for place in outputs.values()), LANES)
    function = function_text(recorded, {value.number: 7 for value in inputs}, LANES)
    random = np.random.default_rng(seed)
    arrays = [samples(bits, count, random) for bits in widths]
    made, refused = _one_by_one(function, arrays, count)
    with np.errstate(all="ignore"):
        expected = meaning(PureLanes(), *(a.reshape(-1, 1, 1) for a in arrays))
    wanted = expected if isinstance(expected, (tuple, list)) else (expected,)
    found: list[str] = []
    for compiled, place in zip(made[: len(outputs)], outputs.values(), strict=True):
        right = np.broadcast_to(wanted[place], (count, 1, 1))
        wrong = (np.broadcast_to(compiled, (count, 1, LANES)) != right).any(axis=(1, 2)) & ~refused
        for row in np.flatnonzero(wrong)[:3].tolist():
            of = ", ".join(f"{int(a[row]):#x}" for a in arrays)
            got = int(compiled[row if len(compiled) > 1 else 0].flat[0])
            found.append(f"result {place} of ({of}): compiled {got:#x}, not {int(right[row, 0, 0]):#x}")
    if refused.mean() > MOST_REFUSED:
        found.append(f"{int(refused.sum())} of {count} samples are refused")
    return found


def _one_by_one(function: FunctionText, arrays: Sequence[Array], count: int) -> tuple[list[Array], Array]:
    """The results of all samples, each in all lanes of a wave, and which were refused."""
    native = NativeFunction(object_of(function.text))
    shapes = [(count, 1, LANES) if axes else (1, 1, 1) for axes in function.axes]
    made = [np.zeros(shape, UNSIGNED[bits]) for shape, bits in zip(shapes, function.widths, strict=True)]
    given = [*(np.repeat(a.reshape(-1, 1, 1), LANES, axis=2) for a in arrays), *made]
    starts = [(a.ctypes.data, a.strides[0] if len(a) > 1 else 0) for a in given]
    refused = np.zeros(count, np.bool_)
    for row in range(count):
        places = [start + row * stride for start, stride in starts]
        refused[row] = native.call((ctypes.c_int64 * len(places))(*places), 1, 1) != 0
    return made, refused
