"""What no single operand tells: rules between the operands of an instruction that the assembler has to refuse.

LLVM states them in `AMDGPUAsmParser.cpp` (validateConstantBusLimitations, validateSOPLiteral, validateMFMA, validateAGPRLdSt,
validateDPP, validateOpSel); the manual: CDNA3 ISA, sections "VOP3P-MAI", "Scalar operands", "DPP".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from tilefw_amd.isa.encoding.modifiers import ROW_NEWBCAST
from tilefw_amd.isa.model import Form, Literal32, MCInst, Operand, RegisterTuple
from tilefw_amd.isa.registers import M0, VCC

Restriction = Callable[[MCInst], str]
"""Says what is wrong, or ""."""


RANGES = {"s_nop": 15, "s_sleep": 127, "s_setprio": 3}
"""The highest immediate of which the hardware uses every bit (CDNA3 ISA, section "SOPP"); LLVM takes any 16 bits."""


def restrictions_of(form: Form, keys: tuple[Hashable, ...]) -> tuple[Restriction, ...]:
    """The rules that statements of those keys may break."""
    found: list[Restriction] = []
    if _is_vector(form) and sum(map(_is_scalar, keys)) + _reads_vcc(form) > 1:
        found.append(one_constant)
    if form.format.shared in ("sop2", "sopc") and sum(isinstance(key, tuple) and len(key) == 2 for key in keys) > 1:
        found.append(one_literal)
    if form.row.passes:
        found.append(whole_accumulators)
    if _data_files(form) and any(isinstance(key, tuple) and key[0] == "a" for key in keys):
        found.append(same_file)
    if "dot" in form.row.facts and "op_sel" in form.modifier:
        found.append(halves_in_place)
    if form.row.name in ("v_readlane_b32", "v_readfirstlane_b32"):
        found.append(not_to_m0)
    if form.row.name in RANGES:
        found.append(in_range)
    if form.format.name.endswith("_dpp") and any(o.registers == 2 and o.pieces for o in form.operands):
        found.append(wide_dpp)
    return tuple(found)


def _is_vector(form: Form) -> bool:
    return form.format.name.startswith(("vop", "mai"))


def _reads_vcc(form: Form) -> bool:
    """v_div_fmas reads VCC without naming it."""
    return any(o.role == "implicit source" and o.name == "vcc" for o in form.row.operands)


def _is_scalar(key: Hashable) -> bool:
    """Whether an operand of this key may need the one constant that a vector instruction can read."""
    return key == "symbol" or (isinstance(key, tuple) and (len(key) == 2 or key[0] == "s"))


def one_constant(inst: MCInst) -> str:
    """A vector instruction reads one scalar register or literal: CDNA3 ISA, section "Scalar operands"; the same one may recur.

    The lane of v_writelane_b32 may be in m0 besides (LLVM, checkWriteLane).
    """
    if inst.form.row.name == "v_writelane_b32" and inst.operands[2] == M0:
        return ""
    read: set[Operand] = {VCC} if _reads_vcc(inst.form) else set()
    read |= {
        operand
        for operand, of in zip(inst.operands, inst.form.operands, strict=False)
        if of.role != "destination" and (
            isinstance(operand, Literal32) or (isinstance(operand, RegisterTuple) and operand.file == "s")
        )
    }
    return f"a vector instruction reads one scalar register or literal, here are {len(read)}" if len(read) > 1 else ""


def one_literal(inst: MCInst) -> str:
    read = {operand for operand in inst.operands if isinstance(operand, Literal32)}
    return "an instruction has room for one literal" if len(read) > 1 else ""


def whole_accumulators(inst: MCInst) -> str:
    """C is D itself, or apart from it; both are of one file. D of 128 bits and less may overlap (LLVM, validateMFMA)."""
    d, place = inst.operands[0], inst.form.by_name.get("c")
    c = None if place is None else inst.operands[place]
    if not isinstance(d, RegisterTuple) or not isinstance(c, RegisterTuple):
        return ""
    if d.file != c.file:
        return "C and D are both vector registers or both accumulation registers"
    apart = c.index >= d.index + d.count or d.index >= c.index + c.count
    if d.count <= 4 or d.index == c.index or apart:
        return ""
    return "C must be D itself, or not overlap it"


def _data_files(form: Form) -> bool:
    return form.format.name in ("ds", "flat", "mtbuf", "mubuf")


def same_file(inst: MCInst) -> str:
    """One bit says for all data of a memory instruction that it is in accumulation registers."""
    files = {
        operand.file
        for operand, of in zip(inst.operands, inst.form.operands, strict=False)
        if isinstance(operand, RegisterTuple) and of.role != "address" and operand.file != "s"
    }
    return "data are either all in vector registers or all in accumulation registers" if len(files) > 1 else ""


def wide_dpp(inst: MCInst) -> str:
    """64-bit operations have one DPP control, row_newbcast (LLVM, validateDPP)."""
    control = inst.modifiers.get("dpp_ctrl", inst.form.defaults.get("dpp_ctrl", 0))
    good = isinstance(control, int) and ROW_NEWBCAST <= control < ROW_NEWBCAST + 16
    return "" if good else "DPP of 64-bit operands is row_newbcast only"


def halves_in_place(inst: MCInst) -> str:
    """Dot products have op_sel and op_sel_hi in their encoding, but take each half from its place (LLVM, validateOpSel)."""
    defaults = inst.form.defaults
    moved = [name for name in ("op_sel", "op_sel_hi") if inst.modifiers.get(name, defaults[name]) != defaults[name]]
    return f"{inst.form.mnemonic} has no {moved[0]}" if moved else ""


def not_to_m0(inst: MCInst) -> str:
    """LLVM's register class of these destinations is SReg_32_XM0."""
    return f"{inst.form.row.name} does not write m0" if inst.operands[0] == M0 else ""


def in_range(inst: MCInst) -> str:
    """An immediate whose high bits the hardware does not read says something else than it does."""
    value, most = inst.operands[0], RANGES[inst.form.row.name]
    return f"{inst.form.row.name} takes 0 to {most}, not {value}" if isinstance(value, int) and not 0 <= value <= most else ""
