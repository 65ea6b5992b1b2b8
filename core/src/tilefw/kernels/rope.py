"""Rotary position embedding (Su et al., "RoFormer", 2021): pairs of a head turn by a token's angle; heads × pairs a program."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.errors import UsageError
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def rope(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, head_size, rotary_pairs,
    INTERLEAVED: tl.constexpr, COMPUTE: tl.constexpr, BLOCK_HEADS: tl.constexpr, BLOCK_PAIRS: tl.constexpr,
    BLOCK_REST: tl.constexpr,
):
    token = tl.program_id(0)
    head = tl.program_id(1) * BLOCK_HEADS + tl.arange(0, BLOCK_HEADS)
    pair = tl.arange(0, BLOCK_PAIRS)
    turns = pair < rotary_pairs
    cos = tl.load(cos_ptr + token * rotary_pairs + pair, mask=turns, other=1.0).to(COMPUTE)[None, :]
    sin = tl.load(sin_ptr + token * rotary_pairs + pair, mask=turns, other=0.0).to(COMPUTE)[None, :]

    base = (token * heads + head)[:, None] * head_size
    inside = (head < heads)[:, None] & turns[None, :]
    if INTERLEAVED:
        first = base + 2 * pair[None, :]
        second = first + 1
    else:
        first = base + pair[None, :]
        second = first + rotary_pairs
    a = tl.load(x_ptr + first, mask=inside, other=0.0).to(COMPUTE)
    b = tl.load(x_ptr + second, mask=inside, other=0.0).to(COMPUTE)
    tl.store(out_ptr + first, (a * cos - b * sin).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(out_ptr + second, (b * cos + a * sin).to(out_ptr.dtype.element_ty), mask=inside)

    if BLOCK_REST > 0:
        column = 2 * rotary_pairs + tl.arange(0, BLOCK_REST)
        rest = base + column[None, :]
        inside_rest = (head < heads)[:, None] & (column < head_size)[None, :]
        tl.store(out_ptr + rest, tl.load(x_ptr + rest, mask=inside_rest), mask=inside_rest)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    pairs = p["rotary_size"] // 2
    if p["head_size"] % 2 or p["rotary_size"] % 2 or not 0 < p["rotary_size"] <= p["head_size"]:
        raise UsageError(
            f"rope: rotary_size {p['rotary_size']} of head_size {p['head_size']}", code="TFW0942",
            note="both are even, and 0 < rotary_size <= head_size",
        )
    shape, name = (p["tokens"], p["heads"], p["head_size"]), p["dtype"]
    angle = np.arange(p["tokens"])[:, None] * 10000.0 ** (-np.arange(pairs) / max(1, pairs))
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], shape, name),
        "cos_ptr": inputs.Buffer(formats.encode(np.cos(angle), name), name),
        "sin_ptr": inputs.Buffer(formats.encode(np.sin(angle), name), name),
        "out_ptr": inputs.empty(shape, name),
        "heads": p["heads"],
        "head_size": p["head_size"],
        "rotary_pairs": pairs,
    }
    constexprs = {
        "INTERLEAVED": p["interleaved"],
        "COMPUTE": tl.float64 if name == "fp64" else tl.float32,
        "BLOCK_HEADS": p["block_heads"],
        "BLOCK_PAIRS": tilefw.next_power_of_2(pairs),
        "BLOCK_REST": 0 if p["rotary_size"] == p["head_size"] else tilefw.next_power_of_2(p["head_size"] - p["rotary_size"]),
    }
    grid = (p["tokens"], max(1, ceil_div(p["heads"], p["block_heads"])), 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    # In the kernel's own precision: its sums and products are correctly rounded, so they leave NumPy no choice.
    real = np.float64 if p["dtype"] == "fp64" else np.float32
    x, cos, sin = (
        formats.decode(launch.buffer(name).array, p["dtype"]).astype(real) for name in ("x_ptr", "cos_ptr", "sin_ptr")
    )
    size = p["rotary_size"]
    if p["interleaved"]:
        first, second = slice(0, size, 2), slice(1, size, 2)
    else:
        first, second = slice(0, size // 2), slice(size // 2, size)
    # The rotation matrix [[cos, -sin], [sin, cos]] on each pair; the elements past the rotary size stay.
    out = x.copy()
    with np.errstate(all="ignore"):
        along, across = x[..., first], x[..., second]
        out[..., first] = cos[:, None] * along - sin[:, None] * across
        out[..., second] = sin[:, None] * along + cos[:, None] * across
    return {"out_ptr": out.astype(np.float64)}


SPEC = KernelSpec("rope", rope, _prepare, _expected)
