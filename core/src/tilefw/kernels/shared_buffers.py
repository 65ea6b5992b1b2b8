"""out = x · scale + y tile by tile, where the three arguments may be one array, or views of one array that overlap.

A program may read what it stored in an earlier trip of its loop, through another argument; no program touches what another one
stores.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def shared_buffers(
    x_ptr, y_ptr, out_ptr, n, scale, x_stride, y_stride, out_stride, TRIPS: tl.constexpr, BLOCK: tl.constexpr,
):
    first = tl.program_id(0) * TRIPS * BLOCK
    for trip in range(0, TRIPS):
        index = first + trip * BLOCK + tl.arange(0, BLOCK)
        inside = index < n
        x = tl.load(x_ptr + index * x_stride, mask=inside)
        y = tl.load(y_ptr + index * y_stride, mask=inside)
        tl.store(out_ptr + index * out_stride, x * scale + y, mask=inside)


def _views(p: Parameters, storage: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, y and out of `n` elements each as views of `storage`; y lies apart where it has no part in the matter."""
    n, block = p["n"], p["block"]
    apart = storage[3 * n + 2 * block :][:n]
    whole = storage[:n]
    return {
        "separate": lambda: (whole, apart, storage[n : 2 * n]),
        "same_inputs": lambda: (whole, whole, apart),
        "in_place": lambda: (whole, apart, whole),
        "all_one": lambda: (whole, whole, whole),
        "interleaved": lambda: (storage[: 3 * n : 3], storage[1 : 3 * n : 3], storage[2 : 3 * n : 3]),
        "read_after_write": lambda: (whole, apart, storage[block : block + n]),  # a trip reads what the one before it stored
        "write_after_read": lambda: (storage[block : block + n], apart, whole),  # and stores where the one before it read
        "both_behind": lambda: (whole, storage[block : block + n], storage[2 * block : 2 * block + n]),
    }[p["views"]]()


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    storage = inputs.draw(rng, p["inputs"], (4 * p["n"] + 2 * p["block"],), p["dtype"])
    views = dict(zip(("x_ptr", "y_ptr", "out_ptr"), (Buffer(view, p["dtype"]) for view in _views(p, storage.array)), strict=True))
    steps = {name.replace("ptr", "stride"): buffer.array.strides[0] // buffer.array.itemsize for name, buffer in views.items()}
    trips = ceil_div(p["n"], p["block"])
    alone = p["views"] in ("read_after_write", "write_after_read", "both_behind")  # one program goes through all of it
    grid = (1 if alone else max(1, ceil_div(trips, p["trips"])), 1, 1)
    constexprs = {"TRIPS": trips if alone else p["trips"], "BLOCK": p["block"]}
    keywords = {"num_warps": p["num_warps"], "num_stages": p["num_stages"]}
    return Launch({**views, "n": p["n"], "scale": 2, **steps}, constexprs, grid, ("out_ptr",), keywords)


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    """Trip by trip over the same views of a copy, each result rounded to the element type as it is stored."""
    name, block = p["dtype"], p["block"]
    arrays = [launch.buffer(argument).array for argument in ("x_ptr", "y_ptr", "out_ptr")]
    places = [array.__array_interface__["data"][0] + np.arange(p["n"]) * array.strides[0] for array in arrays]
    memory: dict[int, float] = {}
    for array, where in zip(arrays, places, strict=True):
        memory.update(zip(where.tolist(), formats.decode(array, name).tolist(), strict=True))
    for first in range(0, p["n"], block):
        mine = slice(first, min(first + block, p["n"]))
        made = [memory[a] * 2 + memory[b] for a, b in zip(places[0][mine].tolist(), places[1][mine].tolist(), strict=True)]
        stored = formats.decode(formats.encode(np.array(made, np.float64), name), name)
        memory.update(zip(places[2][mine].tolist(), stored.tolist(), strict=True))
    return {"out_ptr": np.array([memory[place] for place in places[2].tolist()], np.float64)}


SPEC = KernelSpec("shared_buffers", shared_buffers, _prepare, _expected)
