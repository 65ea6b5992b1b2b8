"""Rows moved by tensor descriptors: gathered by loaded numbers, scattered to others, and added up over programs by atomics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def descriptor_rows(
    source_ptr, target_ptr, x_ptr, out_ptr, total_ptr, moves, rows, columns, stride,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
):
    move = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    column = tl.program_id(1) * BLOCK_COLUMNS
    # Moves past the end go from and to row -1, which no array has: zeros are read there, and nothing is written.
    source = tl.load(source_ptr + move, mask=move < moves, other=-1)
    target = tl.load(target_ptr + move, mask=move < moves, other=-1)
    x = tl.make_tensor_descriptor(x_ptr, shape=[rows, columns], strides=[stride, 1], block_shape=[1, BLOCK_COLUMNS])
    out = tl.make_tensor_descriptor(out_ptr, shape=[rows, columns], strides=[stride, 1], block_shape=[1, BLOCK_COLUMNS])
    total = tl.make_tensor_descriptor(
        total_ptr, shape=[BLOCK_ROWS, columns], strides=[stride, 1], block_shape=[BLOCK_ROWS, BLOCK_COLUMNS],
    )
    taken = x.gather(source, column)
    out.scatter(taken, target, column)
    total.atomic_add([0, column], taken)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    moves, rows, columns, name = p["moves"], p["rows"], p["columns"], p["dtype"]
    element = formats.array_dtype(name)
    stride = ceil_div(columns * element.itemsize, 16) * 16 // element.itemsize
    targets = rng.permutation(rows)[:moves]
    moves = len(targets)

    def padded(count: int, buffer: Buffer) -> Buffer:
        return Buffer(buffer.array.reshape(count, stride)[:, :columns], name)

    block = p["block_rows"]
    arguments = {
        "source_ptr": Buffer(rng.integers(-1, rows + 1, moves).astype(np.int32), "int32"),
        "target_ptr": Buffer(targets.astype(np.int32), "int32"),
        "x_ptr": padded(rows, inputs.draw(rng, "ints", (rows * stride,), name)),
        "out_ptr": padded(rows, Buffer(np.zeros(rows * stride, element), name)),
        "total_ptr": padded(block, Buffer(np.zeros(block * stride, element), name)),
        "moves": moves, "rows": rows, "columns": columns, "stride": stride,
    }
    constexprs = {"BLOCK_ROWS": block, "BLOCK_COLUMNS": p["block_columns"]}
    grid = (ceil_div(moves, block), ceil_div(columns, p["block_columns"]), 1)
    return Launch(arguments, constexprs, grid, ("out_ptr", "total_ptr"), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x = formats.decode(launch.buffer("x_ptr").array, p["dtype"])
    source, target = (launch.buffer(name).array for name in ("source_ptr", "target_ptr"))
    taken = np.where(((source >= 0) & (source < len(x)))[:, None], x[source.clip(0, len(x) - 1)], 0)
    out = np.zeros_like(x)
    out[target] = taken
    block = p["block_rows"]
    padded = np.zeros((ceil_div(len(taken), block) * block, x.shape[1]), taken.dtype)
    padded[: len(taken)] = taken
    return {"out_ptr": out, "total_ptr": padded.reshape(-1, block, x.shape[1]).sum(0)}


SPEC = KernelSpec("descriptor_rows", descriptor_rows, _prepare, _expected)
