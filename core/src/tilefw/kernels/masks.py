"""A copy of a matrix under one mask, of every kind that a mask can be, with what masked-off elements read as."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def mask_of(row, column, rows, columns, chosen_ptr, MASK: tl.constexpr):
    """`rows` and `columns` are the extents; the mask never reaches beyond them."""
    inside = (row < rows) & (column < columns)
    if MASK == "none":
        mask = inside & (row < 0)
    elif MASK == "single":
        mask = (row == rows // 2) & (column == columns // 3)
    elif MASK == "alternating":
        mask = inside & ((row + column) % 2 == 0)
    elif MASK == "upper_bound":
        mask = inside & (row < rows - 2) & (column < columns // 2)
    elif MASK == "lower_bound":
        mask = inside & (row >= 1) & (column >= columns // 4)
    elif MASK == "triangle":
        mask = inside & (column <= row)
    elif MASK == "outside_hole":
        mask = inside & ((row < rows // 4) | (column >= columns // 2))
    elif MASK == "loaded":
        mask = tl.load(chosen_ptr + row * columns + column, mask=inside, other=0) != 0
    elif MASK == "loaded_lengths":
        mask = inside & (column < tl.load(chosen_ptr + row, mask=row < rows, other=0))
    else:
        mask = inside
    return mask


@tilefw.jit
def masks(
    x_ptr, other_ptr, chosen_ptr, out_ptr, rows, columns, fill,
    MASK: tl.constexpr, OTHER: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
):
    row = (tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
    column = (tl.program_id(1) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS))[None, :]
    inside = (row < rows) & (column < columns)
    index = row * columns + column
    mask = mask_of(row, column, rows, columns, chosen_ptr, MASK)
    if OTHER == "nothing":  # what is masked off is anything, and is not stored
        tl.store(out_ptr + index, tl.load(x_ptr + index, mask=mask), mask=mask)
    else:
        if OTHER == "zero":
            x = tl.load(x_ptr + index, mask=mask, other=0)
        elif OTHER == "scalar":
            x = tl.load(x_ptr + index, mask=mask, other=fill)
        else:
            x = tl.load(x_ptr + index, mask=mask, other=tl.load(other_ptr + index, mask=inside))
        tl.store(out_ptr + index, x, mask=inside)


_MASKS: dict[str, Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]] = {
    "all": lambda row, column, rows, columns: (row >= 0) & (column >= 0),
    "none": lambda row, column, rows, columns: (row < 0) & (column < 0),
    "single": lambda row, column, rows, columns: (row == rows // 2) & (column == columns // 3),
    "alternating": lambda row, column, rows, columns: (row + column) % 2 == 0,
    "upper_bound": lambda row, column, rows, columns: (row < rows - 2) & (column < columns // 2),
    "lower_bound": lambda row, column, rows, columns: (row >= 1) & (column >= columns // 4),
    "triangle": lambda row, column, rows, columns: column <= row,
    "outside_hole": lambda row, column, rows, columns: (row < rows // 4) | (column >= columns // 2),
}


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    rows, columns, name = p["rows"], p["columns"], p["dtype"]
    lengths = p["mask"] == "loaded_lengths"
    chosen = rng.integers(0, columns + 3, (rows,)) if lengths else rng.integers(0, 2, (rows, columns))
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], (rows, columns), name),
        "other_ptr": inputs.draw(rng, p["inputs"], (rows, columns), name) if p["other"] == "tile" else None,
        "chosen_ptr": Buffer(chosen.astype(np.int32), "int32") if p["mask"].startswith("loaded") else None,
        "out_ptr": inputs.empty((rows, columns), name), "rows": rows, "columns": columns, "fill": 7,
    }
    grid = (max(1, ceil_div(rows, p["block_rows"])), max(1, ceil_div(columns, p["block_columns"])), 1)
    constexprs = {
        "MASK": p["mask"], "OTHER": p["other"], "BLOCK_ROWS": p["block_rows"], "BLOCK_COLUMNS": p["block_columns"],
    }
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _mask(p: Parameters, launch: Launch) -> np.ndarray:
    row, column = np.indices((p["rows"], p["columns"]))
    if p["mask"] == "loaded":
        return launch.buffer("chosen_ptr").array != 0
    if p["mask"] == "loaded_lengths":
        return column < launch.buffer("chosen_ptr").array[:, None]
    return _MASKS[p["mask"]](row, column, p["rows"], p["columns"])


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    name = p["dtype"]
    x = formats.decode(launch.buffer("x_ptr").array, name)
    otherwise = {
        "nothing": lambda: formats.decode(launch.buffer("out_ptr").array, name),  # what was there stays
        "zero": lambda: np.zeros_like(x), "scalar": lambda: np.full_like(x, 7),
        "tile": lambda: formats.decode(launch.buffer("other_ptr").array, name),
    }[p["other"]]
    return {"out_ptr": np.where(_mask(p, launch), x, otherwise())}


SPEC = KernelSpec("masks", masks, _prepare, _expected)
