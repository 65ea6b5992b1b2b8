"""What machine code must keep to, and the hardware does not check: wait states between instructions, ranges of waits.

Sources: AMD's "CDNA3 Instruction Set Architecture", section 4.5 "Manually Inserted Wait States" (cases of table 11 by number) and
7.5 "Dependency Resolution: Required Independent Instructions"; LLVM's `GCNHazardRecognizer.cpp`, whose functions the rules
name. Where the two differ, the rule is LLVM's, as code that it compiles is what runs, but for three things that it does without
the manual's asking:

- a pause behind packed instructions: LLVM takes op_sel_hi of the first source for op_sel of the destination, as the two share a
  bit of the operand's modifiers (`getDstSelForwardingOperand`, SISrcMods::DST_OP_SEL); packed results are not moved;
- one between vector arithmetic that writes EXEC and vector memory: the manual speaks of SGPRs that are operands;
- breaks of clauses for XNACK (`checkSoftClauseHazards`), which protect loads that a page fault replays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

from tilefw.api.sim import HazardRule, Hazards, Instruction
from tilefw_amd.chips import Chip
from tilefw_amd.isa.meaning import operand_roles as roles
from tilefw_amd.isa.meaning.operand_roles import Part
from tilefw_amd.isa.model import Form, MCInst
from tilefw_amd.isa.text.immediates import WAIT_COUNTERS, highest

# The highest count that S_WAITCNT holds of each counter, which waits for nothing (CDNA3 ISA, section "SOPP", S_WAITCNT).
WAIT_RANGES: dict[str, int] = {name: highest(name) for name in WAIT_COUNTERS}

Kind = Callable[[Form], bool]


@dataclass(frozen=True, slots=True)
class WaitStateRule:
    """Instructions of kind `after` that touch in part `touches` what one of kind `first` left in part `leaves` stand `states` wait
    states behind it, or as many as the two say."""

    name: str
    section: str
    first: Kind
    leaves: Part
    after: Kind
    accesses: Part
    states: int | Callable[[MCInst, MCInst], int]

    def horizon(self, chip: Chip) -> int:
        """The most wait states that it asks for."""
        return self.states if isinstance(self.states, int) else chip.matrix_hazards.most

    def for_kit(self, chip: Chip) -> HazardRule:
        states = self.states
        needed = (lambda first, after: states) if isinstance(states, int) else (lambda first, after: states(first.row, after.row))
        return HazardRule(
            self.name, self.section, _asked(self.first, self.leaves), _asked(self.after, self.accesses), needed,
            horizon=self.horizon(chip),
        )


def _asked(kind: Kind, part: Part) -> Callable[[Instruction], tuple[int, ...]]:
    """The part's numbers, for instructions of the kind."""
    concerns = functools.cache(kind)

    def numbers(instruction: Instruction) -> tuple[int, ...]:
        inst = instruction.row
        return part(inst) if inst is not None and concerns(inst.form) else ()

    return numbers


# --- matrix instructions: wait states by kind and passes are the chip's (`MatrixHazards`) -----------------------------------


def _kind_and_passes(inst: MCInst) -> tuple[str, int]:
    return roles.matrix_unit(inst.form), inst.form.row.passes


def _product(first: MCInst, after: MCInst) -> int:
    """Until a result may be read as A or B of another product, or by vector arithmetic.

    `GFX940_XDL_N_PassWritesVGPROverlappedSrcABWaitStates`, `…VALUMemExpReadWaitStates` and those of SMFMA.
    """
    return first.form.chip.matrix_hazards.read[_kind_and_passes(first)]


def _product_rewritten(first: MCInst, after: MCInst) -> int:
    """Until vector arithmetic or a load may overwrite a result (`…VALUWawWaitStates`)."""
    found = first.form.chip.matrix_hazards.rewritten.get(_kind_and_passes(first))
    return _product(first, after) if found is None else found


def _product_to_memory(first: MCInst, after: MCInst) -> int:
    """Until a result may be stored or be an address (`checkMAIVALUHazards`)."""
    found = first.form.chip.matrix_hazards.memory.get(_kind_and_passes(first))
    return _product(first, after) if found is None else found


def _product_as_addend(first: MCInst, after: MCInst) -> int:
    """Until a result may be C of another product: exactly the same registers are forwarded (`checkMAIHazards90A`)."""
    numbers, kind, reader = first.form.chip.matrix_hazards, _kind_and_passes(first), _kind_and_passes(after)
    if roles.addend_is(after, first):
        doubles = numbers.forwarded_dgemm.get(kind[1]) if kind == reader and kind[0] == "dgemm" else None
        return numbers.forwarded.get(kind[1], 0) if doubles is None else doubles
    found = numbers.addend_to.get((*kind, reader[0]))
    return numbers.addend[kind] if found is None else found


def _addend_overwritten(first: MCInst, after: MCInst) -> int:
    """Until C may be overwritten while the product still reads it: XDL only (`checkMAIVALUHazards`, `IsSMFMAReadAsCFn`)."""
    return first.form.chip.matrix_hazards.overwritten[first.form.row.passes]


def _dot_chain(first: MCInst, after: MCInst) -> int:
    """A dot product's result is forwarded to C of the next one of the same opcode only, and overwritten by that at once."""
    return 0 if first.form.mnemonic == after.form.mnemonic else 3


def _xdl(form: Form) -> bool:
    return roles.matrix(form) and roles.matrix_unit(form) == "xdl"


def _double(form: Form) -> bool:
    return roles.matrix(form) and roles.matrix_unit(form) == "dgemm"


def _plain(form: Form) -> bool:
    """Vector arithmetic and memory, without matrix instructions."""
    return roles.plain_vector_alu(form) or roles.memory(form)


_MAI, _MAI_VALU = "LLVM checkMAIHazards90A", "LLVM checkMAIVALUHazards"
MATRIX_RULES = (
    WaitStateRule("matrix result as A, B or index of a matrix instruction", f"CDNA3 ISA 7.5; {_MAI}",
        roles.matrix, roles.vector_results, roles.matrix, roles.factors, _product),
    WaitStateRule("matrix result as C of a matrix instruction", f"CDNA3 ISA 7.5; {_MAI}",
        roles.matrix, roles.vector_results, roles.matrix, roles.addend, _product_as_addend),
    WaitStateRule("matrix result read by vector arithmetic", f"CDNA3 ISA 7.5; {_MAI_VALU}",
        roles.matrix, roles.vector_results, roles.plain_vector_alu, roles.vector_operands, _product),
    WaitStateRule("matrix result overwritten by vector arithmetic", f"CDNA3 ISA 7.5; {_MAI_VALU}",
        roles.matrix, roles.vector_results, roles.plain_vector_alu, roles.vector_results, _product_rewritten),
    WaitStateRule("matrix result read by a memory instruction", f"CDNA3 ISA 7.5; {_MAI_VALU}",
        roles.matrix, roles.vector_results, roles.memory, roles.vector_operands, _product_to_memory),
    WaitStateRule("matrix result overwritten by a load", f"CDNA3 ISA 7.5; {_MAI_VALU}",
        roles.matrix, roles.vector_results, roles.memory, roles.vector_results, _product_rewritten),
    WaitStateRule("C of a matrix instruction overwritten", f"CDNA3 ISA 7.5; {_MAI_VALU}",
        _xdl, roles.addend, _plain, roles.vector_results, _addend_overwritten),
    WaitStateRule("vector result read by a matrix instruction", f"CDNA3 ISA 7.5; {_MAI}",
        lambda form: roles.plain_vector_alu(form) and not roles.dot(form), roles.vector_results,
        roles.matrix, roles.vector_operands, 2),
    WaitStateRule("EXEC written by vector arithmetic before a matrix instruction", _MAI,
        roles.plain_vector_alu, roles.result_of_exec, roles.matrix, roles.exec_mask, 4),
    WaitStateRule("double-precision matrix instruction before V_FMA_F64", f"{_MAI_VALU}, DMFMAToFMA64WaitStates",
        _double, roles.doubles, roles.named("v_fma_f64", "v_fmac_f64"), roles.doubles, 2),
    WaitStateRule("dot product's result as an operand that is not C", f"CDNA3 ISA 7.5; {_MAI_VALU}",
        roles.dot, roles.vector_results, _plain, roles.factors, 3),
    WaitStateRule("dot product's result as C, or overwritten, by another opcode", f"CDNA3 ISA 7.5; {_MAI_VALU}",
        roles.dot, roles.vector_results, _plain, lambda inst: roles.addend(inst) + roles.vector_results(inst), _dot_chain),
)


# --- everything else: CDNA3 ISA 4.5, table 11 -------------------------------------------------------------------------------

_VALU = "LLVM checkVALUHazards"
_EXCHANGES = roles.named("v_permlane16_swap_b32", "v_permlane32_swap_b32")
_LANES = roles.named("v_readlane_b32", "v_readfirstlane_b32", "v_writelane_b32")


def _reads_m0_late(form: Form) -> bool:
    """M0 as LDS address or offset, message or register number: not forwarded from the scalar unit."""
    reads = any(o.role == "implicit source" and o.name == "m0" for o in form.row.operands)
    return reads and (form.row.unit in ("vmem", "lds", "export") or "relative" in form.row.facts)


RULES = (
    WaitStateRule("hardware register set, then read or set",
        "CDNA3 ISA 4.5, cases 1, 2; LLVM checkGetRegHazards, checkSetRegHazards",
        roles.named("s_setreg_b32", "s_setreg_imm32_b32"), roles.hardware_register,
        roles.named("s_setreg_b32", "s_setreg_imm32_b32", "s_getreg_b32"), roles.hardware_register, 2),
    WaitStateRule("VCC or EXEC written by vector arithmetic, then vccz or execz as data", "CDNA3 ISA 4.5, case 5",
        roles.vector_alu, roles.scalar_results, roles.vector_alu, roles.zero_flags, 5),
    WaitStateRule("SGPR written by vector arithmetic, then a lane select", "CDNA3 ISA 4.5, cases 6, 18; LLVM checkRWLaneHazards",
        roles.vector_alu, roles.scalar_results, roles.named("v_readlane_b32", "v_writelane_b32"), roles.lane_select, 4),
    WaitStateRule("VCC written by vector arithmetic, then V_DIV_FMAS", "CDNA3 ISA 4.5, case 7; LLVM checkDivFMasHazards",
        roles.vector_alu, roles.scalar_results, roles.named("v_div_fmas_f32", "v_div_fmas_f64"), roles.vcc, 4),
    WaitStateRule("data of a wide store overwritten by vector arithmetic", f"CDNA3 ISA 4.5, case 9; {_VALU}Helper",
        roles.vector_memory, roles.wide_store_data, roles.vector_alu, roles.vector_results, 2),
    WaitStateRule("SGPR written by vector arithmetic, then read by vector memory", "CDNA3 ISA 4.5, case 10; LLVM checkVMEMHazards",
        roles.vector_alu, roles.scalar_results, roles.vector_memory, roles.scalar_operands, 5),
    WaitStateRule("M0 written by the scalar unit, then used by a message, LDS or a relative move",
        "CDNA3 ISA 4.5, cases 11, 16, 17; LLVM checkReadM0Hazards",
        lambda form: form.row.unit == "salu", roles.scalar_results, _reads_m0_late, roles.m0, 1),
    WaitStateRule("VGPR written, then read through DPP", "CDNA3 ISA 4.5, case 12; LLVM checkDPPHazards",
        lambda form: True, roles.vector_results, roles.through_dpp, roles.vector_operands, 2),
    WaitStateRule("EXEC written by vector arithmetic, then DPP", "CDNA3 ISA 4.5, case 13; LLVM checkDPPHazards",
        roles.vector_alu, roles.result_of_exec, roles.through_dpp, roles.exec_mask, 5),
    WaitStateRule("SGPR written by vector arithmetic, then read by it", f"CDNA3 ISA 4.5, case 18; {_VALU}",
        roles.vector_alu, roles.scalar_results, roles.vector_alu, roles.scalar_operands, 2),
    WaitStateRule("VGPR written by vector arithmetic, then exchanged between lanes", "LLVM checkPermlaneHazards",
        roles.vector_alu, roles.vector_results, _EXCHANGES, roles.vector_registers, 2),
    WaitStateRule("EXEC written by vector arithmetic, then a lane read or written", f"CDNA3 ISA 4.5, case 18; {_VALU}",
        roles.vector_alu, roles.result_of_exec, _LANES, roles.exec_mask, 4),
    WaitStateRule("VGPR written by vector arithmetic, then a lane of it read", f"CDNA3 ISA 4.5, case 19; {_VALU}",
        roles.vector_alu, roles.vector_results,
        roles.named("v_readlane_b32", "v_readfirstlane_b32"), roles.vector_operands, 1),
    WaitStateRule("result moved by SDWA or op_sel, then accessed by vector arithmetic", f"CDNA3 ISA 4.5, case 20; {_VALU}",
        roles.vector_alu, roles.shifted_results, roles.vector_alu, roles.vector_registers, 1),
    WaitStateRule("result of a transcendental, then read by other vector arithmetic", f"CDNA3 ISA 4.5, case 21; {_VALU}",
        lambda form: "trans" in form.row.facts, roles.vector_results,
        lambda form: roles.vector_alu(form) and "trans" not in form.row.facts, roles.vector_operands, 1),
)


def wait_states(instruction: Instruction) -> int:
    """How many an instruction gives: one, or what S_NOP says (`SIInstrInfo::getNumWaitStates`)."""
    inst = instruction.row
    if inst is None or inst.form.row.name != "s_nop":
        return 1
    return (inst.operands[0] & 15) + 1


@functools.cache
def straight_hazards(chip: Chip) -> Hazards:
    """The hazards of a program without pairs of branches."""
    rules = (*MATRIX_RULES, *RULES)

    @functools.cache
    def of_form(form: Form) -> tuple[int, ...]:
        return tuple(number for number, rule in enumerate(rules) if rule.first(form))

    def producing(instruction: Instruction) -> tuple[int, ...]:
        return () if instruction.row is None else of_form(instruction.row.form)

    return Hazards(tuple(rule.for_kit(chip) for rule in rules), wait_states, producing)


def hazards(chip: Chip, pairs: frozenset[int]) -> Hazards:
    """The hazards of a program in which the conditional branches numbered `pairs` stand before an unconditional one.

    LLVM counts both of them on either way out of the block (`getWaitStatesSince` goes back over whole blocks), and so one
    wait state more than is executed where the first is taken. What a branch costs covers that: eight issues (`SISchedule.td`,
    WriteBranch).
    """
    straight = straight_hazards(chip)
    if not pairs:
        return straight
    return replace(straight, wait_states=lambda instruction: 2 if instruction.index in pairs else wait_states(instruction))
