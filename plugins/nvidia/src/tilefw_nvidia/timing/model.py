"""What instructions of PTX cost on a chip, by the figures of its file.

PTX is not what the machine executes: ptxas drops most moves, and makes several instructions of some. `_SLOTS` says of which.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from tilefw.api.sim import MULTICAST
from tilefw.api.timing import ChipFigures, ChipTiming, InstructionCost, MemoryLevel, Purpose, Role
from tilefw_nvidia.chips import Chip

_WARP = 32
_SECTOR = 32  # bytes that caches fetch at once: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"
# Instructions that ptxas makes nothing of, or several: by the beginning of the opcode, the first that fits.
_SLOTS: tuple[tuple[str, int], ...] = (
    ("mov.b128", 0), ("mov.b", 0), ("mov.u", 0), ("mov.f", 0), ("mov.s", 0), ("mov.pred", 0), ("cvta", 0), ("ld.param", 0),
    ("add.s64", 2), ("add.u64", 2), ("sub.s64", 2), ("mul.wide", 1), ("mad.wide", 1), ("mul.lo.s64", 4), ("mad.lo.s64", 4),
    ("shl.b64", 2), ("shr.s64", 2), ("shr.u64", 2), ("and.b64", 2), ("or.b64", 2), ("xor.b64", 2), ("setp.lt.s64", 2),
    ("cvt.s64.s32", 1), ("div.s32", 18), ("rem.s32", 20), ("div.u32", 16), ("rem.u32", 18), ("div.full.f32", 8),
    ("ex2.approx.f32", 3), ("div.rn.f32", 10), ("sqrt.rn.f32", 8),
)
# What instructions mean to phases of barriers that count, by the beginning of the opcode.
_PHASES: tuple[tuple[str, Role], ...] = (
    ("mbarrier.arrive", "arrive"), ("mbarrier.expect_tx", "arrive"), ("mbarrier.complete_tx", "arrive"),
    ("cp.async.mbarrier.arrive", "arrive_behind"), ("mbarrier.try_wait", "await"), ("mbarrier.test_wait", "await"),
    *((f"cp.async.bulk.tensor.{dimensions}d.shared", "bulk") for dimensions in range(1, 6)), ("cp.async.bulk.shared", "bulk"),
)
# What instructions are for, by the beginning of the opcode.
_PURPOSES: tuple[tuple[str, Purpose], ...] = (
    ("cvt.", "conversion"), ("ld.local", "spill"), ("st.local", "spill"),
    ("div.", "special"), ("rem.", "special"), ("sqrt.", "special"), ("rsqrt.", "special"), ("rcp.", "special"), ("ex2.", "special"),
    ("lg2.", "special"), ("sin.", "special"), ("cos.", "special"), ("tanh.", "special"),
)
_SHAPE = re.compile(r"\.m(\d+)n(\d+)k(\d+)\.")
_RATE = {"f16": "f16", "bf16": "bf16", "tf32": "tf32", "s8": "s8", "u8": "u8", "e4m3": "e4m3", "e5m2": "e5m2", "f64": "f64"}

# Opcode and unit of an instruction of each kind.
_TYPICAL = {
    "integer": ("add.s32", "alu"), "float": ("fma.rn.f32", "fma"), "division": ("div.s32", "alu"),
    "special": ("ex2.approx.ftz.f32", "sfu"), "conversion": ("cvt.rn.f16x2.f32", "convert"),
    "shuffle": ("shfl.sync.bfly.b32", "shuffle"), "shared": ("ld.shared.b32", "shared"), "memory": ("ld.global.b32", "memory"),
    "matrix": ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "tensor"),
}


def _purpose(opcode: str) -> Purpose:
    for start, what in _PURPOSES:
        if opcode.startswith(start):
            return what
    return ""


def chip_timing(chip: Chip, figures: ChipFigures) -> ChipTiming:
    """The chip by its figures."""
    f = figures
    clock = f["clock"] * 1e6

    def rate(name: str) -> float:
        return f[name] * 1e9 / clock

    costs = PtxCosts(chip, f)
    return ChipTiming(
        figures=f, product=chip.summary, clock_hz=clock, processors=chip.processors, dies=1, schedulers=int(f["schedulers"]),
        issue_interval=f["issue_interval"],
        pipes={
            "alu": "scheduler", "fma": "scheduler", "fp64": "scheduler", "sfu": "scheduler", "tensor": "scheduler",
            "control": "scheduler", "memory": "scheduler", "shared": "processor",
        },
        shared_pipe="shared", shared_pass=f["shared_pass"], barrier=f["barrier"],
        levels=(
            MemoryLevel("L1", "processor", int(f["l1_bytes"]), f["l1_latency"], f["l1_rate"], _SECTOR),
            MemoryLevel("L2", "chip", int(f["l2_bytes"]), f["l2_latency"], rate("l2_rate")),
            MemoryLevel("DRAM", "chip", 0, f["memory_latency"], rate("memory_rate")),
        ),
        cost=costs, resident_waves=chip.threads_per_processor // _WARP, launch_seconds=f["launch"] * 1e-6,
        workgroup_cycles=f["workgroup_cycles"], matrix_pipes=frozenset({"tensor"}),
        atomic_cycles=f["atomic_cycles"], shared_row=chip.banks * 4, spills_later=True,
        system=chip.usual_system, typical={kind: costs.of(*opcode) for kind, opcode in _TYPICAL.items()},
    )


class PtxCosts:
    """An instruction's cost, by its opcode and pipe."""

    def __init__(self, chip: Chip, figures: ChipFigures) -> None:
        self._chip, self._figures = chip, figures
        self._of = cache(self._by_opcode)

    def __call__(self, instruction: Any) -> InstructionCost:
        return self._of(instruction.mnemonic, instruction.unit, instruction.text)

    def of(self, opcode: str, unit: str) -> InstructionCost:
        """The cost of an instruction that is nowhere in the code."""
        return self._of(opcode, unit, opcode)

    def _by_opcode(self, opcode: str, unit: str, text: str) -> InstructionCost:
        f = self._figures
        slots = next((count for start, count in _SLOTS if opcode.startswith(start)), 1)
        if not slots:
            return InstructionCost("alu", 0, 0, 0)
        for start, role in _PHASES:
            if opcode.startswith(start):
                return InstructionCost("memory", f["memory_issue"], self._phase_latency(role), role=role)
        if opcode.startswith("cp.async"):
            return self._copy(opcode, text)
        if opcode.startswith("wgmma.mma_async"):
            return self._group_product(opcode)
        if opcode.startswith("wgmma"):
            return InstructionCost("control", 1, 1)
        if unit == "tensor":
            return self._product(opcode)
        table = {
            "alu": ("alu", f["alu_cycles"], f["alu_latency"]),
            "fma": ("fma", f["half_cycles"] if "16" in opcode else f["fma_cycles"], f["alu_latency"]),
            "fp64": ("fp64", f["fp64_cycles"], f["fp64_latency"]),
            "sfu": ("sfu", f["sfu_cycles"], f["sfu_latency"]),
            "convert": self._conversion(opcode),
            "shared": ("memory", f["memory_issue"], f["shared_latency"]),
            "shuffle": ("shared", f["shuffle_cycles"], f["shared_latency"]),
            **dict.fromkeys(("memory", MULTICAST), ("memory", f["memory_issue"], self._access_latency(opcode))),
            "control": ("control", 1, f["branch_latency"] if opcode.startswith("bra") else 1),
            "async": ("memory", f["memory_issue"], 1),
        }
        if unit in ("alu", "fma") and ".f64" in opcode:
            unit = "fp64"
        pipe, cycles, latency = table.get(unit, table["alu"])
        lanes_operations = _WARP * (2 if unit == "fma" and opcode.startswith(("fma", "mad")) else 1)
        operations = lanes_operations if unit in ("fma", "sfu", "fp64") else 0
        purpose = _purpose(opcode)
        taken = cycles * (slots if pipe != "sfu" else 1)
        return InstructionCost(pipe, taken, latency, slots, operations=operations, purpose=purpose)

    def _phase_latency(self, role: Role) -> float:
        """An arrival is counted where the barrier lies; who waits learns it at once."""
        if role == "await":
            return 1
        return self._figures["engine_latency" if role == "bulk" else "shared_latency"]

    def _access_latency(self, opcode: str) -> float:
        return self._figures["shared_latency"] if ".shared" in opcode else self._figures["alu_latency"]

    def _conversion(self, opcode: str) -> tuple[str, float, float]:
        """Conversions of integers' widths go to the ALU, packed ones to half precision run at its rate."""
        f = self._figures
        packed = "x2" in opcode or not ("f32" in opcode or "f64" in opcode or "f16" in opcode)
        return ("alu", f["alu_cycles"], f["alu_latency"]) if packed else ("sfu", f["convert_cycles"] / 2, f["convert_latency"])

    def _copy(self, opcode: str, text: str) -> InstructionCost:
        f = self._figures
        if "commit" in opcode:
            return InstructionCost("memory", f["memory_issue"], 0, role="commit")
        if "wait" in opcode:
            found = re.search(r"(\d+)\s*;?\s*$", text)
            pending = int(found[1]) if found and "wait_group" in opcode else 0
            return InstructionCost("memory", f["memory_issue"], 0, role="wait", pending=pending)
        return InstructionCost("memory", f["memory_issue"], f["shared_latency"], role="copy")

    def _group_product(self, opcode: str) -> InstructionCost:
        """A warp's quarter of a warpgroup's product."""
        f, rates = self._figures, self._chip.warpgroup_rates
        shape = _SHAPE.search(opcode)
        assert shape is not None, "a warpgroup's product has its shape in its name"
        m, n, k = map(int, shape.groups())
        element = next((part for part in reversed(opcode.split(".")) if part in rates), "f16")
        cycles = m * n * k / 4 / (f["group_rate"] * rates[element] / rates["f16"])
        return InstructionCost("tensor", cycles, cycles + f["group_latency"], operations=2 * m * n * k // 4)

    def _product(self, opcode: str) -> InstructionCost:
        f = self._figures
        shape = _SHAPE.search(opcode)
        if shape is None:
            return InstructionCost("memory", f["memory_issue"], f["shared_latency"])
        m, n, k = map(int, shape.groups())
        element = next((part for part in reversed(opcode.split(".")[:-1]) if part in _RATE), "f16")
        rates = self._chip.matrix_rates
        rate = f["tensor_rate"] * rates.get(element, rates["f16"]) / rates["f16"]
        cycles = m * n * k / rate
        latency = max(f["tensor_latency"] - 8 + cycles, cycles)
        return InstructionCost("tensor", cycles, latency, operations=2 * m * n * k)
