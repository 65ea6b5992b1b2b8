"""Compute capability 8.9 (L4, L40S, RTX 40xx), with the rates and multiprocessors of an L40S.

Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". Rates: "NVIDIA L40S" datasheet (dense:
f16 362, tf32 183, fp8 and int8 733 TFLOPS or TOPS on 142 multiprocessors of four matrix units at 2.52 GHz); f64 is a 64th of
f32's ("NVIDIA Ada GPU Architecture": two f64 units a multiprocessor). Sums: MMA-Sim, arXiv 2511.10909, Ada Lovelace: those of fp8
keep 13 bits.
"""

from __future__ import annotations

from tilefw_nvidia.chips.chip import Chip, SumPrecision
from tilefw_nvidia.chips.latencies import ACCEL_SIM

_BLOCKS = SumPrecision(bytes=16, fraction_bits=24)
_BYTES = SumPrecision(bytes=16, fraction_bits=13, result_fraction_bits=13, zero_fraction_bits=24)

CHIP = Chip(
    name="sm_89",
    target="nvidia-sm89",
    aliases=("nvidia-l40s", "nvidia-l4", "nvidia-rtx4090"),
    summary="NVIDIA Ada (L40S, L4, RTX 40xx): PTX, simulated",
    first_version=(7, 8),
    processors=142,
    threads_per_processor=1536,
    workgroups_per_processor=24,
    shared_bytes=99 << 10,
    shared_bytes_per_processor=100 << 10,
    matrix_rates={
        "f16": 128, "bf16": 128, "tf32": 64, "e4m3": 256, "e5m2": 256, "s8": 256, "u8": 256, "f64": 0.5,
    },
    sums={
        "f16": _BLOCKS, "bf16": _BLOCKS, "tf32": _BLOCKS, "e4m3": _BYTES, "e5m2": _BYTES,
        "f64": SumPrecision(bytes=8, fraction_bits=0),
    },
    latencies=ACCEL_SIM,
)
