"""Which instructions a processor has that multiply narrow factors by pairs or fours and sum them up, and what each takes.

Intel SDM, volume 2: TDPBF16PS, TDPBSSD and TDPBUUD on tiles; VPDPBUSD on vectors. Instructions that nothing here can carry out are
left out: AMX-FP16, AVX-VNNI-INT8, AVX10.2, and the products of AArch64. So is VDPBF16PS, which takes four times as long as loops of
fp32 where it was measured, on Emerald Rapids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilefw_cpu.factor_planes import PLANES
from tilefw_cpu.processor import Processor


@dataclass(frozen=True, slots=True)
class MatrixEngine:
    """One family of instructions: the features that it needs, the types that it takes, `bits` of a vector of sums. `tiles`: sums
    are in tile registers. `instructions` by type."""

    needs: frozenset[str]
    instructions: Mapping[str, str]
    bits: int = 512
    tiles: bool = False

    @property
    def lanes(self) -> int:
        """How many sums of 32 bits a vector has, or a row of a tile."""
        return self.bits // 32


_WIDE = frozenset({"avx512f", "avx512bw", "avx512vl", "avx512dq"})
# In the order in which they are preferred.
ENGINES = (
    # Wider factors are sums of bf16: `factor_planes.py`.
    MatrixEngine(_WIDE | {"amx-tile", "amx-bf16"}, dict.fromkeys(("bf16", *PLANES), "tdpbf16ps"), tiles=True),
    MatrixEngine(_WIDE | {"amx-tile", "amx-int8"}, {"i8": "tdpbssd", "u8": "tdpbuud"}, tiles=True),
    MatrixEngine(_WIDE | {"avx512vnni"}, dict.fromkeys(("i8", "u8"), "avx512.vpdpbusd.512")),
    MatrixEngine(frozenset({"avx2", "avxvnni"}), dict.fromkeys(("i8", "u8"), "avx512.vpdpbusd.256"), bits=256),
)


def engines_of(processor: Processor) -> Mapping[str, MatrixEngine]:
    """The engine for each type of factors."""
    found: dict[str, MatrixEngine] = {}
    for engine in ENGINES:
        if engine.needs <= processor.features and engine.bits <= processor.vector_bits:
            found = {**dict.fromkeys(engine.instructions, engine), **found}
    return found
