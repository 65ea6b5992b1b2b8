"""The registers of an instruction by the part that they play in it, as hazard rules ask for them.

A part is a choice among the operands of a form, so that it is made once a form; of one instruction only the numbers are read
off. Numbers are those of `registers.number`. What is not a register but has hazards too has a number behind them: `HARDWARE` + n is
hardware register n of s_setreg, `DOUBLES` the double-precision matrix unit, `WRITE_BACK` what buffer_wbl2 does, `EXCHANGE` what
an atomic or a load past the caches does, `STORED` what a store or an atomic leaves in memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from tilefw_amd.isa.encoding.modifiers import DWORD
from tilefw_amd.isa.model import Form, FormOperand, MCInst, RegisterTuple
from tilefw_amd.isa.registers import COUNT, EXEC, M0, VCC, number
from tilefw_amd.isa.text.immediates import HARDWARE_REGISTERS

HARDWARE = COUNT
DOUBLES = HARDWARE + 64
WRITE_BACK, EXCHANGE, STORED = DOUBLES + 1, DOUBLES + 2, DOUBLES + 3
NAMES_BEHIND = (
    *(HARDWARE_REGISTERS.get(n, f"hardware register {n}") for n in range(64)),
    "the f64 matrix unit", "the write-back of the cache", "an access that may have acquired something",
    "a store",
)
"""Names of these, in the order of their numbers."""

VECTOR_ALU = frozenset({"valu", "valu64", "trans", "matrix"})
_IMPLICIT = {"vcc": number(VCC), "exec": number(EXEC), "m0": number(M0)}
_VCCZ, _EXECZ = 251, 252

Numbers = tuple[int, ...]
Part = Callable[[MCInst], Numbers]


# --- kinds of forms -----------------------------------------------------------------------------------------------------


def vector_alu(form: Form) -> bool:
    """Vector arithmetic of any kind, matrix instructions among it."""
    return form.row.unit in VECTOR_ALU


def matrix(form: Form) -> bool:
    """V_MFMA and V_SMFMAC; moves to and from accumulation registers are plain vector arithmetic."""
    return form.row.passes > 0


def plain_vector_alu(form: Form) -> bool:
    return vector_alu(form) and not matrix(form)


def dot(form: Form) -> bool:
    return "dot" in form.row.facts


def vector_memory(form: Form) -> bool:
    """Buffer, flat, global and scratch instructions."""
    return form.row.unit == "vmem"


def memory(form: Form) -> bool:
    """Everything that moves vector registers to memory and back."""
    return form.row.unit in ("vmem", "lds")


def through_dpp(form: Form) -> bool:
    return "dpp_ctrl" in form.modifier


def named(*names: str) -> Callable[[Form], bool]:
    return lambda form: form.row.name in names


def matrix_unit(form: Form) -> str:
    """Which pipe a matrix instruction goes to: "dgemm" (f64), "sgemm" (operands of f32), else "xdl" (CDNA3 ISA 7.5)."""
    return next(unit for unit in ("dgemm", "sgemm", "xdl") if unit in form.row.facts)


# --- parts --------------------------------------------------------------------------------------------------------------


def _is_result(operand: FormOperand) -> bool:
    return operand.role == "destination"


@functools.cache
def _positions(form: Form, choice: Callable[[FormOperand], bool]) -> tuple[int, ...]:
    return tuple(i for i, operand in enumerate(form.operands) if choice(operand))


@functools.cache
def _read_positions(form: Form) -> tuple[int, ...]:
    """Sources, addresses and destinations that are read too; DPP reads the old value of the lanes that it does not reach."""
    kept = through_dpp(form)
    return _positions(form, lambda o: o.role in ("source", "address") or (o.role == "destination" and (o.read or kept)))


@functools.cache
def _addend_positions(form: Form) -> tuple[int, ...]:
    """C of a product, A·B + C: the third source, or the destination where it is read (V_SMFMAC's third source is an index)."""
    read = _positions(form, lambda operand: operand.role == "destination" and operand.read)
    return read or _positions(form, lambda operand: operand.role == "source")[2:3]


@functools.cache
def _unwritten(form: Form, role: str) -> Numbers:
    return tuple(n for o in form.row.operands if o.role == role for n in _IMPLICIT.get(o.name, ()))


def _numbers(inst: MCInst, places: tuple[int, ...], files: str) -> Numbers:
    found: list[int] = []
    operands = inst.operands
    for place in places:
        operand = operands[place]
        if isinstance(operand, RegisterTuple) and operand.file in files and (operand.file != "s" or operand.index < 128):
            found += number(operand)
    return tuple(found)


def vector_results(inst: MCInst) -> Numbers:
    return _numbers(inst, _positions(inst.form, _is_result), "va")


def vector_operands(inst: MCInst) -> Numbers:
    return _numbers(inst, _read_positions(inst.form), "va")


def vector_registers(inst: MCInst) -> Numbers:
    """Those that are read and those that are written."""
    return vector_operands(inst) + vector_results(inst)


def scalar_results(inst: MCInst) -> Numbers:
    """Written SGPRs, VCC, EXEC and M0, named or not."""
    return _numbers(inst, _positions(inst.form, _is_result), "s") + _unwritten(inst.form, "implicit destination")


def scalar_operands(inst: MCInst) -> Numbers:
    """SGPRs, VCC and M0 that are read, named or not, and EXEC where it is named."""
    unwritten = tuple(n for n in _unwritten(inst.form, "implicit source") if n not in _IMPLICIT["exec"])
    return _numbers(inst, _read_positions(inst.form), "s") + unwritten


def result_of_exec(inst: MCInst) -> Numbers:
    return tuple(n for n in scalar_results(inst) if n in _IMPLICIT["exec"])


def exec_mask(inst: MCInst) -> Numbers:
    """EXEC, of every instruction that it guards."""
    return _IMPLICIT["exec"]


def vcc(inst: MCInst) -> Numbers:
    return _IMPLICIT["vcc"]


def m0(inst: MCInst) -> Numbers:
    return _IMPLICIT["m0"]


def zero_flags(inst: MCInst) -> Numbers:
    """VCC and EXEC as far as the operands are src_vccz and src_execz."""
    found: Numbers = ()
    for operand in inst.operands:
        if isinstance(operand, RegisterTuple) and operand.file == "s" and operand.index in (_VCCZ, _EXECZ):
            found += _IMPLICIT["vcc" if operand.index == _VCCZ else "exec"]
    return found


def factors(inst: MCInst) -> Numbers:
    """Vector operands that are not the addend: A and B of a product, the index of a sparse one, all operands of anything else."""
    addend = _addend_positions(inst.form) if matrix(inst.form) or dot(inst.form) else ()
    return _numbers(inst, tuple(p for p in _read_positions(inst.form) if p not in addend), "va")


def addend(inst: MCInst) -> Numbers:
    """C of a matrix or dot product."""
    return _numbers(inst, _addend_positions(inst.form), "va") if matrix(inst.form) or dot(inst.form) else ()


def addend_is(inst: MCInst, producer: MCInst) -> bool:
    """Whether C of a matrix product is exactly the result of another: the same registers from first to last."""
    return addend(inst) == vector_results(producer)


def lane_select(inst: MCInst) -> Numbers:
    """The SGPR that chooses the lane of V_READLANE and V_WRITELANE."""
    return _numbers(inst, _positions(inst.form, lambda operand: operand.role == "source")[1:2], "s")


def shifted_results(inst: MCInst) -> Numbers:
    """Results that are moved to another place in their register: SDWA's dst_sel, op_sel of the destination.

    The bits of op_sel behind those of the sources are the destination's: one, or two that choose a byte of it.
    """
    form = inst.form
    if "dst_sel" in form.modifier:
        moved = inst.modifiers.get("dst_sel", form.defaults["dst_sel"]) != DWORD
    elif "op_sel" in form.modifier and form.encoding.startswith("vop3") and not form.encoding.startswith("vop3p"):
        bits = inst.modifiers.get("op_sel", ())
        own = 2 if "byte of destination" in form.row.facts else 1
        moved = isinstance(bits, tuple) and len(bits) > len(form.row.sources) and any(bits[-own:])
    else:
        moved = False
    return vector_results(inst) if moved else ()


def wide_store_data(inst: MCInst) -> Numbers:
    """The data of a store or atomic of more than 64 bits, unless a buffer access takes its offset from an SGPR (CDNA3 ISA 4.5)."""
    data = _positions(inst.form, lambda operand: operand.role == "source" and operand.registers > 2)
    offset = inst.form.by_name.get("soffset")
    if not data or (offset is not None and isinstance(inst.operands[offset], RegisterTuple)):
        return ()
    return _numbers(inst, data, "va")


def hardware_register(inst: MCInst) -> Numbers:
    """The hardware register that S_SETREG or S_GETREG names."""
    immediate = inst.operands[inst.form.by_name["hwreg"]]
    assert isinstance(immediate, int)
    return (HARDWARE + (immediate & 63),)


def doubles(inst: MCInst) -> Numbers:
    return (DOUBLES,)
