"""Outlines of products of matrices: what each published kernel computes and moves, by its tile where the source states it.

A kernel whose tile is not stated takes the fastest of the tiles that its library or its autotuner chooses among.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from model_rows import HOST_TIMED, KERNEL_US, Predicted, Row
from published_points import CannotModelError

from tilefw.api.timing import ChipFigures
from tilefw.timing.outline import Outline, OutlinedTime, Work, at_clock, outlined_time

_REGISTERS_BESIDE = 48  # of a lane beside accumulators and fragments: addresses, counters, masks (assumption)


@dataclass(frozen=True, slots=True)
class Tile:
    """Of one program: rows, columns and depth, waves, stages of the pipeline, the group of rows in the order of programs, parts
    of K, workgroups that a processor holds at once where that is stated. `remapped`: the kernel numbers its programs anew, so that
    neighbours in that order run on one die."""

    m: int
    n: int
    k: int
    waves: int = 8
    stages: int = 3
    group: int = 8
    split: int = 1
    persistent: bool = False
    resident: int = 0
    remapped: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """`batch` products of m × n × k: `kind` of multiply-add, bytes of an operand's and a result's element. `warm`: operands that
    the last cache holds are in it. `scaled`: operands have scales for each 128 of K, by which lanes multiply the sums."""

    m: int
    n: int
    k: int
    kind: str
    size: int
    out: int
    batch: int = 1
    warm: bool = False
    scaled: bool = False

    @property
    def operations(self) -> float:
        return 2.0 * self.m * self.n * self.k * self.batch


# Triton's tutorial 03 and 09 and triton.ops.matmul: `get_autotune_config`, `get_configs_io_bound`.
_AMPERE_TRITON = tuple(
    Tile(m, n, k, waves, stages)
    for m, n, k, waves, stages in (
        (128, 256, 64, 8, 3),
        (64, 256, 32, 4, 4),
        (128, 128, 32, 4, 4),
        (128, 64, 32, 4, 4),
        (64, 128, 32, 4, 4),
        (128, 32, 32, 4, 4),
        (64, 32, 32, 2, 5),
        (32, 64, 32, 2, 5),
    )
)
_HOPPER_TRITON = (
    *_AMPERE_TRITON,
    Tile(128, 256, 128, 8, 3),
    Tile(256, 128, 128, 8, 3),
    Tile(128, 128, 64, 4, 4),
    Tile(128, 256, 64, 8, 3),
)
_SMALL = tuple(
    Tile(m, n, k, 2 if n <= 64 else 4, 4, split=split)
    for m in (16, 32, 64)
    for n in (32, 64, 128, 256)
    for k in (32, 64, 128)
    for split in (1, 2, 4, 8, 16)
)
_LARGE = tuple(
    Tile(m, n, 64, 8 if m * n > 8192 else 4, 4) for m, n in ((128, 256), (256, 128), (128, 128), (128, 64), (64, 64), (64, 256))
)
_MATRIX_CORES = tuple(
    replace(Tile(m, n, k, 4, 2), split=split)
    for m, n, k in (
        (256, 256, 64),
        (256, 128, 64),
        (128, 128, 64),
        (128, 64, 64),
        (64, 64, 64),
        (32, 64, 128),
        (16, 64, 256),
        (16, 32, 256),
    )
    for split in (1, 2, 4, 8)
)


# facebookexperimental/triton, third_party/tlx/tutorials/amd_gemm_gfx942.py: `_configs`, with the ring of one buffer that it says
# wins most shapes: loads are issued at the start of a step and stored to LDS at its end, as a pipeline of two stages does.
_TLX_MATRIX_CORES = tuple(
    Tile(m, n, k, waves, 2, group, remapped=True)
    for m, n, k, waves in (
        (64, 64, 64, 4),
        (128, 128, 32, 4),
        (128, 128, 32, 8),
        (128, 128, 64, 8),
        (256, 128, 32, 8),
        (128, 256, 32, 8),
        (256, 256, 32, 8),
    )
    for group in (4, 8)
)


# A call of that kernel from Python; what takes less shows the call's time: testing/gfx942_perf_harness.py beside it.
_TLX_CALL_US = 48.1

# Of a row's remark: the sizes below which a source timed the host.
_HOST_BOUND = re.compile(r"sizes < ~?(\d+)\b[^;]*host-launch bound")

# Tiles in the names of kernels: Composable Kernel's threads, rows, columns and depth; rows and columns of aiter's assembly.
_CK = re.compile(r"kernel=\S*?_256x(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_")
_ASM = re.compile(r"kernel=\S*?_(?P<m>\d+)x(?P<n>\d+)E")


def predicted_gemm(row: Row) -> Predicted:
    """The time of a row of products. Raises CannotModelError."""
    chip = row.figures()
    if row.clock():
        chip = at_clock(chip, row.clock() or 0)
    if row.implementation.endswith("fast.cu kernel 1"):
        raise CannotModelError("a kernel without tiles is no product of a library")
    if row.kind == "grouped gemm":
        return _grouped(row, chip)
    problem = _problem(row)
    bound = _HOST_BOUND.search(row.config)
    if bound and problem.m < int(bound[1]):
        raise CannotModelError(HOST_TIMED)
    launch, tiles = _launch(row, chip), _tiles(row, chip)
    pipeline = _pipeline(row, chip)
    times = (_tile_time(chip, problem, tile, launch, pipeline) for tile in tiles if _fits(chip, problem, tile))
    best = min(times, key=lambda time: time.seconds, default=None)
    if best is None:
        raise CannotModelError("the tile that is stated does not fit the chip")
    seconds = best.seconds + (_quantised(row, chip) if "activation quantisation" in row.config else 0.0)
    if "TLX gfx942" in row.implementation and seconds < _TLX_CALL_US * 1e-6:
        raise CannotModelError(HOST_TIMED)
    nbytes = problem.batch * ((problem.m + problem.n) * problem.k * problem.size + problem.m * problem.n * problem.out)
    return Predicted(seconds, problem.operations, nbytes, limit=best.limit)


def _tile_time(chip: ChipFigures, problem: Problem, tile: Tile, launch: float, pipeline: dict[str, bool]) -> OutlinedTime:
    """Of one tile. Parts of K are added up in memory, which a kernel of its own clears before, or in a kernel afterwards."""
    time = outlined_time(chip, outlined(chip, problem, tile, **pipeline), launch)
    return time if tile.split == 1 else replace(time, seconds=time.seconds + 2 * KERNEL_US * 1e-6)


def outlined(chip: ChipFigures, problem: Problem, tile: Tile, *, lanes_copy: bool = False, waits: bool = False) -> Outline:
    """The outline of one launch. `lanes_copy`: waves bring tiles through registers; `waits`: loads are not issued early."""
    across, down = ceil(problem.m / tile.m), ceil(problem.n / tile.n)
    workgroups = across * down * tile.split * problem.batch
    steps = max(1, ceil(problem.k / tile.k / tile.split))
    moved = (tile.m + tile.n) * tile.k * problem.size
    scaling = 2.0 * tile.m * tile.n * tile.k / 128 if problem.scaled else 0.0
    step = Work(
        {problem.kind: float(tile.m * tile.n * tile.k)}, scaling, shared=_shared(chip, problem, tile), staged=moved, read=moved
    )
    result = tile.m * tile.n * (problem.out if tile.split == 1 else 8)
    # Waves that copy store results as the matrix unit leaves them: 16 lanes have 16 neighbours.
    filled = min(1.0, 16 * problem.out / 64) if lanes_copy else 1.0
    last = Work(vector=tile.m * tile.n * 2.0, shared=0.0 if lanes_copy else 2.0 * result, write=result, filled=filled)
    resident = _resident(chip, problem, tile)
    memory, middle = _traffic(chip, problem, tile, resident, across, down)
    return Outline(
        workgroups,
        tile.waves,
        resident,
        steps,
        step,
        Work(read=0.0),
        last,
        ahead=0.0 if waits else max(1, tile.stages - 1),
        through_shared=lanes_copy,
        memory=memory,
        middle=middle,
        cached=problem.warm and memory == 0.0,
    )


def _problem(row: Row) -> Problem:
    n = row.numbers
    if not {"M", "N", "K"} <= n.keys():
        raise CannotModelError("the shape of the product is not stated as M, N and K")
    kind = "f8" if "fp8" in row.dtype else "s8" if "int8" in row.dtype else "tf32" if row.dtype.startswith("tf32") else "f16"
    if "no TF32" in row.dtype:
        kind = "f32"
    size = {"f8": 1, "s8": 1, "tf32": 4, "f32": 4}.get(kind, 2)
    out = size if "Triton" in row.implementation and kind != "s8" else max(2, size)
    warm = "CUDA graph" in row.config and "cuBLAS" not in row.implementation and "weight copies" not in row.config
    return Problem(
        int(n["M"]),
        int(n["N"]),
        int(n["K"]),
        kind,
        size,
        out,
        int(n.get("B", 1)),
        warm or "CUDA-graph" in row.config,
        "block" in row.dtype,
    )


def _launch(row: Row, chip: ChipFigures) -> float:
    """Microseconds that the way of measuring adds."""
    profiled = row.source in ("rtsk", "rtref")  # times of kernels, with operands that take turns in memory
    graphs = ("CUDA graph", "CUDA-graph", "HIP graph", "proton")
    return chip["launch"] if profiled or any(word in row.config for word in graphs) else chip["event_launch"]


def _tiles(row: Row, chip: ChipFigures) -> Iterable[Tile]:
    n = row.numbers
    if "BLOCK_SIZE_M" in n:
        return (
            Tile(
                int(n["BLOCK_SIZE_M"]),
                int(n["BLOCK_SIZE_N"]),
                int(n["BLOCK_SIZE_K"]),
                int(n["num_warps"]),
                int(n["num_stages"]),
                int(n["GROUP_SIZE_M"]),
                int(n.get("SPLIT_K", 1)),
                "NUM_SMS" in n,
                remapped=chip["lanes"] == 64,  # streamk_kernel.py and tune_gemm's matmul_kernel.py of ROCm/triton
            ),
        )
    if "BLOCK=" in row.config:
        m, n_, k = (int(part) for part in row.config.split("BLOCK=")[1].split()[0].split("x"))
        persistent = "persistent" in row.implementation and "non-persistent" not in row.implementation
        waves, stages, group = (int(n.get(name, usual)) for name, usual in (("warps", 8), ("buffers", 2), ("GROUP_SIZE_M", 8)))
        return (Tile(m, n_, k, waves, stages, group, persistent=persistent, resident=int(n.get("occupancy", 0))),)
    named = _CK.search(row.config) or _ASM.search(row.config)
    if named:
        m, n_, k = (
            (int(named[part]) for part in ("m", "n", "k")) if "k" in named.groupdict() else (int(named["m"]), int(named["n"]), 128)
        )
        return (Tile(m, n_, k, 4, 2, split=max(1, int(n.get("splitK", 1)))),)
    if "TLX gfx942" in row.implementation:
        return _TLX_MATRIX_CORES
    if chip["lanes"] == 64:
        return _MATRIX_CORES
    if "Triton" in row.implementation:
        hopper = chip["f16_rate"] > 1024
        return (*(_HOPPER_TRITON if hopper else _AMPERE_TRITON), *(_SMALL if "ops.matmul" in row.implementation else ()))
    return (*_LARGE, *_SMALL)


def _pipeline(row: Row, chip: ChipFigures) -> dict[str, bool]:
    lanes = chip["lanes"] == 64 and any(word in row.implementation for word in ("Triton", "TLX", "CK"))
    return {"lanes_copy": lanes, "waits": "not pipelined" in row.config}


def _fits(chip: ChipFigures, problem: Problem, tile: Tile) -> bool:
    return tile.split == 1 or (problem.k // tile.split >= tile.k and problem.m * problem.n <= 1 << 22)


def _lanes(chip: ChipFigures) -> int:
    return int(chip["lanes"])


def _resident(chip: ChipFigures, problem: Problem, tile: Tile) -> int:
    if tile.persistent or tile.resident:
        return max(1, tile.resident)
    lanes = _lanes(chip) * tile.waves
    tile_bytes = (tile.m + tile.n) * tile.k * problem.size
    slots = max(1, tile.stages - 1) if chip["lanes"] == 64 else max(1, tile.stages)
    # On AMD the step's fragments and the next step's tiles are in registers too: Triton 3.9 makes 192 of the persistent kernel
    # with 256 by 128 by 64 and 8 waves, 206 with 128 by 128 by 128.
    staged = (tile_bytes + _shared(chip, problem, tile)) / 4 / lanes if chip["lanes"] == 64 else 16
    held = tile.m * tile.n / lanes + _REGISTERS_BESIDE + staged
    by_registers = chip["registers"] // (min(held, 512 if chip["lanes"] == 64 else 255) * lanes)
    return int(max(1, min(chip["shared_bytes"] // (slots * tile_bytes), by_registers, chip["waves"] // tile.waves)))


def _shared(chip: ChipFigures, problem: Problem, tile: Tile) -> float:
    """Bytes that waves, or a warpgroup's matrix unit, read of shared memory in a step."""
    if chip["f16_rate"] > 1024 and chip["lanes"] == 32 and problem.kind != "f32":
        rows = 64 if chip["f16_rate"] <= 2048 else 128  # of one product: wgmma's and tcgen05.mma's
        return tile.k * problem.size * (tile.m + tile.n * max(1, tile.m // rows))
    down = 1
    while down * down < tile.waves and tile.m // (2 * down) >= 16:
        down *= 2
    across = max(1, min(tile.waves // down, tile.n // 8))
    copies = max(1, tile.waves // (down * across))
    return tile.k * problem.size * copies * (tile.m * across + tile.n * down)


def _traffic(chip: ChipFigures, problem: Problem, tile: Tile, resident: int, across: int, down: int) -> tuple[float, float]:
    """Bytes of the launch from memory, and from the cache before it, by the tiles that run at the same time."""
    together = min(across * down, int(chip["processors"]) * resident)
    dies = int(chip["dies"]) if "dies" in chip.figures else 1
    order, die = _placed(tile, across * down, together, dies, int(chip["processors"]))
    width = tile.group * down
    first = order // width * tile.group
    rows = first + order % width % np.minimum(across - first, tile.group)
    columns = order % width // np.minimum(across - first, tile.group)
    rounds = across * down / together
    depth = problem.k * problem.size

    def unique(which: np.ndarray) -> float:
        return (len(np.unique(rows[which])) * tile.m + len(np.unique(columns[which])) * tile.n) * depth * rounds

    operands = (problem.m + problem.n) * depth
    result = problem.m * problem.n * problem.out * (1 if tile.split == 1 else 3)
    through = sum(unique(die == one) for one in range(dies) if (die == one).any())
    last = chip["mall_bytes"] if "mall_bytes" in chip.figures else chip["l2_bytes"]
    memory = operands if operands <= last else max(operands, unique(order >= 0))
    if problem.warm and (operands + result) * problem.batch <= last:
        return 0.0, problem.batch * (through + result)
    return problem.batch * (memory + result), problem.batch * ((through if dies > 1 else memory) + result)


def _placed(tile: Tile, tiles: int, together: int, dies: int, processors: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the tiles that run together, and the die of each: workgroups go to the dies in turn, and a kernel that numbers
    them anew gives each die neighbours, of all tiles, or of those of a round where its programs persist."""
    order = np.arange(together)
    if not tile.remapped:
        return order, order % dies
    if tile.persistent:
        return order, order // ceil(processors / dies)
    share = ceil(tiles / dies)
    return order % dies * share + order // dies, order % dies


def _quantised(row: Row, chip: ChipFigures) -> float:
    """The kernel before the product that brings the activations to fp8."""
    elements = row.numbers["M"] * row.numbers["K"]
    return KERNEL_US * 1e-6 + elements * 3 / (chip["memory_rate"] * 1e9) + (chip["memory_latency"] / chip["clock"]) * 1e-6


def _grouped(row: Row, chip: ChipFigures) -> Predicted:
    words = row.shape.split()
    count, side = int(words[0]), int(words[3].partition("^")[0])
    problem = Problem(side, side, side, "f16", 2, 2, count)
    tiles = (Tile(128, 128, 32, 4, 2), Tile(64, 64, 32, 4, 2))
    lanes = chip["lanes"] == 64
    best = min(
        (outlined_time(chip, outlined(chip, problem, tile, lanes_copy=lanes), chip["event_launch"]) for tile in tiles),
        key=lambda time: time.seconds,
    )
    return Predicted(best.seconds, problem.operations, limit=best.limit)
