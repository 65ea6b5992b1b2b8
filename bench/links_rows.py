"""Rows of a file of published communication figures: the system that each names, its numbers, and its unit as microseconds."""

from __future__ import annotations

import csv
import re
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from published_points import CannotModelError

from tilefw.distributed.links.system import System, read_system

_NVIDIA, _AMD = "tilefw_nvidia.systems", "tilefw_amd.systems"
# The file of a system by the beginning of its name in a row, the first that fits, and its nodes; 0 where the row has them.
_SYSTEMS: tuple[tuple[str, str, str, int], ...] = (
    ("8xA100 (Azure", _NVIDIA, "a100_azure", 1),
    ("8xA100", _NVIDIA, "a100_sxm", 1),
    ("2x p4de", _NVIDIA, "p4de_efa", 2),
    ("2x BM.GPU.B4.8", _NVIDIA, "a100_roce", 2),
    ("2x p5.48xlarge", _NVIDIA, "p5_efa", 2),
    ("CoreWeave 8x8 H100", _NVIDIA, "h100_ib", 8),
    ("4x8 B200", _NVIDIA, "p6_efa", 4),
    ("GB200 NVL72 1 rack", _NVIDIA, "gb200", 1),
    ("GB200 NVL72 2 racks", _NVIDIA, "nvl72_ib", 2),
    ("GB200 NVL72 20 racks", _NVIDIA, "nvl72_ib", 20),
    ("GB200", _NVIDIA, "gb200", 1),
    ("8xB200 (AWS", _NVIDIA, "b200_aws", 1),
    ("8xB200", _NVIDIA, "b200", 1),
    ("8xB300", _NVIDIA, "b200", 1),
    ("SM100 NVLink", _NVIDIA, "b200", 1),
    ("SM100+CX7", _NVIDIA, "h100_ib", 0),
    ("SM90+CX7", _NVIDIA, "h100_ib", 0),
    ("H800+CX7", _NVIDIA, "h100_ib", 0),
    ("8xH800 NVLink", _NVIDIA, "h800", 1),
    ("4x8 H800", _NVIDIA, "h100_ib", 4),
    ("8xH20 ", _NVIDIA, "h20", 1),
    ("8xH200", _NVIDIA, "h200_sxm", 1),
    ("H200", _NVIDIA, "h200_sxm", 1),
    ("8xH20", _NVIDIA, "h20", 1),
    ("8xH100", _NVIDIA, "h100_sxm", 1),
    ("8x Hopper", _NVIDIA, "h100_sxm", 1),
    ("p5.48xlarge", _NVIDIA, "h100_sxm", 1),
    ("H100", _NVIDIA, "h100_sxm", 1),
    ("SM9.0", _NVIDIA, "h100_sxm", 1),
    ("PCIe5", _NVIDIA, "h100_sxm", 1),
    ("2x BM.GPU.MI300X", _AMD, "mi300x_roce", 2),
    ("2x8 MI300X", _AMD, "mi300x_roce", 2),
    ("8xMI300X", _AMD, "mi300x", 1),
    ("8xMI355X", _AMD, "mi355x", 1),
    ("MI250X", _AMD, "mi250x", 1),
)
_FACTORS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}
# Rows that figures of kind `measurement` are taken from, in documents of few numbers, whatever the CRC-32 of their ids.
_TAKEN = frozenset({"L2383", "L2388", "L2411", "L2426"})
_TAKEN_LATER = frozenset({"L2259", "L2265"})  # NCCL of registered windows: seen in a pair in the wrong order
_TOKENS = re.compile(r"tok=(\d+) H=(\d+) k=(\d+)")


@dataclass(frozen=True, slots=True)
class Row:
    """One published figure."""

    id: str
    system: str
    library: str
    op: str
    ranks: int
    size: float
    value: float
    unit: str
    source: str
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def part(self) -> str:
        """`seen` from the beginning, `seen later`, or `held out`: by the CRC-32 of the id."""
        if self.id in _TAKEN:
            return "seen"
        if self.id in _TAKEN_LATER:
            return "seen later"
        return ("seen", "seen later", "seen", "held out")[zlib.crc32(self.id.encode()) % 4]

    @property
    def operation(self) -> str:
        """The name that the model has for the row's operation, or that of the row."""
        word = self.op.partition(" ")[0]
        return {"alltoall": "all_to_all"}.get(word, word)

    @property
    def is_rate(self) -> bool:
        return self.unit.startswith(("GB/s", "GiB/s"))

    def place(self) -> tuple[System, int]:
        """The system and how many nodes of it; raises CannotModelError."""
        for start, package, name, nodes in _SYSTEMS:
            if self.system.startswith(start):
                if name == "gb200" and self.library.startswith("vLLM"):
                    name = "gb200_graph"
                return _system(package, name), nodes
        raise CannotModelError("the source does not name a system that has a file of figures")

    def in_unit(self, microseconds: float) -> float:
        """Microseconds of a collective as the row counts them."""
        if self.unit.startswith("us"):
            return microseconds
        if self.unit == "ms":
            return microseconds / 1e3
        if not self.is_rate or self.operation not in _FACTORS or not self.size:
            raise CannotModelError(f"a time in {self.unit} of {self.operation}")
        moved = self.size * (_FACTORS[self.operation] * (self.ranks - 1) / self.ranks if "busbw" in self.unit else 1.0)
        return moved / microseconds / 1e3


@cache
def _system(package: str, name: str) -> System:
    return read_system(package, name)


def read_rows(path: Path) -> list[Row]:
    """All rows of the file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_row(raw) for raw in csv.DictReader(file)]


def _row(raw: dict[str, str]) -> Row:
    tokens = _TOKENS.search(raw["op"])
    numbers: dict[str, int] = {}
    if tokens:
        numbers = {name: int(text) for name, text in zip(("tokens", "hidden", "experts"), tokens.groups(), strict=True)}
    return Row(
        raw["id"], raw["system"], raw["library"], raw["op"], int(raw["ranks"] or 0), float(raw["bytes"] or 0), float(raw["value"]),
        raw["unit"], raw["source"], numbers,
    )
