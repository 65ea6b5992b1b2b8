"""One product of two tiles, or of a batch of them: every pair of element types, accumulator, precision and shape."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import dtype
from tilefw.api.errors import UsageError
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import KernelSpec, Launch, Parameters

_ACCUMULATORS = {"fp16": tl.float16, "fp32": tl.float32, "fp64": tl.float64, "int32": tl.int32}


@tilefw.jit
def dot_tile(
    a_ptr, b_ptr, c_ptr, out_ptr, ACCUMULATOR: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    BATCH: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    a_places = m[:, None] * K + k[None, :]
    b_places = k[:, None] * N + n[None, :]
    out_places = m[:, None] * N + n[None, :]
    if BATCH > 0:
        item = tl.arange(0, BATCH)[:, None, None]
        a_places = item * (M * K) + a_places[None, :, :]
        b_places = item * (K * N) + b_places[None, :, :]
        out_places = item * (M * N) + out_places[None, :, :]
    acc = tl.load(c_ptr + out_places)
    acc = tl.dot(
        tl.load(a_ptr + a_places), tl.load(b_ptr + b_places), acc, input_precision=INPUT_PRECISION, out_dtype=ACCUMULATOR,
    )
    tl.store(out_ptr + out_places, acc)


def _accumulator(p: Parameters) -> str:
    """The accumulator's type; raises UsageError for operands that Triton's `dot` has none for."""
    a, b, wanted = p["a_dtype"], p["b_dtype"], p["accumulator"]
    if a != b and not (a.startswith("fp8") and b.startswith("fp8")):
        raise UsageError(f"dot_tile: {a} by {b}", code="TFW0942", note="both operands have one type, or are both of 8-bit floats")
    fixed = {"fp64": "fp64", "int8": "int32", "uint8": "int32"}.get(a)
    if wanted == "fp16" and not (a == "fp16" or a.startswith("fp8")):
        raise UsageError(f"dot_tile: an fp16 accumulator of {a}", code="TFW0942", note="fp16 and 8-bit floats may have one")
    return fixed or wanted


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    batch, m, n, k = ((p["batch"],) if p["batch"] else ()), p["m"], p["n"], p["k"]
    accumulator = _accumulator(p)
    arguments = {
        "a_ptr": inputs.draw(rng, p["inputs"], (*batch, m, k), p["a_dtype"]),
        "b_ptr": inputs.draw(rng, p["inputs"], (*batch, k, n), p["b_dtype"]),
        "c_ptr": inputs.draw(rng, p["inputs"], (*batch, m, n), accumulator),
        "out_ptr": inputs.empty((*batch, m, n), accumulator),
    }
    constexprs = {
        "ACCUMULATOR": _ACCUMULATORS[accumulator],
        "INPUT_PRECISION": p["input_precision"] if p["a_dtype"] == "fp32" else "ieee",
        "BATCH": p["batch"], "M": m, "N": n, "K": k,
    }
    return Launch(arguments, constexprs, (1, 1, 1), ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    a, b, c = (formats.decode(launch.buffer(name).array, launch.buffer(name).dtype) for name in ("a_ptr", "b_ptr", "c_ptr"))
    if dtype(p["a_dtype"]).is_float:
        return {"out_ptr": a @ b + c}
    return {"out_ptr": formats.wrap(a.astype(np.int64) @ b.astype(np.int64) + c, "int32")}


SPEC = KernelSpec("dot_tile", dot_tile, _prepare, _expected)
