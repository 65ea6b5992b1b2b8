"""Compute capability 8.0 (A100).

Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". Multiprocessors and matrix rates: "NVIDIA
A100 Tensor Core GPU Architecture", table 1 and the table of multiply-adds a clock. Sums: MMA-Sim, arXiv 2511.10909, Ampere.
"""

from __future__ import annotations

from tilefw_nvidia.chips.chip import Chip, SumPrecision
from tilefw_nvidia.chips.latencies import ACCEL_SIM

_BLOCKS = SumPrecision(bytes=16, fraction_bits=24)

CHIP = Chip(
    name="sm_80",
    target="nvidia-sm80",
    aliases=("nvidia-a100",),
    summary="NVIDIA Ampere (A100): PTX, simulated",
    usual_system="nvidia:a100_sxm",
    first_version=(7, 0),
    processors=108,
    threads_per_processor=2048,
    workgroups_per_processor=32,
    shared_bytes=163 << 10,
    shared_bytes_per_processor=164 << 10,
    matrix_rates={"f16": 256, "bf16": 256, "tf32": 128, "s8": 512, "u8": 512, "f64": 16},
    sums={"f16": _BLOCKS, "bf16": _BLOCKS, "tf32": _BLOCKS, "f64": SumPrecision(bytes=8, fraction_bits=0)},
    latencies=ACCEL_SIM,
)
