"""gfx950: MI350X and MI355X, 256 compute units of CDNA4. Each number has its source; those of LLVM without one are as in gfx942."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from tilefw_amd.chips import gfx942
from tilefw_amd.chips.chip import WAVE, Chip, MatrixHazards

_LIMITS = {
    "threads_per_workgroup": 1024,  # AMDGPUUsage, metadata ".max_flat_workgroup_size"
    "shared_bytes": 160 * 1024,  # LLVM, AMDGPU.td: FeatureAddressableLocalMemorySize163840
    "shared_bytes_per_processor": 160 * 1024,  # ROCm documentation, "AMD GPU specifications": LDS
    # HipKittens (arXiv 2511.08083), `analysis/paper_experiments/phases`, measured on an MI355X; LLVM's feature still says 32.
    "shared_banks": 64,
    "scratch_bytes_per_thread": 128 * 1024,  # CDNA4 ISA, SCRATCH: a wave's part is at most 8 MB, swizzled over 64 lanes
    "registers_per_thread": 512,  # CDNA4 ISA, "VGPR allocation": 256 architectural and 256 accumulation registers
    "scalar_registers_per_wave": 102,  # CDNA4 ISA, table "Scalar operands"
    "registers_per_processor": 4 * 512 * WAVE,  # ROCm documentation, "AMD GPU specifications": 512 KB a compute unit
    "waves_per_simd": 8,  # LLVM, AMDGPUSubtarget: gfx90a and later
    "simds_per_processor": 4,  # CDNA4 white paper
    "processors": 256,  # ROCm documentation, "AMD GPU specifications": 8 dies of 32
    "dies": 8,  # XCDs (CDNA4 white paper), which take workgroups in turn, and have an L2 each
    "lanes": WAVE,
}

# LLVM's model SIDPGFX950FullSpeedModel (`SISchedule.td`) differs from the one before in matrix products, whose passes are the
# rows', and in what came new; LDS is read twice as fast (CDNA4 white paper: 64 banks of 4 bytes).
_RATES = replace(
    gfx942.CHIP.rates, bytes_a_cycle=MappingProxyType({"lds": 256, "vmem": 64}), slow=gfx942.CHIP.rates.slow | {"v_cvt_f32_bf16"},
)

# LLVM 22, GCNHazardRecognizer.cpp: checkMAIHazards90A, checkMAIVALUHazards with `IsGFX950`: XDL products of four passes and more
# take one wait state more than before, V_MFMA_F64_16X16X4, now of 16 passes, eight. Asked of llc by the plugin's tests.
_PASSES = (2, 4, 8, 16)
_LATE = {passes: int(passes > 2) for passes in _PASSES}
_HAZARDS = MatrixHazards(
    read=MappingProxyType(
        {("xdl", passes): passes + 3 + _LATE[passes] for passes in _PASSES}
        | {("sgemm", passes): passes + 2 for passes in _PASSES} | {("dgemm", 4): 6, ("dgemm", 16): 19}
    ),
    memory=MappingProxyType({("dgemm", 4): 9, ("dgemm", 16): 18}),
    addend=MappingProxyType(
        {("xdl", passes): passes + 2 for passes in _PASSES} | {("sgemm", passes): passes for passes in _PASSES}
        | {("dgemm", 4): 4, ("dgemm", 16): 17}
    ),
    addend_to=MappingProxyType(
        {("sgemm", passes, "xdl"): 0 for passes in _PASSES} | {("dgemm", passes, "xdl"): 0 for passes in (4, 16)}
        | {("xdl", 2, kind): 3 for kind in ("sgemm", "dgemm")}
    ),
    rewritten=MappingProxyType({("dgemm", 16): 11}),
    forwarded=MappingProxyType({2: 2}),
    forwarded_dgemm=MappingProxyType({4: 4}),
    overwritten=MappingProxyType({passes: passes - 1 for passes in _PASSES}),
    most=20,
)

CHIP = Chip(
    name="gfx950",
    target="amd-cdna4",
    aliases=("amd-gfx950", "amd-mi350x", "amd-mi355x"),
    product="CDNA4",
    summary="AMD CDNA4 (MI350X, MI355X): gfx950 code objects, simulated",
    generation=4,
    limits=MappingProxyType(_LIMITS),
    elf_machine=0x4F,  # LLVM AMDGPUUsage, "AMDGPU e_flags": EF_AMDGPU_MACH_AMDGCN_GFX950
    elf_flags=0x54F,  # the machine, XNACK and SRAM-ECC any
    # CDNA4 ISA, section "Number formats": OCP's formats, an E4M3 without infinities and an E5M2 with them.
    float8=MappingProxyType({"fp8": "f8E4M3FN", "bf8": "f8E5M2"}),
    rates=_RATES,
    matrix_hazards=_HAZARDS,
    matrix_sums=gfx942.CHIP.matrix_sums,  # nobody has published how this generation rounds: CDNA3's model stands for it
    vector_granule=8,  # LLVM, AMDGPUBaseInfo.cpp, `getVGPRAllocGranule`: gfx90a and later
    shared_granule=1280,  # LLVM AMDGPUUsage, GRANULATED_LDS_SIZE: blocks of 320 dwords
    workgroups=16,  # of several waves, as many as a compute unit has barriers (LLVM, `getMaxWorkGroupsPerCU`)
    access_bytes=16,  # CDNA4 ISA, "GLOBAL_LOAD_DWORDX4": at most 128 bits a lane
    bank_bytes=4,
    pointer_bits=64,
    max_grid=(2**31 - 1, 65536, 65536),  # HIP's device properties, `maxGridSize`
    first_hip=(7, 0),  # ROCm 7.0 release notes: MI350X and MI355X
)
