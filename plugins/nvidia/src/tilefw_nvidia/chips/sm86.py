"""Compute capability 8.6 (A10, RTX 30xx), with the rates and multiprocessors of an A10.

Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". Rates: "NVIDIA A10 Tensor Core GPU"
datasheet (dense: f16 125, tf32 62.5, int8 250 TFLOPS or TOPS on 72 multiprocessors of four matrix units at 1.695 GHz); f64
is a 64th of f32's ("NVIDIA Ampere GA102 GPU Architecture": two f64 units a multiprocessor). Sums: MMA-Sim, arXiv 2511.10909,
Ampere.
"""

from __future__ import annotations

from tilefw_nvidia.chips.chip import Chip, SumPrecision
from tilefw_nvidia.chips.latencies import ACCEL_SIM

_BLOCKS = SumPrecision(bytes=16, fraction_bits=24)

CHIP = Chip(
    name="sm_86",
    target="nvidia-sm86",
    aliases=("nvidia-a10", "nvidia-rtx3090"),
    summary="NVIDIA Ampere (A10, RTX 30xx): PTX, simulated",
    first_version=(7, 1),
    processors=72,
    threads_per_processor=1536,
    workgroups_per_processor=16,
    shared_bytes=99 << 10,
    shared_bytes_per_processor=100 << 10,
    matrix_rates={"f16": 128, "bf16": 128, "tf32": 64, "s8": 256, "u8": 256, "f64": 0.5},
    sums={"f16": _BLOCKS, "bf16": _BLOCKS, "tf32": _BLOCKS, "f64": SumPrecision(bytes=8, fraction_bits=0)},
    latencies=ACCEL_SIM,
)
