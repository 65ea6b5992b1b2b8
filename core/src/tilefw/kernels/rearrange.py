"""One operation that only moves elements of a tile: transposition, reshaping, joining, splitting, reversal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def rearranged(x, y, OPERATION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    if OPERATION == "trans":
        result = tl.trans(x)
    elif OPERATION == "permute":
        result = tl.permute(tl.reshape(x, (2, ROWS // 2, COLUMNS)), (2, 0, 1))
    elif OPERATION == "reshape":
        result = tl.reshape(x, (COLUMNS, ROWS))
    elif OPERATION == "broadcast":
        result = tl.broadcast_to(tl.expand_dims(x, 1), (ROWS, 4, COLUMNS))
    elif OPERATION == "join":
        result = tl.join(x, y)
    elif OPERATION == "split":
        even, odd = tl.split(tl.reshape(x, (ROWS, COLUMNS // 2, 2)))
        result = tl.join(odd, even)
    elif OPERATION == "interleave":
        result = tl.interleave(x, y)
    elif OPERATION == "cat":
        result = tl.cat(x, y)
    elif OPERATION == "flip_rows":
        result = tl.flip(x, 0)
    else:
        result = tl.flip(x, 1)
    return result


@tilefw.jit
def rearrange(x_ptr, y_ptr, out_ptr, OPERATION: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    places = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    result = rearranged(tl.load(x_ptr + places), tl.load(y_ptr + places), OPERATION, ROWS, COLUMNS)
    tl.store(out_ptr + tl.arange(0, SIZE), tl.reshape(result, (SIZE,)))


# Result size over that of one input.
_GROWTH = {"broadcast": 4, "join": 2, "interleave": 2, "cat": 2}

_NUMPY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "trans": lambda x, y: x.T,
    "permute": lambda x, y: x.reshape(2, len(x) // 2, -1).transpose(2, 0, 1),
    "reshape": lambda x, y: x,
    "broadcast": lambda x, y: np.repeat(x[:, None, :], 4, axis=1),
    "join": lambda x, y: np.stack([x, y], axis=-1),
    "split": lambda x, y: x.reshape(-1, 2)[:, ::-1],
    "interleave": lambda x, y: np.stack([x, y], axis=-1),
    "cat": lambda x, y: np.concatenate([x, y]),
    "flip_rows": lambda x, y: x[::-1],
    "flip_columns": lambda x, y: x[:, ::-1],
}


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape = (p["rows"], p["columns"])
    size = p["rows"] * p["columns"] * _GROWTH.get(p["operation"], 1)
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], shape, p["dtype"]),
        "y_ptr": inputs.draw(rng, p["inputs"], shape, p["dtype"]),
        "out_ptr": inputs.empty((size,), p["dtype"]),
    }
    constexprs = {"OPERATION": p["operation"], "SIZE": size, "ROWS": p["rows"], "COLUMNS": p["columns"]}
    return Launch(arguments, constexprs, (1, 1, 1), ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x, y = (formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("x_ptr", "y_ptr"))
    return {"out_ptr": _NUMPY[p["operation"]](x, y).reshape(-1)}


SPEC = KernelSpec("rearrange", rearrange, _prepare, _expected)
