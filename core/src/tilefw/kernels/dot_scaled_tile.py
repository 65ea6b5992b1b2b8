"""One product of two tiles in formats with scales: every pair of formats, kind of scales, packing and shape."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.errors import UsageError
from tilefw.kernels import inputs, scaled_formats
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def load_tile(ptr, BATCH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    places = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    if BATCH > 0:
        places = tl.arange(0, BATCH)[:, None, None] * (ROWS * COLUMNS) + places[None, :, :]
    return tl.load(ptr + places)


@tilefw.jit
def dot_scaled_tile(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, out_ptr, A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr,
    A_K_PACK: tl.constexpr, B_K_PACK: tl.constexpr, A_PACKED: tl.constexpr, B_PACKED: tl.constexpr,
    BATCH: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUPS: tl.constexpr,
):
    a_rows: tl.constexpr = M if A_K_PACK else M // A_PACKED
    a_columns: tl.constexpr = K // A_PACKED if A_K_PACK else K
    b_columns: tl.constexpr = N if B_K_PACK else N // B_PACKED
    b_rows: tl.constexpr = K // B_PACKED if B_K_PACK else K
    a = load_tile(a_ptr, BATCH, a_rows, a_columns)
    b = load_tile(b_ptr, BATCH, b_rows, b_columns)
    a_scale = None
    b_scale = None
    if a_scale_ptr is not None:
        a_scale = load_tile(a_scale_ptr, BATCH, M, GROUPS)
    if b_scale_ptr is not None:
        b_scale = load_tile(b_scale_ptr, BATCH, N, GROUPS)
    acc = load_tile(c_ptr, BATCH, M, N)
    acc = tl.dot_scaled(a, a_scale, A_FORMAT, b, b_scale, B_FORMAT, acc, lhs_k_pack=A_K_PACK, rhs_k_pack=B_K_PACK)
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    if BATCH > 0:
        places = tl.arange(0, BATCH)[:, None, None] * (M * N) + places[None, :, :]
    tl.store(out_ptr + places, acc)


def _check(p: Parameters) -> None:
    for side in ("a", "b"):
        if p["packing"] == "outer" and p[f"{side}_format"] == "e2m1" and p["m" if side == "a" else "n"] < 2:
            raise UsageError("dot_scaled_tile: one row packed by twos", code="TFW0942", note="two rows at least are packed so")
    if p["k"] % p["group"]:
        raise UsageError(
            f"dot_scaled_tile: groups of {p['group']} of {p['k']} columns", code="TFW0942", note="k is a multiple of the group",
        )


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    _check(p)
    batch, m, n, k = ((p["batch"],) if p["batch"] else ()), p["m"], p["n"], p["k"]
    a, b, along_k = p["a_format"], p["b_format"], p["packing"] == "k"
    a_k_pack, b_k_pack = along_k or a != "e2m1", along_k or b != "e2m1"
    scaled, groups = p["scaled"], k // p["group"]
    high = rng.random(groups) < 0.5 if scaled == "both" else None
    low = None if high is None else ~high
    arguments = {
        "a_ptr": scaled_formats.draw(rng, p["inputs"], (*batch, m, k), a, -1 if a_k_pack else -2),
        "b_ptr": scaled_formats.draw(rng, p["inputs"], (*batch, k, n), b, -2 if b_k_pack else -1),
        "a_scale_ptr": scaled_formats.scales(rng, p["scales"], (*batch, m, groups), high) if scaled in ("both", "a") else None,
        "b_scale_ptr": scaled_formats.scales(rng, p["scales"], (*batch, n, groups), low) if scaled in ("both", "b") else None,
        "c_ptr": inputs.draw(rng, "normal", (*batch, m, n), "fp32"),
        "out_ptr": inputs.empty((*batch, m, n), "fp32"),
    }
    constexprs = {
        "A_FORMAT": a, "B_FORMAT": b, "A_K_PACK": a_k_pack, "B_K_PACK": b_k_pack,
        "A_PACKED": scaled_formats.packed(a), "B_PACKED": scaled_formats.packed(b),
        "BATCH": p["batch"], "M": m, "N": n, "K": k, "GROUPS": groups,
    }
    return Launch(arguments, constexprs, (1, 1, 1), ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    a = scaled_formats.decode(launch.buffer("a_ptr"), p["a_format"], -1 if launch.constexprs["A_K_PACK"] else -2)
    b = scaled_formats.decode(launch.buffer("b_ptr"), p["b_format"], -2 if launch.constexprs["B_K_PACK"] else -1)
    if p["scaled"] in ("both", "a"):
        a = a * np.repeat(scaled_formats.factors(launch.buffer("a_scale_ptr")), p["group"], -1)
    if p["scaled"] in ("both", "b"):
        b = b * np.swapaxes(np.repeat(scaled_formats.factors(launch.buffer("b_scale_ptr")), p["group"], -1), -1, -2)
    return {"out_ptr": a @ b + launch.buffer("c_ptr").array.astype(np.float64)}


SPEC = KernelSpec("dot_scaled_tile", dot_scaled_tile, _prepare, _expected)
