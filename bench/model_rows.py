"""Rows of a file of published timings: the product that each names, its numbers, and its unit as seconds."""

from __future__ import annotations

import csv
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path

from published_points import CannotModelError

from tilefw.api.timing import ChipFigures, packaged_figures

_NVIDIA, _AMD = "tilefw_nvidia.timing.products", "tilefw_amd.timing.products"
# The product of a chip by the beginning of its name in a row, the first that fits. A variant that is not stated is the SXM card.
_PRODUCTS: tuple[tuple[str, str, str], ...] = (
    ("A100-PCIe", _NVIDIA, "a100_pcie_80gb"),
    ("A100 (mem clock 1215", _NVIDIA, "a100_sxm4_40gb"),
    ("A100-40GB", _NVIDIA, "a100_sxm4_40gb"),
    ("A100", _NVIDIA, "a100_sxm4_80gb"),
    ("H100-PCIe", _NVIDIA, "h100_pcie_80gb"),
    ("H800-PCIe", _NVIDIA, "h100_pcie_80gb"),
    ("GH200 (H100 141GB", _NVIDIA, "h200"),
    ("GH200", _NVIDIA, "gh200_96gb"),
    ("H100", _NVIDIA, "h100_sxm5_80gb"),
    ("H800", _NVIDIA, "h100_sxm5_80gb"),
    ("H200-NVL", _NVIDIA, "h200_nvl"),
    ("H200", _NVIDIA, "h200"),
    ("B200", _NVIDIA, "b200"),
    ("GB200", _NVIDIA, "b200"),
    ("MI300A", _AMD, "mi300a"),
    ("MI300X", _AMD, "mi300x"),
    ("MI325X", _AMD, "mi325x"),
    ("MI355X", _AMD, "mi355x"),
    ("MI210", _AMD, "mi210"),
    ("MI250X (1 GCD)", _AMD, "mi210"),
)
_SIZES = (
    ("fp64", 8),
    ("int64", 8),
    ("fp32", 4),
    ("float32", 4),
    ("tf32", 4),
    ("int32", 4),
    ("fp8", 1),
    ("int8", 1),
    ("f64", 8),
    ("f32", 4),
)
HOST_TIMED = "the source says that the host's Python was timed, not the chip"
KERNEL_US = 1.0  # a kernel between two kernels of a graph: its start alone, about half of `launch` (assumption)
_POSITIVE = frozenset(("M", "N", "K", "B", "S", "D", "H", "HQ", "HK", "Sq", "Sk", "T", "V", "C")) | frozenset(
    ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "SPLIT_K", "NUM_SMS")
)
_NUMBER = re.compile(r"(\w+)=(-?(?:\d+\.?\d*|\.\d+))(?:\^(\d+))?", re.ASCII)
_CLOCK = re.compile(r"sm clock (\d+) MHz|sm (\d+) MHz|clock (\d{3,4}) MHz")


@dataclass(frozen=True, slots=True)
class Predicted:
    """A launch's `seconds`, and what the row's unit may count: arithmetic `operations`, `nbytes`. `value`: what is not a time,
    in the row's own unit. `how`: the model that said it; `limit`: what it names as limiting."""

    seconds: float = 0.0
    operations: float = 0.0
    nbytes: float = 0.0
    value: float | None = None
    how: str = "outline"
    limit: str = ""


@dataclass(frozen=True)
class Row:
    """One published point. `numbers`: all NAME=NUMBER of its shape and configuration."""

    id: str
    chip: str
    kind: str
    shape: str
    dtype: str
    implementation: str
    config: str
    value: float
    unit: str
    mark: str
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def source(self) -> str:
        return self.id.split("-")[0]

    @property
    def held_out(self) -> bool:
        """Whether the row takes no part in any choice of the model."""
        return bool(zlib.crc32(self.id.encode()) & 1)

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return next((size for word, size in _SIZES if word in self.dtype), 2)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of numbers of which a kernel needs at least 1."""
        return tuple(name for name in self.numbers if name in _POSITIVE)

    def figures(self) -> ChipFigures:
        """The row's product. Raises CannotModelError."""
        found = next(((package, name) for start, package, name in _PRODUCTS if self.chip.startswith(start)), None)
        if found is None:
            raise CannotModelError("no target of tilefw has this chip's instructions")
        return _figures(*found)

    def clock(self) -> float | None:
        """The clock that the source states, in MHz."""
        found = _CLOCK.search(self.config)
        return float(next(group for group in found.groups() if group)) if found else None


@cache
def _figures(package: str, name: str) -> ChipFigures:
    return packaged_figures(package, name, name)


def read_rows(path: Path) -> list[Row]:
    """All rows of a file."""
    names = ("id", "chip", "kind", "shape", "dtype", "implementation", "config", "unit", "mark")
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(
                **{name: row[name] for name in names},
                value=float(row["value"]),
                numbers=named_numbers(f"{row['shape']} {row['config']}"),
            )
            for row in csv.DictReader(file)
        ]


def named_numbers(text: str) -> dict[str, float]:
    """All NAME=NUMBER of a text, of one name the first."""
    return {name: _power(float(value), int(power or 1)) for name, value, power in reversed(_NUMBER.findall(text))}


def _power(base: float, exponent: int) -> float:
    try:
        return base**exponent
    except OverflowError:
        return inf


def in_unit(row: Row, found: Predicted, figures: ChipFigures) -> float:
    """A prediction in the row's unit. Raises CannotModelError."""
    if found.value is not None:
        return found.value
    seconds = found.seconds
    per_second = {
        "us": seconds * 1e6,
        "ms": seconds * 1e3,
        "TFLOPS": found.operations / seconds / 1e12,
        "GFLOPS": found.operations / seconds / 1e9,
        "GB/s": found.nbytes / seconds / 1e9,
        "TiB/s": found.nbytes / seconds / 2**40,
        "fraction of DRAM peak": found.nbytes / seconds / 1.555e12,  # datasheet of the A100-SXM4-40GB, whose rows these are
    }
    if row.unit in per_second:
        return per_second[row.unit]
    if row.unit.startswith("fraction of peak tensor FLOPS"):
        kind = "tf32" if row.dtype.startswith(("tf32", "float32")) else "s8" if "int8" in row.dtype else "f16"
        peak = 2 * figures[f"{kind}_rate"] * figures["processors"] * (row.clock() or figures["clock"]) * 1e6
        return found.operations / seconds / peak
    raise CannotModelError(f"a prediction in {row.unit} is not made")


def slower_when_more(row: Row) -> bool:
    """Whether the row's unit is a time."""
    return row.unit in ("us", "ms", "cycles")
