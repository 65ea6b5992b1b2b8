"""What instructions of a wave cost: pipes and passes by the chip's page, memory and launches by its file of figures."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from tilefw.api.timing import ChipFigures, ChipTiming, InstructionCost, MemoryLevel, Purpose
from tilefw_amd.chips import WAVE
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine.timing import Timing, timing

# The pipe of each unit. Waits and branches are no work of a pipe, and take a turn alone.
_PIPES = {
    "salu": "scalar", "smem": "scalar memory", "valu": "vector", "valu64": "vector", "trans": "vector", "matrix": "matrix",
    "lds": "LDS issue", "vmem": "vector memory", "export": "control", "control": "control",
}
# What instructions are for, by the beginning of the name; registers wait in accumulation registers, then in scratch memory.
_PURPOSES: tuple[tuple[str, Purpose], ...] = (
    ("v_cvt_", "conversion"), ("scratch_", "spill"), ("v_accvgpr_", "spill"), ("v_div_", "special"), ("v_rcp_", "special"),
    ("v_rsq_", "special"), ("v_sqrt_", "special"), ("v_exp_", "special"), ("v_log_", "special"), ("v_sin_", "special"),
    ("v_cos_", "special"), ("v_trig_", "special"),
)

# Products with an addend that take and give either precision: by 1 with -0 added they are how the compiler converts. It keeps
# the 1 in a scalar register, and no other factor of such a product (select/combine.py).
_CONVERTS = re.compile(r"v_fma_mix.*, (s\d+|1\.0), neg\(0\)")

# An instruction of each kind; of an integer's division the one that it is made with.
_TYPICAL = {
    "integer": "v_add_u32", "float": "v_fma_f32", "division": "v_rcp_f32", "special": "v_exp_f32", "conversion": "v_cvt_f16_f32",
    "shuffle": "ds_bpermute_b32", "shared": "ds_read_b32", "memory": "global_load_dword", "matrix": "v_mfma_f32_16x16x16_f16",
}


def chip_timing(isa: InstructionSet, figures: ChipFigures) -> ChipTiming:
    """The chip by its page and figures."""
    chip, f = isa.chip, figures
    clock, dies = f["clock"] * 1e6, chip.limits["dies"]

    def rate(name: str) -> float:
        return f[name] * 1e9 / clock

    costs = WaveCosts(isa, f)
    return ChipTiming(
        figures=f, product=chip.product, clock_hz=clock, processors=chip.limits["processors"], dies=dies,
        schedulers=chip.limits["simds_per_processor"], issue_interval=f["issue_interval"],
        pipes={
            "vector": "scheduler", "matrix": "scheduler", "control": "scheduler", "scalar": "scheduler",
            "scalar memory": "processor", "LDS issue": "processor", "LDS": "processor", "vector memory": "processor",
        },
        shared_pipe="LDS", shared_pass=f["shared_pass"], barrier=f["barrier"],
        levels=(
            MemoryLevel("L1", "processor", int(f["l1_bytes"]), f["l1_latency"], f["l1_rate"], 128),
            MemoryLevel("L2", "die", int(f["l2_bytes"]), f["l2_latency"], rate("l2_rate") / dies),
            MemoryLevel("MALL", "chip", int(f["mall_bytes"]), f["mall_latency"], rate("mall_rate")),
            MemoryLevel("HBM", "chip", 0, f["memory_latency"], rate("memory_rate")),
        ),
        cost=costs, resident_waves=chip.limits["waves_per_simd"] * chip.limits["simds_per_processor"],
        launch_seconds=f["launch"] * 1e-6, workgroup_cycles=f["workgroup_cycles"],
        matrix_pipes=frozenset({"matrix"}), atomic_cycles=f["atomic_cycles"], shared_row=chip.limits["shared_banks"] * 4,
        system=chip.usual_system, typical={kind: costs.of(mnemonic) for kind, mnemonic in _TYPICAL.items()},
    )


class WaveCosts:
    """An instruction's cost, by its row."""

    def __init__(self, isa: InstructionSet, figures: ChipFigures) -> None:
        self._isa, self._figures = isa, figures
        self._timings = timing(isa)
        self._of = cache(self._by_mnemonic)

    def __call__(self, instruction: Any) -> InstructionCost:
        return self._of(instruction.mnemonic, _CONVERTS.match(instruction.text) is not None)

    def of(self, mnemonic: str) -> InstructionCost:
        """The cost of an instruction that is nowhere in the code."""
        return self._of(mnemonic)

    def _by_mnemonic(self, mnemonic: str, converts: bool = False) -> InstructionCost:
        row = self._isa.row(mnemonic)
        its: Timing = self._timings[row.name]
        pipe = _PIPES[its.unit]
        if its.unit == "control":
            return InstructionCost("control", 0, 1 if row.name == "s_barrier" else its.latency)
        if its.unit == "lds":
            return InstructionCost(pipe, self._figures["issue_interval"], self._figures["shared_latency"])
        if its.unit == "vmem":
            return InstructionCost(pipe, self._figures["issue_interval"], 0, purpose=_purpose(row.name))
        purpose: Purpose = "conversion" if converts else _purpose(row.name)
        return InstructionCost(pipe, its.issue, its.latency, operations=self._operations(row.name, its), purpose=purpose)

    def _operations(self, name: str, its: Timing) -> int:
        if its.unit == "matrix":
            return _matrix_operations(name)
        return WAVE * (2 if "fma" in name or "mac" in name else 1) if name.endswith(("f32", "f16", "f64")) else 0


def _purpose(name: str) -> Purpose:
    for start, what in _PURPOSES:
        if name.startswith(start):
            return what
    return ""


def _matrix_operations(name: str) -> int:
    """Of a product by the shape in its name: `v_mfma_f32_16x16x16_f16`, `…_4x4x4_16b_f16` for sixteen blocks."""
    shape = next(part for part in name.split("_") if part.count("x") == 2 and part[0].isdigit())
    m, n, k = (int("".join(c for c in part if c.isdigit())) for part in shape.split("x"))
    blocks = next((int(part[:-1]) for part in name.split("_") if part.endswith("b") and part[:-1].isdigit()), 1)
    return 2 * m * n * k * blocks
