"""Rows of a table gathered by loaded indices; the padding index gives zeros without touching the table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def embedding(
    index_ptr, table_ptr, out_ptr, tokens, columns, padding_index,
    HAS_PADDING: tl.constexpr, BLOCK_TOKENS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
):
    token = tl.program_id(0) * BLOCK_TOKENS + tl.arange(0, BLOCK_TOKENS)
    column = tl.program_id(1) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    index = tl.load(index_ptr + token, mask=token < tokens, other=0)
    inside = (token < tokens)[:, None] & (column < columns)[None, :]
    wanted = inside
    if HAS_PADDING:
        wanted = inside & (index != padding_index)[:, None]
    # Row times columns passes 2^31 for real vocabularies, whatever the width of the indices.
    rows = tl.load(table_ptr + index.to(tl.int64)[:, None] * columns + column[None, :], mask=wanted, other=0)
    tl.store(out_ptr + token[:, None] * columns + column[None, :], rows, mask=inside)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    tokens, columns, padding = p["tokens"], p["columns"], p["padding_index"]
    index = rng.integers(0, p["vocabulary"], tokens)
    if 0 <= padding < p["vocabulary"]:
        index[::5] = padding
    arguments = {
        "index_ptr": inputs.Buffer(index.astype(formats.array_dtype(p["index_dtype"])), p["index_dtype"]),
        "table_ptr": inputs.draw(rng, p["inputs"], (p["vocabulary"], columns), p["dtype"]),
        "out_ptr": inputs.empty((tokens, columns), p["dtype"]),
        "tokens": tokens,
        "columns": columns,
        "padding_index": max(0, padding),
    }
    constexprs = {"HAS_PADDING": padding >= 0, "BLOCK_TOKENS": p["block_tokens"], "BLOCK_COLUMNS": p["block_columns"]}
    grid = (max(1, ceil_div(tokens, p["block_tokens"])), max(1, ceil_div(columns, p["block_columns"])), 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    index = launch.buffer("index_ptr").array.astype(np.int64)
    rows = formats.decode(launch.buffer("table_ptr").array, p["dtype"])[index]
    if p["padding_index"] >= 0:
        rows[index == p["padding_index"]] = 0
    return {"out_ptr": rows}


SPEC = KernelSpec("embedding", embedding, _prepare, _expected)
