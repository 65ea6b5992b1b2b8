"""The processor at hand: its name and features as LLVM knows them, and how wide its vectors are."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache, cached_property

_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
"""Of x86-64 Linux: the system call, ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA (Documentation/arch/x86/xstate.rst)."""


@dataclass(frozen=True)
class Processor:
    """A processor as LLVM names it; `features` are those that it has, `absent` those that one of its name may have and it has not:
    a virtual machine hides some."""

    triple: str
    name: str
    features: frozenset[str]
    absent: frozenset[str] = frozenset()

    @cached_property
    def vector_bits(self) -> int:
        """The width of its widest vectors for all of floats and integers."""
        for feature, bits in (("avx512bw", 512), ("avx2", 256)):
            if feature in self.features:
                return bits
        return 128

    @property
    def vector_registers(self) -> int:
        """How many vector registers it has (Intel SDM, volume 1, 13.1 and 15.1; Arm ARM, B1.2.1)."""
        return 32 if "avx512vl" in self.features or self.triple.startswith("aarch64") else 16

    @property
    def converts_halves(self) -> bool:
        """Whether it has instructions for conversions from and to fp16; without them LLVM calls a library that may be absent."""
        return bool(self.features & {"f16c", "fp16", "fullfp16"}) or self.triple.startswith("aarch64")

    @property
    def scales(self) -> bool:
        """Whether it has VSCALEF, x times a power of two in one instruction (Intel SDM, volume 2C)."""
        return "avx512f" in self.features and self.vector_bits == 512

    @property
    def ranges(self) -> bool:
        """Whether it has VRANGE, minima and maxima that order zeros."""
        return "avx512dq" in self.features and self.vector_bits == 512

    @property
    def masks_stores(self) -> bool:
        """Whether it has registers of masks, and stores through them at the price of any store. VMASKMOVPS of AVX is microcode on
        AMD's processors (Fog's instruction tables, Zen 3), and without AVX each element is a branch."""
        return "avx512vl" in self.features

    @property
    def flags(self) -> str:
        """The features as LLVM takes them."""
        return ",".join([*(f"+{name}" for name in sorted(self.features)), *(f"-{name}" for name in sorted(self.absent))])

    @property
    def digest(self) -> str:
        """All that code for it depends on, as text."""
        return f"{self.triple} {self.name} {self.flags}"


def processor() -> Processor:
    """The one that this process runs on."""
    import llvmlite.binding as llvm

    found = llvm.get_host_cpu_features()
    triple = llvm.get_process_triple()
    refused = frozenset(name for name in found if name.startswith("amx")) if not tiles_permitted(triple) else frozenset[str]()
    have, lack = (frozenset(name for name, there in found.items() if there is wanted) for wanted in (True, False))
    return Processor(triple, llvm.get_host_cpu_name(), have - refused, lack | refused)


@cache
def tiles_permitted(triple: str) -> bool:
    """Whether the process may use tile registers (AMX), whose contents Linux keeps for those that have asked, and their forks."""
    if not triple.startswith("x86_64") or not sys.platform.startswith("linux"):
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0
