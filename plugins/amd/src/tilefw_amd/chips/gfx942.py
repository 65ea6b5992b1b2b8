"""gfx942: MI300X, 304 compute units of CDNA3. Each number has its source."""

from __future__ import annotations

from types import MappingProxyType

from tilefw_amd.chips.chip import WAVE, Chip, MatrixHazards, MatrixSum, Rates

_LIMITS = {
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

# Cycles: four times the figures of LLVM's scheduling model SIDPGFX940FullSpeedModel (`SISchedule.td`), which counts in fours, and
# whose own comments call those of LDS, vector memory and barriers guesses; none is calibrated on hardware by us. 0: nothing waits
# for a result.
_RATES = Rates(
    latency=MappingProxyType({
        "salu": 4, "smem": 20, "valu": 4, "valu64": 4, "trans": 16, "matrix": 16, "lds": 20, "vmem": 320, "export": 0, "control": 0,
    }),
    vector_cycles=4,  # a vector pipe takes 16 of a wave's 64 lanes a cycle (CDNA3 white paper, "Compute unit")
    pass_cycles=4,  # AMD matrix instruction calculator; LLVM, SISchedule.td
    quarter_rate=4,
    # LDS has 32 banks of 4 bytes (ROCm, "MI300 microarchitecture"), the vector cache answers with half a line of 128 bytes
    # (Origami, `hardware.hpp`).
    bytes_a_cycle=MappingProxyType({"lds": 128, "vmem": 64}),
    # Vector instructions of a quarter of the rate that their unit does not show (LLVM: WriteFloatCvt, WriteQuarterRate32).
    slow=frozenset({
        "v_cvt_u32_f32", "v_cvt_i32_f32", "v_cvt_f32_i32", "v_cvt_f32_u32", "v_cvt_f16_f32", "v_cvt_f32_f16", "v_cvt_rpi_i32_f32",
        "v_cvt_flr_i32_f32", "v_cvt_off_f32_i4", "v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32", "v_cvt_sr_fp8_f32", "v_cvt_sr_bf8_f32",
        "v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8", "v_qsad_pk_u16_u8", "v_mqsad_u32_u8",
    }),
    branch=8 * 4, barrier=500 * 4,  # LLVM: WriteBranch, WriteBarrier
    beside=MappingProxyType({"mfma": 4, "smfmac": 8}),  # the calculator, "co-execution"; f32 and f64 products leave no room
)  # fmt: skip

# CDNA3 ISA 7.5 "Dependency Resolution: Required Independent Instructions"; LLVM, GCNHazardRecognizer.cpp: checkMAIHazards90A,
# checkMAIVALUHazards (`GFX940_XDL_N_PassWritesVGPROverlappedSrcABWaitStates` and its neighbours).
# Of double precision, 4 passes are V_MFMA_F64_4X4X4_4B, 8 are V_MFMA_F64_16X16X4 (CDNA3 ISA 7.5, table 37).
_PASSES = (2, 4, 8, 16)
_DOUBLE = {("dgemm", 4): 6, ("dgemm", 8): 11}
_HAZARDS = MatrixHazards(
    read=MappingProxyType(
        {("xdl", passes): passes + 3 for passes in _PASSES} | {("sgemm", passes): passes + 2 for passes in _PASSES} | _DOUBLE
    ),
    memory=MappingProxyType({("dgemm", 4): 9, ("dgemm", 8): 18}),
    addend=MappingProxyType(
        {("xdl", passes): passes + 1 for passes in _PASSES} | {("sgemm", passes): passes for passes in _PASSES}
        | {("dgemm", 4): 4, ("dgemm", 8): 9}
    ),
    addend_to=MappingProxyType(
        {("sgemm", passes, "xdl"): 0 for passes in _PASSES} | {("dgemm", passes, "xdl"): 0 for passes in (4, 8)}
    ),
    forwarded=MappingProxyType({2: 2}),
    forwarded_dgemm=MappingProxyType({4: 4}),
    overwritten=MappingProxyType({passes: passes - 1 for passes in _PASSES}),
    most=19,
)

CHIP = Chip(
    name="gfx942",
    target="amd-cdna3",
    aliases=("amd-gfx942", "amd-mi300x"),
    product="CDNA3",
    summary="AMD CDNA3 (MI300X): gfx942 code objects, simulated",
    usual_system="amd:mi300x",
    generation=3,
    limits=MappingProxyType(_LIMITS),
    elf_machine=0x4C,  # LLVM AMDGPUUsage, "AMDGPU e_flags": EF_AMDGPU_MACH_AMDGCN_GFX942
    elf_flags=0x54C,  # the machine, XNACK and SRAM-ECC any
    # CDNA3 ISA, section "Number formats": no infinities, no -0, NaN as 0x80; LLVM's names of the formats.
    float8=MappingProxyType({"fp8": "f8E4M3FNUZ", "bf8": "f8E5M2FNUZ"}),
    rates=_RATES,
    matrix_hazards=_HAZARDS,
    # MMA-Sim (arXiv 2511.10909, its CDNA3 models): L_max products at once; fp8's even and odd k are added apart.
    matrix_sums=MappingProxyType({32: MatrixSum(4), 16: MatrixSum(8), 8: MatrixSum(16, groups=2, drops_far=True)}),
    vector_granule=8,  # LLVM, AMDGPUBaseInfo.cpp, `getVGPRAllocGranule`: gfx90a and later
    shared_granule=512,  # CDNA3 ISA, section "Local Data Share": allocation in blocks of 128 dwords
    workgroups=16,  # of several waves, as many as a compute unit has barriers (LLVM, `getMaxWorkGroupsPerCU`)
    access_bytes=16,  # CDNA3 ISA, "GLOBAL_LOAD_DWORDX4": at most 128 bits a lane
    bank_bytes=4,
    pointer_bits=64,
    max_grid=(2**31 - 1, 65536, 65536),  # HIP's device properties of gfx942, `maxGridSize`
    first_hip=(6, 0),  # ROCm 6.0 release notes: MI300X
)
