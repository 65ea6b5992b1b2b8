"""The chips as data: MI300X, 304 compute units of CDNA3. Sources stand at the numbers."""

from __future__ import annotations

from tilefw.api import TargetInfo
from tilefw_amd.options import OPTIONS

WAVE = 64  # CDNA3 ISA, section "Wavefronts and Workgroups"
ACCESS_BYTES = 16  # CDNA3 ISA, "GLOBAL_LOAD_DWORDX4": at most 128 bits a lane
POINTER_BITS = 64

# Arithmetic is on these; the formats of 8 bits and less are loaded, stored, selected, cast and multiplied, as in the language.
_INTEGERS = ("int1", "int4", "int8", "int16", "int32", "int64")
_FLOATS = ("fp16", "bf16", "fp32", "fp64")

CAPABILITIES = frozenset(
    {"control.*", "cf.*", "atomic.*", "memory.*", "cast.*", "select.*", "shape.*", "dot.*"}
    | {f"int.*.{name}" for name in _INTEGERS}
    | {f"{group}.*.{name}" for group in ("float", "math") for name in _FLOATS}
    | {f"{group}.{name}" for group in ("reduce", "scan") for name in (*_INTEGERS, *_FLOATS)}
)

GFX942_LIMITS = {
    "threads_per_workgroup": 1024,  # AMDGPUUsage, metadata ".max_flat_workgroup_size"
    "shared_bytes": 64 * 1024,  # CDNA3 ISA, section "Local Data Share": 64 KB a compute unit, and at most that a workgroup
    "shared_bytes_per_processor": 64 * 1024,
    "shared_banks": 32,  # CDNA3 ISA, section "Local Data Share": 32 banks of 4 bytes
    "scratch_bytes_per_thread": 128 * 1024,  # CDNA3 ISA, SCRATCH: a wave's part is at most 8 MB, swizzled over 64 lanes
    "registers_per_thread": 512,  # CDNA3 ISA, "VGPR allocation": 256 architectural and 256 accumulation registers
    "scalar_registers_per_wave": 102,  # CDNA3 ISA, table "Scalar operands"
    "registers_per_processor": 4 * 512 * WAVE,  # ROCm documentation, "GPU hardware specifications": 512 KB a compute unit
    "waves_per_simd": 8,  # LLVM, AMDGPUSubtarget: gfx90a and later
    "simds_per_processor": 4,  # CDNA3 white paper
    "processors": 304,  # ROCm documentation, "GPU hardware specifications": 8 dies of 38
    "dies": 8,  # XCDs (CDNA3 white paper), which take workgroups in turn, and have an L2 each
    "lanes": WAVE,
}

MI300X = TargetInfo(
    name="amd-cdna3",
    vendor="amd",
    chip="gfx942",
    summary="AMD CDNA3 (MI300X): gfx942 code objects, simulated",
    backend="tilefw_amd.backend:AmdBackend",
    provides=frozenset({"lower", "emit", "assemble", "simulate"}),
    aliases=("amd-gfx942", "amd-mi300x"),
    capabilities=CAPABILITIES,
    # Loads of a pipeline move over stores to other buffers; buffers below 2 GiB are reached by 32-bit offsets.
    wants=frozenset({"disjoint", "under_2_gib"}),
    options={name: option.text for name, option in OPTIONS.items()},
    default_options={"num_stages": 2},  # Triton's own default for HIP: the next iteration's loads are in flight
    limits=GFX942_LIMITS,
)

TARGETS = (MI300X,)
