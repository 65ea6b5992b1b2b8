"""Sums over rows of different lengths, by every kind of loop: how often it runs stands in memory, and may be never."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import inputs, operands
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def part(row_ptr, first, count, BLOCK: tl.constexpr):
    column = first + tl.arange(0, BLOCK)
    return tl.load(row_ptr + column, mask=column < count, other=0).to(tl.float32)


@tilefw.jit
def ragged_sums(
    x_ptr, counts_ptr, next_ptr, out_ptr, trips_ptr, columns, row_stride, LOOP: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    row_ptr = x_ptr + row * row_stride
    count = tl.load(counts_ptr + row)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    trips = 0
    if LOOP == "for":
        for first in range(0, count, BLOCK):
            total += part(row_ptr, first, count, BLOCK)
            trips += 1
    elif LOOP == "backward":
        for first in range((tl.cdiv(count, BLOCK) - 1) * BLOCK, -1, -BLOCK):
            total += part(row_ptr, first, count, BLOCK)
            trips += 1
    elif LOOP == "nested":
        for outer in range(0, count, 3 * BLOCK):
            for first in range(outer, tl.minimum(outer + 3 * BLOCK, count), BLOCK):
                total += part(row_ptr, first, count, BLOCK)
                trips += 1
    elif LOOP == "while":
        first = 0
        while first < count:
            total += part(row_ptr, first, count, BLOCK)
            trips += 1
            first += BLOCK
    elif LOOP == "chain":  # each place says where the next one is
        place = count - 1
        while place >= 0:
            total += part(row_ptr, place, place + 1, BLOCK)
            trips += 1
            place = tl.load(next_ptr + place)
    else:  # `launched`: the same for all rows, and known at launch
        for first in range(0, columns, BLOCK):
            total += part(row_ptr, first, columns, BLOCK)
            trips += 1
    tl.store(out_ptr + row, tl.sum(total, axis=0))
    tl.store(trips_ptr + row, trips)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    rows, columns = p["rows"], p["columns"]
    counts = rng.integers(-2, columns + 1, (rows,))
    counts[: min(rows, 3)] = [0, columns, min(1, columns)][: min(rows, 3)]
    following = np.arange(columns) - rng.integers(1, 4, (columns,))
    x = inputs.draw(rng, p["inputs"], (rows, max(1, columns)), p["dtype"])
    arguments = {
        "x_ptr": x, "counts_ptr": Buffer(counts.astype(np.int32), "int32"), "next_ptr": Buffer(following.astype(np.int32), "int32"),
        "out_ptr": inputs.empty((rows,), "fp32"), "trips_ptr": inputs.empty((rows,), "int32"),
        "columns": columns, "row_stride": max(1, columns),
    }
    keywords = {"num_warps": p["num_warps"], "num_stages": p["num_stages"]}
    return Launch(arguments, {"LOOP": p["loop"], "BLOCK": p["block"]}, (rows, 1, 1), ("out_ptr", "trips_ptr"), keywords)


def _tiles(p: Parameters, count: int, following: np.ndarray) -> list[tuple[int, int]]:
    """The first column of each tile that a row reads, in order, and how many columns from there it takes."""
    if p["loop"] == "chain":
        places, place = [], count - 1
        while place >= 0:
            places.append((place, 1))
            place = int(following[place])
        return places
    count = p["columns"] if p["loop"] == "launched" else count
    tiles = [(first, min(p["block"], count - first)) for first in range(0, count, p["block"])]
    return tiles[::-1] if p["loop"] == "backward" else tiles


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x = operands.values(launch.buffer("x_ptr")).astype(np.float32)
    counts, following = (launch.buffer(name).array for name in ("counts_ptr", "next_ptr"))
    sums, trips = np.zeros(p["rows"]), np.zeros(p["rows"], np.int64)
    for row, count in enumerate(counts):
        running = np.zeros(p["block"], np.float32)
        tiles = _tiles(p, int(count), following)
        for first, width in tiles:
            running[:width] += x[row, first : first + width]
        sums[row], trips[row] = running.astype(np.float64).sum(), len(tiles)
    return {"out_ptr": sums, "trips_ptr": trips}


SPEC = KernelSpec("ragged_sums", ragged_sums, _prepare, _expected)
