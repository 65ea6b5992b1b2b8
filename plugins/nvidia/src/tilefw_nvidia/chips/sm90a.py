"""Compute capability 9.0 with the instructions of its own (H100, H200), with the rates and multiprocessors of an H100 SXM.

Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". Rates of a warpgroup's products: "NVIDIA H100
Tensor Core GPU" datasheet (dense: f16 989, tf32 495, fp8 and int8 1979 TFLOPS or TOPS, f64 67, on 132 multiprocessors of four
matrix units at 1.83 GHz). A warp's own products reach 63 % of them (arXiv 2402.13499), and have no fp8. Sums: MMA-Sim, arXiv
2511.10909, Hopper: a warpgroup's sums of fp8 keep 13 bits.
"""

from __future__ import annotations

from tilefw_nvidia.chips.chip import Chip, SumPrecision
from tilefw_nvidia.chips.latencies import ACCEL_SIM

_BLOCKS = SumPrecision(bytes=32, fraction_bits=25)
_BYTES = SumPrecision(bytes=32, fraction_bits=13, result_fraction_bits=13, zero_fraction_bits=25)

CHIP = Chip(
    name="sm_90a",
    target="nvidia-sm90a",
    aliases=("nvidia-h100", "nvidia-h200", "h100", "h200"),
    summary="NVIDIA Hopper (H100, H200): PTX, simulated",
    usual_system="nvidia:h100_sxm",
    first_version=(8, 0),
    processors=132,
    threads_per_processor=2048,
    workgroups_per_processor=32,
    workgroups_per_cluster=16,  # 8 without the driver's leave ("Thread Block Clusters")
    shared_bytes=227 << 10,
    shared_bytes_per_processor=228 << 10,
    matrix_rates={"f16": 322, "bf16": 322, "tf32": 161, "s8": 644, "u8": 644, "f64": 32},
    sums={"f16": _BLOCKS, "bf16": _BLOCKS, "tf32": _BLOCKS, "f64": SumPrecision(bytes=8, fraction_bits=0)},
    warpgroup_rates={"f16": 512, "bf16": 512, "tf32": 256, "e4m3": 1024, "e5m2": 1024, "s8": 1024, "u8": 1024},
    warpgroup_sums={"f16": _BLOCKS, "bf16": _BLOCKS, "tf32": _BLOCKS, "e4m3": _BYTES, "e5m2": _BYTES},
    latencies=ACCEL_SIM,
)
