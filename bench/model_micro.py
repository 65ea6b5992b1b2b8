"""Microbenchmarks by the figures of a product: pointer chases, streams at a stated occupancy, rooflines, accesses by stride."""

from __future__ import annotations

import re
from math import ceil

from model_rows import Predicted, Row
from published_points import CannotModelError

from tilefw.api.timing import ChipFigures

_LINE = 128
_BESIDE_SHARED = 24576  # bytes of the first cache: 28 KB are beside the most that shared memory takes, 4 not for data (assumption)


def predicted_micro(row: Row) -> Predicted:
    """What a microbenchmark gives, in its own unit. Raises CannotModelError."""
    chip = row.figures()
    made = _BY_SOURCE.get(row.source)
    if made is None:
        raise CannotModelError("no formula of the model of time covers this microbenchmark")
    return Predicted(value=made(row, chip), how="figures")


def _found(pattern: str, text: str) -> float:
    match = re.search(pattern, text)
    if match is None:
        raise CannotModelError("the microbenchmark's parameters are not in its row")
    return float(match[1])


def _chase(row: Row, chip: ChipFigures) -> float:
    """A pointer chase is answered by the smallest cache that holds its working set; a set a bit larger is answered in part."""
    if "TMA" in row.shape:
        raise CannotModelError("the latency of a copy engine is not a figure of the products' files")
    size = _found(r"working set ([\d.]+) KiB", row.shape) * 1024
    levels = [(_l1_bytes(chip), chip["l1_latency"]), (chip["l2_bytes"], chip["l2_latency"])]
    if "mall_rate" in chip.figures:
        levels.append((chip["mall_bytes"], chip["mall_latency"]))
    levels.append((float("inf"), chip["memory_latency"]))
    for (holds, latency), (_, beyond) in zip(levels, [*levels[1:], levels[-1]], strict=True):
        if size <= holds:
            return latency
        if size < 2 * holds:
            hits = holds / size  # a random chase over a cache that is too small
            return latency * hits + beyond * (1 - hits)
    raise AssertionError("the last level holds everything")


def _l1_bytes(chip: ChipFigures) -> float:
    """NVIDIA's first cache is what shared memory leaves, here all but some; AMD's is of its own."""
    return 16384 if "MI2" in chip.chip else 32768 if chip["lanes"] == 64 else chip["shared_bytes"] + _BESIDE_SHARED


def _stream(row: Row, chip: ChipFigures) -> float:
    """Bytes of the resident threads, one element each, in the time from a block to the next; at most what memory moves."""
    block = _found(r"block=(\d+)", row.shape)
    arrays = {"init": 1, "read": 1, "scale": 2, "triad": 3}[row.shape.split()[0]]
    blocks = 1 if "40GB" in row.chip else 2  # occupancies in that file are of one block
    between = chip["workgroup_cycles"] + (chip["memory_latency"] if row.shape.split()[0] != "init" else chip["l2_latency"])
    flying = chip["processors"] * blocks * block * arrays * 8
    return _slower_of(flying / (between / (chip["clock"] * 1e6)) / 1e9, chip["memory_rate"])


def _slower_of(*rates: float) -> float:
    """The rate of what several limits hold back, each the more the nearer it is (`outline.py`)."""
    return sum(rate**-4 for rate in rates) ** -0.25


def _cache(row: Row, chip: ChipFigures) -> float:
    """All processors read the same buffer: the level that holds it."""
    size = _found(r"of (\d+) kB", row.shape) * 1024
    if size <= _l1_bytes(chip):
        return chip["l1_rate"] * chip["processors"] * chip["clock"] / 1e3
    return _shared(chip, size)


def _shared(chip: ChipFigures, size: float) -> float:
    """Reads over a working set: what does not fit the cache goes at the rate of what is behind."""
    behind = chip["memory_rate"]
    if "mall_rate" in chip.figures and size <= chip["mall_bytes"]:
        behind = chip["mall_rate"]
    holds = chip["l2_bytes"]
    hits = (
        1.0 if size <= holds else max(0.0, 2 * holds / size - 1)
    )  # least recently used over a cyclic set, softened by random order
    return 1.0 / (hits / chip["l2_rate"] + (1 - hits) / behind)


def _working_set(row: Row, chip: ChipFigures) -> float:
    return _shared(chip, _found(r"working set (\d+) kB", row.shape) * 1024)


def _roofline(row: Row, chip: ChipFigures) -> float:
    """Multiply-adds by the byte, at the clock that was measured."""
    intensity = _found(r"([\d.]+) Flop/B", row.shape)
    clock = row.clock() or chip["clock"]
    peak = 2 * chip["f32_rate"] * chip["processors"] * clock / 1e3
    rate = _slower_of(chip["memory_rate"], peak / intensity)
    return rate if row.unit == "GB/s" else rate * intensity


def _small_copy(row: Row, chip: ChipFigures) -> float:
    """Launches one after the other; arrays stay in the L2."""
    nbytes = _found(r"(\d+) doubles", row.shape) * 16
    rate = chip["l2_rate"] if nbytes <= chip["l2_bytes"] else chip["memory_rate"]
    start = 2.6e-6  # RRZE-HPC/gpu-benches, gpu-small-kernels: 4096 doubles on an A100-80GB (no row that is held out)
    seconds = start + nbytes / (rate * 1e9)
    return nbytes / seconds / 1e9


def _strides(row: Row, chip: ChipFigures) -> float:
    """A load takes a pass for each line that its lanes touch, of 128 bytes, or of 64 on AMD's chips."""
    size = 8 if "double" in row.shape else 4
    if "block" in row.shape:
        raise CannotModelError("what `block` means for the addresses is not said by the row")
    stride = _found(r"stride (\d+)", row.shape)
    line = _LINE if chip["lanes"] == 32 else _LINE // 2
    passes = max(chip["lanes"] * size / line, ceil(chip["lanes"] * min(stride * size, line) / line))
    return chip["lanes"] * size / passes


def _coalescing(row: Row, chip: ChipFigures) -> float:
    if row.kind.endswith("throughput"):
        return 0.5 if "REDUX" in row.shape else chip["shared_rate"]
    useful = _found(r"([\d.]+) GB useful", row.shape) if "useful" in row.shape else 0.0
    if not useful:
        raise CannotModelError("the permutation's sectors are not in the row")
    return useful / chip["memory_rate"] * 1e3


def _copy_engine(row: Row, chip: ChipFigures) -> float:
    if row.unit == "cycles":
        return _chase(row, chip)
    return chip["memory_rate"]


def _matrix(row: Row, chip: ChipFigures) -> float:
    """The cycles of a product of one matrix core, by the rate of its type."""
    shape = re.search(r"(\d+)x(\d+)x(\d+)", row.shape)
    if shape is None:
        raise CannotModelError("the product's shape is not in its name")
    m, n, k = map(int, shape.groups())
    kind = (
        "f8"
        if "fp8" in row.shape or "bf8" in row.shape
        else "s8"
        if "_i8" in row.shape
        else "tf32"
        if "xf32" in row.shape
        else "f16"
    )
    if row.shape.endswith("_f64"):
        kind = "f64"
    rate = chip["issue_rate"] * 2 if row.shape.endswith("_f32") and "xf32" not in row.shape else chip[f"{kind}_rate"]
    return m * n * k / (rate / chip["schedulers"])


_BY_SOURCE = {
    "rzlat": _chase,
    "rzst": _stream,
    "rzl1": _cache,
    "rzl2": _working_set,
    "rzrf": _roofline,
    "rzsk": _small_copy,
    "rzsd": _strides,
    "qk": _coalescing,
    "hop": _copy_engine,
    "isa": _matrix,
}
