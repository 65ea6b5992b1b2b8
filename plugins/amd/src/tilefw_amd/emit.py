"""Machine functions to assembly text that LLVM takes: code with line information, kernel descriptors, metadata.

Source: LLVM's AMDGPUUsage, "Code Object V3 and Above Assembler Directives" and "Code Object V5 Metadata".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilefw.api.machine import Function, entry_of
from tilefw_amd import abi
from tilefw_amd.code_object.metadata import VERSION, write_text
from tilefw_amd.isa.model import BranchTarget, MCInst
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text import printer
from tilefw_amd.machine.instruction_text import InstructionText
from tilefw_amd.machine.machine_inst import instruction
from tilefw_amd.resources import KernelResources, kernel_resources

# Behind the code stand pauses, so that what is fetched ahead of the end is not stale data: LLVM, AMDGPUTargetStreamer.cpp,
# EmitCodeEnd: 16 cache lines of 64 bytes.
_PAUSE, _LINE_BITS, _PAUSES = 0xBF800000, 6, 16 * 64 // 4


def emit(functions: Sequence[Function], isa: InstructionSet) -> str:
    """The assembly text of these functions; registers are physical, and every opcode is LLVM's."""
    files: dict[str, int] = {}
    triple = isa.chip.triple
    lines = [f'\t.amdgcn_target "{triple}"', "\t.amdhsa_code_object_version 5"]
    kernels: list[dict[str, Any]] = []
    for function in functions:
        used = kernel_resources(isa, function)
        lines += ["\t.text", *_code(isa, function, files), *_descriptor(function, used)]
        kernels.append(_metadata(function, used, isa.chip.limits["lanes"]))
    lines += ["\t.text", f"\t.p2alignl {_LINE_BITS}, {_PAUSE}", f"\t.fill {_PAUSES}, 4, {_PAUSE}"]
    document = {"amdhsa.kernels": kernels, "amdhsa.target": triple, "amdhsa.version": list(VERSION)}
    return "\n".join([*lines, "\t.amdgpu_metadata", write_text(document).rstrip("\n"), "\t.end_amdgpu_metadata", ""])


# --- code --------------------------------------------------------------------------------------------------------------------


def _code(isa: InstructionSet, function: Function, files: dict[str, int]) -> Iterator[str]:
    name = function.name
    yield from (f"\t.globl {name}", "\t.p2align 8", f"\t.type {name},@function", f"{name}:")
    place = None
    text = InstructionText(isa)
    for block in function.blocks:
        if block is not function.blocks[0]:
            yield f"{_label(name, block.label)}:"
        for inst in block.insts:
            here = None if inst.place is None else (inst.place.file, inst.place.line, inst.place.column)
            if here is not None and here != place:
                place = here
                if here[0] not in files:
                    files[here[0]] = len(files) + 1
                    yield f"\t.file {files[here[0]]} {_quoted(here[0])}"
                yield f"\t.loc {files[here[0]]} {here[1]} {here[2]}"
            yield "\t" + (printer.text(_with_own_labels(instruction(isa, inst), name)) if inst.targets else text.of(inst))
    yield from (f".L{name}_end:", f"\t.size {name}, .L{name}_end-{name}")


def _label(function: str, block: str) -> str:
    return f".L{function}_{block}"


def _with_own_labels(inst: MCInst, function: str) -> MCInst:
    """A branch with its label as the file has it: labels of functions are their own."""
    named = [BranchTarget(0, _label(function, o.label)) if isinstance(o, BranchTarget) else o for o in inst.operands]
    return replace(inst, operands=tuple(named))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# --- what the hardware and the runtime must know ---------------------------------------------------------------------------------


def _descriptor(function: Function, used: KernelResources) -> Iterator[str]:
    fields = {
        "group_segment_fixed_size": used.shared_bytes,
        "private_segment_fixed_size": used.scratch_bytes,
        "kernarg_size": abi.argument_bytes(function.attributes.parameters),
        "user_sgpr_count": abi.USER_SGPRS,
        "user_sgpr_kernarg_segment_ptr": 1,
        "enable_private_segment": int(used.scratch_bytes > 0),
        **{f"system_sgpr_workgroup_id_{letter}": 1 for letter in "xyz"},
        "next_free_vgpr": used.unified,
        "next_free_sgpr": used.scalar,
        "accum_offset": used.accumulation_offset,
        "float_denorm_mode_32": 3,  # subnormals of every format are kept
        "ieee_mode": 0,  # V_MIN and V_MAX take the number where the other operand is a NaN, signaling or not (CDNA3 ISA, "MODE")
    }
    yield from ('\t.section .rodata,"a",@progbits', "\t.p2align 6, 0x0", f"\t.amdhsa_kernel {function.name}")
    yield from (f"\t\t.amdhsa_{name} {value}" for name, value in fields.items())
    yield "\t.end_amdhsa_kernel"


def _metadata(function: Function, used: KernelResources, lanes: int) -> dict[str, Any]:
    entry = entry_of(function)
    parameters, workgroup = entry.parameters, list(entry.workgroup)
    facts = {
        ".name": function.name, ".symbol": f"{function.name}.kd", ".args": [_sorted(a) for a in abi.arguments(parameters)],
        ".kernarg_segment_size": abi.argument_bytes(parameters), ".kernarg_segment_align": abi.ARGUMENT_ALIGNMENT,
        ".group_segment_fixed_size": used.shared_bytes, ".private_segment_fixed_size": used.scratch_bytes,
        ".max_flat_workgroup_size": math.prod(workgroup), ".reqd_workgroup_size": workgroup, ".wavefront_size": lanes,
        ".vgpr_count": used.unified, ".agpr_count": used.accumulation, ".sgpr_count": used.scalar,
        ".vgpr_spill_count": used.spills - used.scalar_spills, ".sgpr_spill_count": used.scalar_spills,
        ".uses_dynamic_stack": False,
    }
    return _sorted(facts)


def _sorted(facts: Mapping[str, Any]) -> dict[str, Any]:
    """In the order in which LLVM writes a map of the note, so that the same text gives the same file."""
    return dict(sorted(facts.items()))
