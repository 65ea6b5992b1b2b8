"""The chips as data. Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"."""

from __future__ import annotations

from tilefw.api import TargetInfo

WARP = 32
ACCESS_BYTES = 16  # PTX ISA, "Vectors as operands": at most 128 bits an access
POINTER_BITS = 64

# Arithmetic is on these; the formats of 8 bits and less are loaded, stored, selected and cast, as in the language.
_INTEGERS = ("int1", "int4", "int8", "int16", "int32", "int64")
_FLOATS = ("fp16", "bf16", "fp32", "fp64")

CAPABILITIES = frozenset(
    {"control.*", "cf.*", "atomic.*", "memory.*", "cast.*", "select.*", "shape.*", "dot.*"}
    | {f"int.*.{name}" for name in _INTEGERS}
    | {f"{group}.*.{name}" for group in ("float", "math") for name in _FLOATS}
    | {f"{group}.{name}" for group in ("reduce", "scan") for name in (*_INTEGERS, *_FLOATS)}
)

# Compute capability 8.0.
SM80_LIMITS = {
    "threads_per_workgroup": 1024,
    "shared_bytes": 163 * 1024,  # dynamic, per block; 48 KiB static
    "shared_bytes_per_processor": 164 * 1024,
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
    capabilities=CAPABILITIES,
    limits=SM80_LIMITS,
    wants=frozenset({"disjoint"}),  # loads of a pipeline move over stores to other buffers
)

TARGETS = (SM80,)
