"""What is said of one chip: the record that every page of `chips/` fills in, and what a module's `.target` means to it.

A compute capability is a chip here. Numbers that differ between products of one compute capability (multiprocessors, rates of
matrix units) are those of the product that its page names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

Version = tuple[int, int]

_NAME = re.compile(r"sm_(\d{2,3})([af]?)$")


@dataclass(frozen=True, slots=True)
class Architecture:
    """`sm_90a` as a number and a suffix: "" for what later chips run too, "a" for one chip alone, "f" for its family.

    PTX ISA, ".target": "architecture-specific" (a) and "family-specific" (f) targets.
    """

    number: int
    suffix: str = ""

    @classmethod
    def parse(cls, name: str) -> Architecture:
        """Raises ValueError for what is not target's name."""
        match = _NAME.match(name)
        if match is None:
            raise ValueError(f"{name!r} is not a target")
        return cls(int(match[1]), match[2])

    def __str__(self) -> str:
        return f"sm_{self.number}{self.suffix}"

    def runs_on(self, chip: Architecture) -> bool:
        """Whether code for this target runs on `chip`."""
        if self.suffix == "a":
            return self == chip
        if self.suffix == "f":
            return self.number // 10 == chip.number // 10 and self.number <= chip.number
        return self.number <= chip.number


@dataclass(frozen=True, slots=True)
class SumPrecision:
    """How a matrix unit adds the products of one element type: `bytes` of an operand's k at once, `fraction_bits` kept below the
    largest exponent. `fraction_bits` 0: a chain of fused multiply-adds. `result_fraction_bits`, where it is not 0, are kept of a
    result in f32; `zero_fraction_bits` decide which exponent a zero has, where they are not `fraction_bits`."""

    bytes: int
    fraction_bits: int
    result_fraction_bits: int = 0
    zero_fraction_bits: int = 0


@dataclass(frozen=True, eq=False)
class Chip:
    """One compute capability. Sizes in bytes; rates in multiply-adds a cycle of one matrix unit; latencies in cycles.

    `first_version`: the first `.version` with the chip as a `.target`. `matrix_rates` and `sums` by PTX's element type; an element
    without a rate has no matrix instruction that pays; those of products of a warpgroup are `warpgroup_rates` and `warpgroup_sums`,
    empty where the chip has none. `removed`: instructions of the chip's generation that it does not have, by
    their opcode's beginning. `usual_system`: the system of links (`PLUGIN:NAME`) in which the chip mostly stands.
    """

    name: str
    target: str
    aliases: tuple[str, ...]
    summary: str
    first_version: Version
    processors: int
    threads_per_processor: int
    workgroups_per_processor: int
    shared_bytes: int
    shared_bytes_per_processor: int
    matrix_rates: Mapping[str, float]
    sums: Mapping[str, SumPrecision]
    latencies: Mapping[str, int]
    warpgroup_rates: Mapping[str, float] = field(default_factory=dict)
    warpgroup_sums: Mapping[str, SumPrecision] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    lanes: int = 32
    threads_per_workgroup: int = 1024
    registers_per_thread: int = 255
    registers_per_processor: int = 65536
    static_shared_bytes: int = 48 << 10
    local_bytes: int = 512 << 10
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    banks: int = 32
    bank_bytes: int = 4
    access_bytes: int = 16
    pointer_bits: int = 64
    copy_bytes: tuple[int, ...] = (4, 8, 16)
    workgroups_per_cluster: int = 1
    register_unit: int = 256
    warp_unit: int = 4
    shared_unit: int = 128
    system_shared_bytes: int = 1024
    usual_system: str = ""

    def __str__(self) -> str:
        return self.name

    @cached_property
    def architecture(self) -> Architecture:
        return Architecture.parse(self.name)

    def lacks(self, opcode: str) -> bool:
        """Whether the chip was made without this instruction."""
        return any(opcode == one or opcode.startswith(f"{one}.") for one in self.removed)

    @property
    def limits(self) -> Mapping[str, int]:
        names = (
            "threads_per_workgroup", "shared_bytes", "shared_bytes_per_processor", "registers_per_thread",
            "registers_per_processor", "threads_per_processor", "workgroups_per_processor", "processors", "lanes",
            "workgroups_per_cluster",
        )
        return {name: getattr(self, name) for name in names}
