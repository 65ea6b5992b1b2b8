"""Pairs of instructions with the wait states that must lie between them, as assembly and as LLVM's machine code representation.

The numbers are the manual's (CDNA3 ISA 4.5, 7.5); `test_llvm_agrees` asks LLVM's hazard recogniser for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Line(NamedTuple):
    """One instruction, for an assembler and for llc."""

    text: str
    machine: str


class Pair(NamedTuple):
    name: str
    states: int
    first: Line
    second: Line


def registers(file: str, first: int, count: int) -> tuple[str, str]:
    """A tuple of registers, as assembly and as LLVM names it."""
    text = f"{file}{first}" if count == 1 else f"{file}[{first}:{first + count - 1}]"
    llvm = {"v": "vgpr", "a": "agpr", "s": "sgpr"}[file]
    return text, "$" + "_".join(f"{llvm}{n}" for n in range(first, first + count))


EXEC = "implicit $exec"
MODE = "implicit $mode, implicit $exec"

# --- matrix instructions --------------------------------------------------------------------------------------------------


class Matrix(NamedTuple):
    """`unit` is xdl, sgemm or dgemm; D and C take `sums` registers, A and B `factors`."""

    text: str
    llvm: str
    unit: str
    passes: int
    sums: int
    factors: int

    def line(self, d: int, a: int = 200, b: int = 204, c: int | None = None) -> Line:
        """D = A x B + C, by the numbers of their first registers; C is 0 where none is given."""
        names = [registers("v", d, self.sums), registers("v", a, self.factors), registers("v", b, self.factors)]
        names.append(("0", "0") if c is None else registers("v", c, self.sums))
        text = f"{self.text} {', '.join(name for name, _ in names)}"
        (_, d_), (_, a_), (_, b_), (_, c_) = names
        return Line(text, f"{d_} = {self.llvm} {a_}, {b_}, {c_}, 0, 0, 0, {MODE}")


MATRICES = (
    Matrix("v_mfma_f32_4x4x4_16b_f16", "V_MFMA_F32_4X4X4F16_vgprcd_e64", "xdl", 2, 4, 2),
    Matrix("v_mfma_f32_16x16x16_f16", "V_MFMA_F32_16X16X16F16_vgprcd_e64", "xdl", 4, 4, 2),
    Matrix("v_mfma_f32_32x32x8_f16", "V_MFMA_F32_32X32X8F16_vgprcd_e64", "xdl", 8, 16, 2),
    Matrix("v_mfma_f32_32x32x4_2b_f16", "V_MFMA_F32_32X32X4F16_vgprcd_e64", "xdl", 16, 32, 2),
    Matrix("v_mfma_f32_4x4x1_16b_f32", "V_MFMA_F32_4X4X1F32_vgprcd_e64", "sgemm", 2, 4, 1),
    Matrix("v_mfma_f32_16x16x4_f32", "V_MFMA_F32_16X16X4F32_vgprcd_e64", "sgemm", 8, 4, 1),
    Matrix("v_mfma_f32_32x32x2_f32", "V_MFMA_F32_32X32X2F32_vgprcd_e64", "sgemm", 16, 16, 1),
    Matrix("v_mfma_f64_4x4x4_4b_f64", "V_MFMA_F64_4X4X4F64_vgprcd_e64", "dgemm", 4, 2, 2),
    Matrix("v_mfma_f64_16x16x4_f64", "V_MFMA_F64_16X16X4F64_vgprcd_e64", "dgemm", 8, 8, 2),
)
BY_NAME = {m.text: m for m in MATRICES}


def sparse(d: int, a: int, b: int, index: int) -> Line:
    """v_smfmac_f32_16x16x32_f16, of 4 passes."""
    names = [registers("v", d, 4), registers("v", a, 2), registers("v", b, 4), registers("v", index, 1)]
    (_, d_), (_, a_), (_, b_), (_, i_) = names
    text = f"v_smfmac_f32_16x16x32_f16 {', '.join(name for name, _ in names)}"
    return Line(text, f"{d_} = V_SMFMAC_F32_16X16X32_F16_e64 {a_}, {b_}, {i_}, 0, 0, {d_}, {MODE}")


def move(d: int, a: int) -> Line:
    return Line(f"v_mov_b32_e32 v{d}, v{a}", f"$vgpr{d} = V_MOV_B32_e32 $vgpr{a}, {EXEC}")


def accumulator_read(d: int, a: int) -> Line:
    return Line(f"v_accvgpr_read_b32 v{d}, a{a}", f"$vgpr{d} = V_ACCVGPR_READ_B32_e64 $agpr{a}, {EXEC}")


def lds_write(address: int, data: int) -> Line:
    return Line(f"ds_write_b32 v{address}, v{data}", f"DS_WRITE_B32_gfx9 $vgpr{address}, $vgpr{data}, 0, 0, {EXEC}")


def lds_read(d: int, address: int) -> Line:
    return Line(f"ds_read_b32 v{d}, v{address}", f"$vgpr{d} = DS_READ_B32_gfx9 $vgpr{address}, 0, 0, {EXEC}")


def store(address: int, data: int, count: int) -> Line:
    (at, at_), (text, machine) = registers("v", address, 2), registers("v", data, count)
    suffix = "" if count == 1 else f"x{count}"
    llvm = f"GLOBAL_STORE_DWORD{suffix.upper()}"
    return Line(f"global_store_dword{suffix} {at}, {text}, off", f"{llvm} {at_}, {machine}, 0, 0, {EXEC}")


def _read(m: Matrix) -> int:
    """Result read by vector arithmetic or as A or B; overwritten."""
    if m.unit == "dgemm":
        return {4: 6, 8: 11}[m.passes]
    return m.passes + (3 if m.unit == "xdl" else 2)


def _stored(m: Matrix) -> int:
    return {4: 9, 8: 18}[m.passes] if m.unit == "dgemm" else _read(m)


def _as_addend(m: Matrix, reader: Matrix) -> int:
    """Result as C of another product, whose registers overlap but are not the same."""
    if m.unit == "dgemm":
        return 0 if reader.unit == "xdl" else {4: 4, 8: 9}[m.passes]
    if m.unit == "sgemm":
        return 0 if reader.unit == "xdl" else m.passes
    return m.passes + 1


def _behind_matrices() -> Iterator[Pair]:
    for m in MATRICES:
        first = m.line(0)
        yield Pair(f"{m.text}, VALU reads", _read(m), first, move(100, 1))
        yield Pair(f"{m.text}, VALU overwrites", _read(m), first, move(1, 100))
        yield Pair(f"{m.text}, LDS write", _stored(m), first, lds_write(100, 1))
        yield Pair(f"{m.text}, address", _stored(m), first, lds_write(1, 100))
        yield Pair(f"{m.text}, store", _stored(m), first, store(100, 1, 1))
        yield Pair(f"{m.text}, load overwrites", _read(m), first, lds_read(1, 100))
        yield Pair(f"{m.text}, another register", 0, first, move(100, 101))
        yield Pair(f"{m.text}, C overwritten", m.passes - 1 if m.unit == "xdl" else 0, m.line(0, c=100), move(101, 160))
        yield Pair(f"{m.text}, A overwritten", 0, m.line(0), move(200, 160))
        for reader in MATRICES:
            yield Pair(f"{m.text}, A of {reader.text}", _read(m), first, reader.line(100, a=0))
            yield Pair(f"{m.text}, B of {reader.text}", _read(m), first, reader.line(100, b=0))
            yield Pair(f"{m.text}, overlapping C of {reader.text}", _as_addend(m, reader), m.line(4), _overlapping(m, reader))
        exact = 4 if m.text == "v_mfma_f64_4x4x4_4b_f64" else 2 if m.passes == 2 else 0
        yield Pair(f"{m.text}, chain", exact, m.line(0, c=0), m.line(0, c=0))
        yield Pair(f"{m.text}, result overwritten by a product", 0, m.line(0), m.line(0, c=100))


def _overlapping(m: Matrix, reader: Matrix) -> Line:
    """A product whose C shares registers with the result from 4 on, and is not the same where tuples can overlap in part."""
    return reader.line(100, c=6 if reader.sums == m.sums > 2 else 4)


_F16 = BY_NAME["v_mfma_f32_16x16x16_f16"]
_AGPR = Line(
    "v_mfma_f32_16x16x16_f16 a[0:3], v[200:201], v[204:205], a[0:3]",
    "$agpr0_agpr1_agpr2_agpr3 = V_MFMA_F32_16X16X16F16_e64 $vgpr200_vgpr201, $vgpr204_vgpr205, "
    f"$agpr0_agpr1_agpr2_agpr3, 0, 0, 0, {MODE}",
)


def _around_matrices() -> Iterator[Pair]:
    yield Pair("accumulation register read", 7, _AGPR, accumulator_read(0, 2))
    yield Pair("VALU result as A", 2, move(200, 0), _F16.line(0))
    yield Pair("VALU result as C", 2, move(1, 100), _F16.line(0, c=0))
    yield Pair("EXEC before a matrix instruction", 4, CMPX, _F16.line(0))
    yield Pair("sparse product: index", 7, _F16.line(0), sparse(100, 108, 112, 2))
    yield Pair("sparse product: A", 7, _F16.line(0), sparse(100, 0, 112, 116))
    yield Pair("sparse product: exactly D", 0, _F16.line(0), sparse(0, 108, 112, 116))
    yield Pair("sparse product: D overlaps", 5, _F16.line(2), sparse(4, 108, 112, 116))
    yield Pair("sparse product read", 7, sparse(100, 108, 112, 116), move(0, 103))
    yield Pair("f64 products before v_fma_f64", 2, BY_NAME["v_mfma_f64_16x16x4_f64"].line(0), FMA64)
    yield Pair("dot result read", 3, dot("v_dot4_i32_i8", 0, 1), move(10, 0))
    yield Pair("dot result overwritten", 3, dot("v_dot4_i32_i8", 0, 1), move(0, 10))
    yield Pair("dot result stored", 3, dot("v_dot4_i32_i8", 0, 1), lds_write(10, 0))
    yield Pair("dot result as C of the same dot", 0, dot("v_dot4_i32_i8", 0, 1), dot("v_dot4_i32_i8", 0, 0))
    yield Pair("dot result as C of another dot", 3, dot("v_dot4_i32_i8", 0, 1), dot("v_dot8_i32_i4", 0, 0))
    yield Pair("dot result as A of a matrix instruction", 0, dot("v_dot4_i32_i8", 200, 1), _F16.line(0))
    yield Pair("matrix result overwritten by a dot", 7, _F16.line(0), dot("v_dot4_i32_i8", 0, 1))
    yield Pair("VALU result as A of an f64 product", 2, FMA64, BY_NAME["v_mfma_f64_4x4x4_4b_f64"].line(0, a=100))
    yield Pair("dot result overwritten by the same dot", 0, dot("v_dot4_i32_i8", 0, 1), dot("v_dot4_i32_i8", 0, 9))


def dot(name: str, d: int, c: int) -> Line:
    """d = a dot v5 + c."""
    text = f"{name} v{d}, v4, v5, v{c}"
    return Line(text, f"$vgpr{d} = {name.upper()} 8, $vgpr4, 8, $vgpr5, 8, $vgpr{c}, 0, 0, 0, {EXEC}")


# --- the rest: CDNA3 ISA 4.5 ----------------------------------------------------------------------------------------------------

CMPX = Line("v_cmpx_eq_u32_e32 vcc, v0, v1", f"V_CMPX_EQ_U32_e32 $vgpr0, $vgpr1, implicit-def $exec, implicit-def $vcc, {EXEC}")
CMP_VCC = Line("v_cmp_eq_u32_e32 vcc, v0, v1", f"V_CMP_EQ_U32_e32 $vgpr0, $vgpr1, implicit-def $vcc, {EXEC}")
CMP = Line("v_cmp_eq_u32_e64 s[4:5], v0, v1", f"$sgpr4_sgpr5 = V_CMP_EQ_U32_e64 $vgpr0, $vgpr1, {EXEC}")
FIRST_LANE = Line("v_readfirstlane_b32 s4, v1", f"$sgpr4 = V_READFIRSTLANE_B32 $vgpr1, {EXEC}")
READ_LANE = Line("v_readlane_b32 s0, v1, s4", "$sgpr0 = V_READLANE_B32 $vgpr1, $sgpr4")
WRITE_LANE = Line("v_writelane_b32 v1, 0, s4", "$vgpr1 = V_WRITELANE_B32 0, $sgpr4, $vgpr1")
SELECT_VCC = Line("v_cndmask_b32_e32 v2, v3, v4, vcc", f"$vgpr2 = V_CNDMASK_B32_e32 $vgpr3, $vgpr4, implicit $vcc, {EXEC}")
SELECT = Line("v_cndmask_b32_e64 v2, v3, v4, s[4:5]", f"$vgpr2 = V_CNDMASK_B32_e64 0, $vgpr3, 0, $vgpr4, $sgpr4_sgpr5, {EXEC}")
ADD_SGPR = Line("v_add_u32_e32 v2, s4, v3", f"$vgpr2 = V_ADD_U32_e32 $sgpr4, $vgpr3, {EXEC}")
DPP = Line("v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf",
           f"$vgpr2 = V_MOV_B32_dpp $vgpr2, $vgpr1, 273, 15, 15, 0, {EXEC}")
RCP = Line("v_rcp_f32_e32 v1, v0", f"$vgpr1 = V_RCP_F32_e32 $vgpr0, {MODE}")
RCP_AGAIN = Line("v_rcp_f32_e32 v2, v1", f"$vgpr2 = V_RCP_F32_e32 $vgpr1, {MODE}")
SDWA = Line("v_mov_b32_sdwa v1, v0 dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:DWORD",
            f"$vgpr1 = V_MOV_B32_sdwa 0, $vgpr0, 0, 1, 0, 6, {EXEC}")
SDWA_WHOLE = Line("v_mov_b32_sdwa v1, v0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1",
                  f"$vgpr1 = V_MOV_B32_sdwa 0, $vgpr0, 0, 6, 0, 1, {EXEC}")
HIGH = Line("v_fma_f16 v1, v2, v3, v4 op_sel:[0,0,0,1]",
            f"$vgpr1 = V_FMA_F16_gfx9_e64 8, $vgpr2, 0, $vgpr3, 0, $vgpr4, 0, 0, 0, {MODE}")
HIGH_SOURCE = Line("v_fma_f16 v1, v2, v3, v4 op_sel:[0,1,0,0]",
                   f"$vgpr1 = V_FMA_F16_gfx9_e64 0, $vgpr2, 4, $vgpr3, 0, $vgpr4, 0, 0, 0, {MODE}")
FP8_PAIR = Line("v_cvt_pk_fp8_f32 v1, v2, v3 op_sel:[0,0,1]",
                f"$vgpr1 = V_CVT_PK_FP8_F32_e64 8, $vgpr2, 0, $vgpr3, $vgpr1, 0, {MODE}")
FP8_BYTE = Line("v_cvt_sr_fp8_f32 v1, v2, v3 op_sel:[0,0,1,0]",
                f"$vgpr1 = V_CVT_SR_FP8_F32_e64 0, $vgpr2, 0, $vgpr3, 4, $vgpr1, 0, {MODE}")
RCP64 = Line("v_rcp_f64_e32 v[0:1], v[2:3]", f"$vgpr0_vgpr1 = V_RCP_F64_e32 $vgpr2_vgpr3, {MODE}")
DIV_SCALE = Line("v_div_scale_f32 v0, vcc, v1, v1, v2",
                 f"$vgpr0, $vcc = V_DIV_SCALE_F32_e64 0, $vgpr1, 0, $vgpr1, 0, $vgpr2, 0, 0, {MODE}")
ADD_CARRY = Line("v_addc_co_u32_e64 v0, vcc, v1, v2, vcc", f"$vgpr0, $vcc = V_ADDC_U32_e64 $vgpr1, $vgpr2, $vcc, 0, {EXEC}")
SWAP_IF = Line("global_atomic_cmpswap_x2 v[20:21], v[0:1], v[8:11], off sc0",
               f"$vgpr20_vgpr21 = GLOBAL_ATOMIC_CMPSWAP_X2_RTN $vgpr0_vgpr1, $vgpr8_vgpr9_vgpr10_vgpr11, 0, 1, {EXEC}")
DIV_FMAS = Line("v_div_fmas_f32 v4, v2, v3, v4",
                f"$vgpr4 = V_DIV_FMAS_F32_e64 0, $vgpr2, 0, $vgpr3, 0, $vgpr4, 0, 0, {MODE}, implicit $vcc")
FMA64 = Line("v_fma_f64 v[100:101], v[102:103], v[104:105], v[106:107]",
             f"$vgpr100_vgpr101 = V_FMA_F64_e64 0, $vgpr102_vgpr103, 0, $vgpr104_vgpr105, 0, $vgpr106_vgpr107, 0, 0, {MODE}")
LOAD_SADDR = Line("global_load_dword v1, v2, s[4:5]", f"$vgpr1 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr2, 0, 0, {EXEC}")
_DESCRIPTOR = "$sgpr4_sgpr5_sgpr6_sgpr7"
_STORE = f"BUFFER_STORE_DWORDX4_OFFEN_exact $vgpr8_vgpr9_vgpr10_vgpr11, $vgpr2, {_DESCRIPTOR}"
BUFFER_LOAD = Line("buffer_load_dword v1, v2, s[4:7], 0 offen",
                   f"$vgpr1 = BUFFER_LOAD_DWORD_OFFEN $vgpr2, {_DESCRIPTOR}, 0, 0, 0, 0, {EXEC}")
BUFFER_STORE = Line("buffer_store_dwordx4 v[8:11], v2, s[4:7], 0 offen",
                    f"{_STORE}, 0, 0, 0, 0, {EXEC}")
BUFFER_STORE_SGPR = Line("buffer_store_dwordx4 v[8:11], v2, s[4:7], s8 offen",
                         f"{_STORE}, $sgpr8, 0, 0, 0, {EXEC}")
SET_M0 = Line("s_mov_b32 m0, s0", "$m0 = S_MOV_B32 $sgpr0")
LDS_DMA = Line("buffer_load_dword v2, s[4:7], 0 offen lds",
               f"BUFFER_LOAD_DWORD_LDS_OFFEN $vgpr2, {_DESCRIPTOR}, 0, 0, 0, 0, {EXEC}, implicit $m0")
ADD_TID = Line("ds_read_addtid_b32 v1", f"$vgpr1 = DS_READ_ADDTID_B32 0, 0, implicit $m0, {EXEC}")
MESSAGE = Line("s_sendmsg sendmsg(MSG_INTERRUPT)", "S_SENDMSG 1, implicit $exec, implicit $m0")
RELATIVE = Line("s_movrels_b32 s1, s2", "$sgpr1 = S_MOVRELS_B32 $sgpr2, implicit $m0")
SET_MODE = Line("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3",
                "S_SETREG_IMM32_B32_mode 3, 2305, implicit-def $mode, implicit $mode")
GET_MODE = Line("s_getreg_b32 s0, hwreg(HW_REG_MODE, 0, 4)", "$sgpr0 = S_GETREG_B32 6145, implicit $mode")
GET_OTHER = Line("s_getreg_b32 s0, hwreg(HW_REG_TRAPSTS, 0, 4)", "$sgpr0 = S_GETREG_B32 6147, implicit $mode")


def _others() -> Iterator[Pair]:
    yield Pair("lane select", 4, FIRST_LANE, READ_LANE)
    yield Pair("lane select of a write", 4, FIRST_LANE, WRITE_LANE)
    yield Pair("VCC, then v_div_fmas", 4, CMP_VCC, DIV_FMAS)
    yield Pair("VCC of v_div_scale, then v_div_fmas", 4, DIV_SCALE, DIV_FMAS)
    yield Pair("VCC, then a carry", 2, CMP_VCC, ADD_CARRY)
    yield Pair("VCC, then a select", 2, CMP_VCC, SELECT_VCC)
    yield Pair("SGPRs, then a select", 2, CMP, SELECT)
    yield Pair("SGPR, then arithmetic", 2, FIRST_LANE, ADD_SGPR)
    yield Pair("SGPR, then an address", 5, CMP, LOAD_SADDR)
    yield Pair("SGPR, then a descriptor", 5, FIRST_LANE, BUFFER_LOAD)
    yield Pair("VGPR, then DPP", 2, move(1, 0), DPP)
    yield Pair("old value of DPP", 2, move(2, 0), DPP)
    yield Pair("loaded VGPR, then DPP", 2, lds_read(1, 0), DPP)
    yield Pair("EXEC, then DPP", 5, CMPX, DPP)
    yield Pair("EXEC, then a lane read", 4, CMPX, READ_LANE)
    yield Pair("EXEC, then the first lane", 4, CMPX, FIRST_LANE)
    yield Pair("EXEC, then a lane written", 4, CMPX, WRITE_LANE)
    yield Pair("EXEC, then arithmetic", 0, CMPX, move(2, 3))
    yield Pair("VGPR, then a lane read", 1, move(1, 0), READ_LANE)
    yield Pair("VGPR, then the first lane", 1, move(1, 0), FIRST_LANE)
    yield Pair("VGPR, then arithmetic", 0, move(1, 0), move(2, 1))
    yield Pair("transcendental, then arithmetic", 1, RCP, move(2, 1))
    yield Pair("transcendental, then another", 0, RCP, RCP_AGAIN)
    yield Pair("transcendental of f64, then arithmetic", 1, RCP64, move(2, 1))
    yield Pair("two bytes of fp8, then arithmetic", 1, FP8_PAIR, move(2, 1))
    yield Pair("third byte of fp8, then arithmetic", 1, FP8_BYTE, move(2, 1))
    yield Pair("SDWA byte, then arithmetic", 1, SDWA, move(2, 1))
    yield Pair("SDWA byte overwritten", 1, SDWA, move(1, 2))
    yield Pair("SDWA whole, then arithmetic", 0, SDWA_WHOLE, move(2, 1))
    yield Pair("high half, then arithmetic", 1, HIGH, move(2, 1))
    yield Pair("op_sel of a source", 0, HIGH_SOURCE, move(2, 1))
    yield Pair("wide store, data overwritten", 2, store(0, 8, 4), move(9, 20))
    yield Pair("wide store, x3", 2, store(0, 8, 3), move(10, 20))
    yield Pair("wide atomic, data overwritten", 2, SWAP_IF, move(9, 22))
    yield Pair("narrow store, data overwritten", 0, store(0, 8, 2), move(9, 20))
    yield Pair("wide buffer store, data overwritten", 2, BUFFER_STORE, move(9, 20))
    yield Pair("wide buffer store with an SGPR offset", 0, BUFFER_STORE_SGPR, move(9, 20))
    yield Pair("M0, then LDS DMA", 1, SET_M0, LDS_DMA)
    yield Pair("M0, then an add-TID read", 1, SET_M0, ADD_TID)
    yield Pair("M0, then a message", 1, SET_M0, MESSAGE)
    yield Pair("M0, then a relative move", 1, SET_M0, RELATIVE)
    yield Pair("MODE set, then read", 2, SET_MODE, GET_MODE)
    yield Pair("MODE set, then set", 2, SET_MODE, SET_MODE)
    yield Pair("MODE set, another register read", 0, SET_MODE, GET_OTHER)


PAIRS: tuple[Pair, ...] = (*_behind_matrices(), *_around_matrices(), *_others())


def exchange(rows: int, d: int, a: int) -> Line:
    """v_permlane16_swap or v_permlane32_swap, which reads and writes both registers."""
    machine = f"$vgpr{d}, $vgpr{a} = V_PERMLANE{rows}_SWAP_B32_e32 $vgpr{d}, $vgpr{a}, {EXEC}"
    return Line(f"v_permlane{rows}_swap_b32_e32 v{d}, v{a}", machine)


# Around exchanges between lanes, for the chips that have them: LLVM's numbers.
EXCHANGES: tuple[Pair, ...] = (
    Pair("VGPR, then exchanged", 2, move(1, 0), exchange(32, 1, 2)),
    Pair("VGPR, then exchanged as the second", 2, move(2, 0), exchange(16, 1, 2)),
    Pair("exchanged twice", 2, exchange(32, 1, 2), exchange(32, 1, 3)),
    Pair("exchanged, then arithmetic", 0, exchange(16, 1, 2), move(3, 2)),
    Pair("exchanged, then A", 2, exchange(32, 200, 2), _F16.line(0)),
    Pair("transcendental, then exchanged", 2, RCP, exchange(32, 1, 2)),
    Pair("matrix result, then exchanged", 8, _F16.line(0), exchange(32, 1, 100)),
)


# --- where LLVM pauses and the manual does not ask for it ------------------------------------------------------------------------


class Extra(NamedTuple):
    """`states` are LLVM's; the rules here ask for none."""

    why: str
    states: int
    first: Line
    second: Line


def _load(d: int, address: int) -> Line:
    (text, machine) = registers("v", address, 2)
    return Line(f"global_load_dword v{d}, {text}, off", f"$vgpr{d} = GLOBAL_LOAD_DWORD {machine}, 0, 0, {EXEC}")


def _packed(op_sel_hi: str, low_modifiers: int) -> Line:
    """v_pk_add_f32; bit 3 of the first source's modifiers is op_sel_hi's."""
    return Line(f"v_pk_add_f32 v[0:1], v[4:5], v[6:7]{op_sel_hi}",
                f"$vgpr0_vgpr1 = V_PK_ADD_F32 {low_modifiers}, $vgpr4_vgpr5, 8, $vgpr6_vgpr7, 0, 0, 0, 0, 0, {MODE}")


_CLAUSE = "with XNACK, a page fault may replay a clause of loads: it must not overwrite its own addresses"
_OP_SEL_HI = "op_sel_hi of a packed source shares its bit with op_sel of a destination, which packed instructions do not have"
EXTRAS = (
    Extra(_OP_SEL_HI, 1, _packed("", 8), move(10, 1)),
    Extra("the same, without that bit", 0, _packed(" op_sel_hi:[0,1]", 0), move(10, 1)),
    Extra("EXEC is not an operand of a load: the hardware sees that it is written", 5, CMPX, _load(20, 0)),
    Extra(_CLAUSE, 1, _load(20, 0), _load(0, 2)),
    Extra("the same, of other registers", 0, _load(20, 0), _load(22, 2)),
)
