"""What a chip generation is to the plugin: one value, from which compiler, assembler, disassembler and simulator are made.

A page of this folder holds one `Chip`. Numbers that all generations of the family share (the width of a wave, the codes of
registers, the places of opcodes) are in `tilefw_amd.isa`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

WAVE = 64  # lanes of a wave (CDNA3 ISA, section "Wavefronts and Workgroups"); all generations of the family
LANE_BITS = WAVE.bit_length() - 1


@dataclass(frozen=True, slots=True)
class MatrixSum:
    """How the matrix unit adds the products of one width of element (`tilefw.api.sim.Accumulation` has the meaning of each).

    `at_once` products are cut `bits` below the largest, toward zero, and added; `groups` partial sums join the running sum with a
    window of `window` bits; `drops_far`: what lies outside the window is dropped.
    """

    at_once: int
    bits: int = 24
    window: int = 31
    groups: int = 1
    drops_far: bool = False


@dataclass(frozen=True, slots=True)
class MatrixHazards:
    """Wait states behind a matrix instruction, by its kind (`xdl`, `sgemm`, `dgemm`) and its passes.

    `read`: until vector arithmetic or A or B of a product reads the result, or anything overwrites it. `memory`: until a memory
    instruction reads it, where that is not `read`; `rewritten`: until vector arithmetic or a load overwrites it, where that is not
    `read`. `addend`: until C of a product overlaps it; `addend_to`: the same by the kind of that product as well, where it is not
    `addend`. `forwarded`: until exactly the same registers are C of the next product, by the passes of the
    first, 0 where absent; `forwarded_dgemm`: the same where both are `dgemm` of so many passes. `overwritten`: until C of an XDL
    product may be overwritten, by its passes. `most` is the largest of all.
    """

    read: Mapping[tuple[str, int], int]
    memory: Mapping[tuple[str, int], int]
    addend: Mapping[tuple[str, int], int]
    addend_to: Mapping[tuple[str, int, str], int]
    forwarded: Mapping[int, int]
    forwarded_dgemm: Mapping[int, int]
    overwritten: Mapping[int, int]
    most: int
    rewritten: Mapping[tuple[str, int], int] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast instructions are, in cycles.

    `latency`: from issue to a dependent result, by unit; matrix instructions take `pass_cycles` a pass. `vector_cycles`: what a
    vector instruction keeps its pipe; `slow` ones and transcendentals `quarter_rate` times as long. `bytes_a_cycle`: what a
    compute unit's memory pipe moves, by unit. `branch`, `barrier`: latencies of control. `beside`: cycles after the issue of an
    XDL product from which vector instructions of the SIMD run beside it, for dense and sparse products.
    """

    latency: Mapping[str, int]
    vector_cycles: int
    pass_cycles: int
    quarter_rate: int
    bytes_a_cycle: Mapping[str, int]
    slow: frozenset[str]
    branch: int
    barrier: int
    beside: Mapping[str, int]


@dataclass(frozen=True, eq=False)  # one object a chip: caches hash it
class Chip:
    """One generation.

    `name` is LLVM's processor, `target` tilefw's target with its `aliases`, `product` and `summary` what people call it.
    `generation` is the number of the CDNA generation, which rows of the instruction table have in `since` and `until`; `features`
    are what rows ask for in `only`; `removed` are base mnemonics of the generation that the chip was made without. `limits` are
    those of `TargetInfo`. `elf_machine` and `elf_flags` are of the code object's header. `float8` says which format the
    mnemonics' fp8 and bf8 are, in core's names of element types. `matrix_sums` is the matrix unit's rounding by bits of an
    element. `vector_granule` and `shared_granule` are the units in which registers (of a lane) and shared memory (bytes) are
    allocated; `workgroups` how many workgroups of several waves a compute unit holds. `first_hip` is the version of the HIP
    runtime from which on it runs the chip. `usual_system` is the system of links (`PLUGIN:NAME`) in which it mostly stands.
    """

    name: str
    target: str
    aliases: tuple[str, ...]
    product: str
    summary: str
    generation: int
    limits: Mapping[str, int]
    elf_machine: int
    elf_flags: int
    float8: Mapping[str, str]
    rates: Rates
    matrix_hazards: MatrixHazards
    matrix_sums: Mapping[int, MatrixSum]
    vector_granule: int
    shared_granule: int
    workgroups: int
    access_bytes: int
    bank_bytes: int
    pointer_bits: int
    max_grid: tuple[int, int, int]
    features: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    first_hip: tuple[int, int] = (6, 0)
    usual_system: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def triple(self) -> str:
        """The name in `.amdgcn_target` and in the metadata (LLVM AMDGPUUsage, "Target Triples")."""
        return f"amdgcn-amd-amdhsa--{self.name}"
