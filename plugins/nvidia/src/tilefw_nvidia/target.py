"""The chips as data. Source: CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications per Compute Capability"."""

from __future__ import annotations

from tilefw.api import TargetInfo

WARP = 32
ACCESS_BYTES = 16  # PTX ISA, "Vectors as operands": at most 128 bits an access
POINTER_BITS = 64

_INTS = ("i8", "i16", "i32", "i64")
_FLOATS = ("f16", "bf16", "f32", "f64")

# Compute capability 8.0.
SM80_LIMITS = {
    "threads_per_workgroup": 1024,
    "shared_bytes": 163 * 1024,  # dynamic, per block; 48 KiB static
    "registers_per_thread": 255,
    "registers_per_processor": 65536,
    "threads_per_processor": 2048,
    "workgroups_per_processor": 32,
    "lanes": WARP,
}

SM80 = TargetInfo(
    name="nvidia-sm80",
    vendor="nvidia",
    chip="sm_80",
    summary="NVIDIA Ampere (A100): PTX, simulated",
    backend="tilefw_nvidia.backend:NvidiaBackend",
    provides=frozenset({"lower", "emit", "assemble", "simulate"}),
    aliases=("nvidia-a100",),
    limits=SM80_LIMITS,
)

TARGETS = (SM80,)
