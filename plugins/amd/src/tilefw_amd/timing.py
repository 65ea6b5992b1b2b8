"""How long instructions take, as data: cycles to a dependent result, cycles that they keep their pipe.

Sources: LLVM's scheduling model SIDPGFX940FullSpeedModel (`SISchedule.td`, in units of four cycles, whose own comments call its
figures for LDS, memory and barriers guesses); AMD's matrix instruction calculator (cycles, co-execution); ROCm's hardware
tables and Origami for bandwidths. Nothing here is calibrated on hardware by us, and nothing here simulates.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tilefw_amd.isa.row import Row
from tilefw_amd.isa.table import load_rows

# A wave has 64 lanes, a vector pipe takes 16 of them a cycle (CDNA3 white paper, "Compute unit").
WAVE = 64
VECTOR_CYCLES = 4
QUARTER_RATE = 4

# Bytes a cycle of a compute unit: LDS has 32 banks of 4 bytes (ROCm, "MI300 microarchitecture"), the vector cache answers with
# half a line of 128 bytes (Origami, `hardware.hpp`).
BYTES_A_CYCLE = {"lds": 128, "vmem": 64}

# Vector instructions of a quarter of the rate that their unit does not show (LLVM: WriteFloatCvt, WriteQuarterRate32).
SLOW = frozenset({
    "v_cvt_u32_f32", "v_cvt_i32_f32", "v_cvt_f32_i32", "v_cvt_f32_u32", "v_cvt_f16_f32", "v_cvt_f32_f16", "v_cvt_rpi_i32_f32",
    "v_cvt_flr_i32_f32", "v_cvt_off_f32_i4", "v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32", "v_cvt_sr_fp8_f32", "v_cvt_sr_bf8_f32",
    "v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8", "v_qsad_pk_u16_u8", "v_mqsad_u32_u8",
})  # fmt: skip
# LLVM: WriteBranch, WriteBarrier.
BRANCH, BARRIER = 8 * 4, 500 * 4

# Cycles after a matrix instruction's issue at which vector instructions of the wave's SIMD may go beside it (the calculator,
# "co-execution"); f32 and f64 products leave them no room.
_BESIDE = {"v_mfma": 4, "v_smfmac": 8}


@dataclass(frozen=True, slots=True)
class Timing:
    """Of one row, in cycles. `latency`: from issue to a dependent result, without contention. `issue`: how long the pipe `unit`
    takes nothing else: of the SIMD, for memory and LDS of the compute unit, when lanes are neighbours and banks do not conflict.
    `beside`: from which cycle on vector instructions run beside a matrix instruction; None: not before it is over."""

    unit: str
    latency: int
    issue: int
    beside: int | None = None


@functools.cache
def timing() -> dict[str, Timing]:
    """Every row's, by base mnemonic."""
    return {name: _timing(row) for name, row in load_rows().items()}


def _timing(row: Row) -> Timing:
    if row.passes:
        return Timing(row.unit, row.latency, 4 * row.passes, _beside(row))
    if row.unit in BYTES_A_CYCLE:
        return Timing(row.unit, row.latency, max(1, _bytes(row) * WAVE // BYTES_A_CYCLE[row.unit]))
    if row.unit in ("valu", "valu64", "trans"):
        slow = row.unit == "trans" or row.name in SLOW
        cycles = VECTOR_CYCLES * (QUARTER_RATE if slow else 1)
        return Timing(row.unit, cycles, cycles)
    if row.unit == "control":
        return Timing(row.unit, _control(row.name), 4)
    return Timing(row.unit, row.latency, 4)


def _beside(row: Row) -> int | None:
    return _BESIDE[row.name.partition("_f32")[0].partition("_i32")[0]] if "xdl" in row.facts else None


def _bytes(row: Row) -> int:
    """What a lane moves: the data, read or written, whichever is more."""
    read, written = (sum(o.type.bits // 8 for o in side if o.type is not None) for side in (row.sources, row.destinations))
    return max(read, written)


def _control(name: str) -> int:
    if name == "s_barrier":
        return BARRIER
    return BRANCH if name == "s_branch" or (name.startswith("s_cbranch_") and "fork" not in name) else 4
