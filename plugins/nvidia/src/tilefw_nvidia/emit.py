"""Machine functions to PTX text: directives, parameters, register declarations, line information, instructions.

Source: PTX ISA, "Syntax", "Directives" (kernel parameters, performance-tuning and debugging directives).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from tilefw.api.errors import PluginError
from tilefw.api.machine import Function, Inst, Reg, Slice, entry_of, live_peak
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.chips.chip import Version
from tilefw_nvidia.chips.occupancy import occupancy
from tilefw_nvidia.isa.meaning.fragments import OPERAND_COUNTS
from tilefw_nvidia.isa.set import instruction_set
from tilefw_nvidia.select import inline_assembly
from tilefw_nvidia.select.lanes import SHARED, TABLE
from tilefw_nvidia.select.registers_needed import DEAL, SIZES, needed_at_least

_CLASSES = {"p": ".pred", "rs": ".b16", "r": ".b32", "rd": ".b64"}
_REGISTERS = 255  # of a thread, beyond which ptxas never goes (CUDA C++ Programming Guide, "Technical Specifications")
_MANY = 160  # registers of a thread, up to which ptxas was not seen to spill for the sake of more workgroups
_PARAMETER = {"pointer": ".u64", 1: ".u8", 2: ".u16", 4: ".u32", 8: ".u64"}


def emit(functions: Sequence[Function], chip: Chip, maxnreg: int | None) -> str:
    """The PTX module of these functions. More shared memory than is static on the chip is dynamic, its size a parameter of the
    launch (CUDA C++ Programming Guide, "Compute Capability 8.x")."""
    files: dict[str, int] = {}
    most = max((f.attributes.shared_bytes for f in functions), default=0)
    if chip.registers_per_thread < _REGISTERS:
        maxnreg = min(maxnreg or _REGISTERS, chip.registers_per_thread)
    static = most <= chip.static_shared_bytes
    bodies = [
        _entry(function, files, maxnreg, static, None if maxnreg else _together(function, chip, static)) for function in functions
    ]
    opcodes = {inst.opcode for function in functions for inst in function.insts()}
    if inline_assembly.OPCODE in opcodes:
        opcodes = {opcode for function in functions for inst in function.insts() for opcode in _opcodes(inst, chip)}
    version = lowest_version(opcodes, chip)
    lines = [f".version {version[0]}.{version[1]}", f".target {chip.name}", ".address_size 64", ""]
    if not static:
        lines += [f".extern .shared .align {max(f.attributes.shared_align for f in functions)} .b8 {SHARED}[];", ""]
    lines += [line for body in bodies for line in body]
    lines += [f'.file {index} "{_escape(name)}"' for name, index in files.items()]
    return "\n".join(lines) + "\n"


def _opcodes(inst: Inst, chip: Chip) -> tuple[str, ...]:
    """The opcodes that an instruction is written as."""
    if inst.opcode != inline_assembly.OPCODE:
        return (inst.opcode,)
    text, *operands = inst.uses
    forms = tuple(inline_assembly.form_of(r.reg.cls) for r in (*inst.defs, *operands) if isinstance(r, Slice))
    return inline_assembly.opcodes(str(text), forms, chip)


def lowest_version(opcodes: Iterable[str], chip: Chip) -> Version:
    """The lowest `.version` that has the chip and all opcodes; raises PluginError (TFW0512) for one that the chip does not have."""
    return max([chip.first_version, *(_needs(opcode, chip) for opcode in opcodes)])


@cache
def _needs(opcode: str, chip: Chip) -> Version:
    """The table's answer, asked once an opcode."""
    spec = instruction_set(chip).opcode(opcode)
    if not spec.exists:
        raise PluginError(f"the rules for {chip.name} emit {opcode}: {spec.problem}", code="TFW0512")
    return spec.version


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _together(function: Function, chip: Chip, static: bool) -> int | None:
    """How many workgroups of a kernel a processor is to hold, where ptxas must be told; None where it finds out.

    Of dynamic shared memory it does not see how much it is, and spills for the sake of workgroups that do not fit. Where all is
    static it may aim at one more than the registers are enough for in any order of the instructions, and spill, or at one fewer.
    """
    if any(inst.opcode.startswith(DEAL) for inst in function.insts()):
        return 1  # ptxas must know how many registers a thread has before it: PTX ISA, setmaxnreg
    threads, shared = math.prod(entry_of(function).workgroup), function.attributes.shared_bytes
    if static and sum(SIZES.get(piece.reg.cls, 0) * piece.reg.width for inst in function.insts() for piece in inst.defs) <= _MANY:
        return None  # all that it ever writes fits in at once
    peak = live_peak(function, TABLE, SIZES)
    needed = needed_at_least(peak)
    room, held, most = (_workgroups(chip, threads, registers, shared) for registers in (0, peak.most, needed))
    if not static:
        return held
    return most if needed > _MANY and most < room else None


def _workgroups(chip: Chip, threads: int, registers: int, shared: int) -> int:
    registers = min(registers, chip.registers_per_thread)
    return max(1, int(occupancy(chip, threads, registers, shared) * chip.threads_per_processor / threads))


def _entry(
    function: Function, files: dict[str, int], maxnreg: int | None, static: bool, together: int | None = None
) -> list[str]:
    entry = entry_of(function)
    parameters, shared = entry.parameters, function.attributes.shared_bytes
    lines = [f".visible .entry {function.name}("]
    for i, p in enumerate(parameters):
        comma = "," if i + 1 < len(parameters) else ""
        word = f"{function.name}_param_{i}"
        declared = f".align {p.alignment} .b8 {word}[{p.size}]" if p.kind == "struct" else f"{_PARAMETER[p.size]} {word}"
        lines.append(f"\t.param {declared}{comma}  // {p.name}: {p.dtype} {p.kind}")
    lines += [")", f".reqntid {', '.join(map(str, entry.workgroup))}"]
    if entry.workgroups > 1:
        # PTX ISA, "Cluster Dimension Directives": with both, the launch need not say that it is one of clusters.
        lines += [".explicitcluster", f".reqnctapercluster {entry.workgroups}"]
    if maxnreg is not None:
        lines.append(f".maxnreg {maxnreg}")
    if together is not None:
        lines.append(f".minnctapersm {together}")
    names, declarations = _names(function)
    if static and shared:
        declarations.append(f"\t.shared .align {function.attributes.shared_align} .b8 {SHARED}[{shared}];")
    lines += ["{", *declarations, ""]
    place = last = None
    for block in function.blocks:
        if block.label != "entry":
            lines.append(f"${function.name}_{block.label}:")
        for inst in block.insts:
            if inst.place is not None and inst.place is not last:
                last = inst.place
                here = (last.file, last.line, last.column)
                if here != place:
                    place = here
                    lines.append(f"\t.loc {files.setdefault(here[0], len(files) + 1)} {here[1]} {here[2]}")
            lines.append(f"\t{_inst(inst, names, function.name)}")
    return [*lines, "}", ""]


def _names(function: Function) -> tuple[dict[Reg, str], list[str]]:
    """Names of the registers that are used, counted by class from 1, and their declarations."""
    counts = dict.fromkeys(_CLASSES, 0)
    names: dict[Reg, str] = {}
    for inst in function.insts():
        for piece in (*inst.defs, *inst.uses) if inst.predicate is None else (*inst.defs, *inst.uses, inst.predicate):
            if piece.__class__ is Slice and piece.reg not in names:  # type: ignore[union-attr]
                cls = piece.reg.cls  # type: ignore[union-attr]
                counts[cls] += 1
                names[piece.reg] = f"%{cls}{counts[cls]}"  # type: ignore[union-attr]
    return names, [f"\t.reg {_CLASSES[cls]} %{cls}<{n + 1}>;" for cls, n in counts.items() if n]


def _inst(inst: Inst, names: dict[Reg, str], function: str) -> str:
    opcode = inst.opcode
    uses = [names[use.reg] if use.__class__ is Slice else str(use) for use in inst.uses]  # type: ignore[union-attr]
    defs = [names[piece.reg] for piece in inst.defs]
    guard = "" if inst.predicate is None else f"@{'!' if inst.predicate_not else ''}{names[inst.predicate.reg]} "
    base = opcode.partition(".")[0]
    if base == inline_assembly.OPCODE:
        return f"{{\n{inline_assembly.substituted(uses[0], [*defs, *uses[1:]])}\n\t}}"
    if base == "mov" and len(defs) + len(uses) > 2:
        operands = [_group(defs), _group(uses)]
    elif opcode.endswith(".bulk_group"):
        operands = [f"[{uses[0]}, {{{', '.join(uses[1:-2])}}}]", _address(*uses[-2:])]
    elif opcode.startswith("cp.async.bulk.tensor"):
        to, barrier = _address(uses[0], uses[1]), _address(uses[2], uses[3])
        places, mask = (uses[5:-1], uses[-1:]) if opcode.endswith(".multicast::cluster") else (uses[5:], [])
        operands = [to, f"[{uses[4]}, {{{', '.join(places)}}}]", barrier, *mask]
    elif base in _FORMS and not opcode.startswith(_PLAIN):
        operands = _FORMS[base](opcode, defs, uses)
    else:
        operands = defs + uses
        if inst.targets:
            operands += [f"${function}_{label}" for label in inst.targets]
    return f"{guard}{opcode}{' ' if operands else ''}{', '.join(operands)};"


def _group(registers: Sequence[str]) -> str:
    return registers[0] if len(registers) == 1 else "{" + ", ".join(registers) + "}"


_PLAIN = ("ld.param", "cp.async.commit", "cp.async.wait", "cp.async.bulk.commit", "cp.async.bulk.wait")  # operands as they are


def _address(register: str, offset: str) -> str:
    return f"[{register}]" if offset == "0" else f"[{register}+{offset}]"


def _matrix(opcode: str, defs: Sequence[str], uses: Sequence[str]) -> list[str]:
    """An mma's operands as they are written: the registers of D, A, B and C, each in braces."""
    found, at = ["{" + ", ".join(defs) + "}"], 0
    for count in OPERAND_COUNTS[opcode]:
        found.append("{" + ", ".join(uses[at : at + count]) + "}")
        at += count
    return found


def _mbarrier(defs: Sequence[str], uses: Sequence[str]) -> list[str]:
    """The operands of an operation on a barrier: its result, or the sink for it, the address, and the rest."""
    if uses[0] == "_":
        return ["_", _address(uses[1], uses[2]), *uses[3:]]
    return [*defs, _address(uses[0], uses[1]), *uses[2:]]


def _warpgroup(opcode: str, defs: Sequence[str], uses: Sequence[str]) -> list[str]:
    """A warpgroup's product: D in braces, A's descriptor or its registers in braces, and the rest."""
    if not defs:
        return list(uses)
    left = [uses[0]] if uses[0].startswith("%rd") else ["{" + ", ".join(uses[:4]) + "}"]
    return ["{" + ", ".join(defs) + "}", *left, *uses[1 if uses[0].startswith("%rd") else 4 :]]


# How the operands of an instruction are written, where that is not one after the other: (opcode, definitions, uses).
_FORMS: dict[str, Callable[[str, Sequence[str], Sequence[str]], list[str]]] = {
    "ld": lambda opcode, defs, uses: [_group(defs), _address(uses[0], uses[1])],
    "st": lambda opcode, defs, uses: [_address(uses[0], uses[1]), _group(uses[2:])],
    "atom": lambda opcode, defs, uses: [*defs, _address(uses[0], uses[1]), *uses[2:]],
    "red": lambda opcode, defs, uses: [_address(uses[0], uses[1]), *uses[2:]],
    "multimem": lambda opcode, defs, uses: [_group(part) for part in (defs,) if part] + [_address(uses[0], uses[1])] + [
        _group(part) for part in (uses[2:],) if part
    ],
    "cp": lambda opcode, defs, uses: [_address(*uses[i : i + 2]) for i in range(0, min(len(uses), 4), 2)] + list(uses[4:]),
    "mbarrier": lambda opcode, defs, uses: _mbarrier(defs, uses),
    # An ldmatrix writes its registers in braces even if there is one (PTX ISA, ldmatrix).
    "ldmatrix": lambda opcode, defs, uses: ["{" + ", ".join(defs) + "}", _address(uses[0], uses[1])],
    "stmatrix": lambda opcode, defs, uses: [_address(uses[0], uses[1]), "{" + ", ".join(uses[2:]) + "}"],
    "mma": _matrix,
    "wgmma": _warpgroup,
}
