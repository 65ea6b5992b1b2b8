"""Inline assembly in PTX: its registers by the letters of LLVM's NVPTX backend, its text checked by the reader of PTX.

The text becomes one instruction, whose first operand is the text. `emit` writes it in a scope of its own, so that names which it
declares are its own in each place. Letters: LLVM, "NVPTX" in LangRef's "Supported Constraint Code List".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from tilefw.api import CodeError, CompileError
from tilefw.api.machine import Slice
from tilefw.api.simt import AsmOperand, Code, Const, Element, InlineAssembly, LaneChip
from tilefw_nvidia import isa
from tilefw_nvidia.chips import Chip

OPCODE = "inline_assembly"
_FORMS = {"r": "w32", "f": "w32", "l": "w64", "d": "w64", "h": "e16", "c": "e16"}
_BITS = {"w32": 32, "w64": 64, "e16": 16}
_TYPES = {"w32": "b32", "w64": "b64", "e16": "b16"}
_CLASSES = {"r": "w32", "rd": "w64", "rs": "e16"}
_OPERAND = re.compile(r"\$(?:(\d+)|\{(\d+)(?::\w+)?\}|(\$))")


def run(chip: LaneChip, facts: Chip, code: Code, assembly: InlineAssembly) -> Sequence[Element]:
    """The registers of the results, after the text ran. Raises CompileError (TFW0619)."""
    forms = [_form(letter, bits) for letter, bits in assembly.results]
    results = [code.new_register(form) for form in forms]
    operands: list[Slice] = []
    for operand in assembly.operands:
        tied = operand.constraint if isinstance(operand.constraint, int) else None
        forms.append(_form(operand.constraint, operand.bits) if isinstance(operand.constraint, str) else forms[operand.constraint])
        held = _held(chip, code, operand, forms[-1])
        if tied is not None:
            chip.move(code, results[tied], held)
        operands.append(results[tied] if tied is not None else held)
    opcodes(assembly.text, tuple(forms), facts)  # for what it refuses
    code.effect(OPCODE, results, [assembly.text, *operands])
    return [_value(chip, code, register, bits) for register, (_, bits) in zip(results, assembly.results, strict=True)]


def form_of(cls: str) -> str:
    """The form of a register that text may name, by its class."""
    return _CLASSES[cls]


def _form(letter: str, bits: int) -> str:
    form = _FORMS.get(letter)
    if form is None:
        raise CompileError(
            f"PTX has no registers for the constraint '{letter}'", "TFW0619", help=f"the letters are {', '.join(_FORMS)}"
        )
    if bits > _BITS[form]:
        raise CompileError(
            f"a value of {bits} bits does not fit a register of the constraint '{letter}', which has {_BITS[form]}", "TFW0619"
        )
    if bits <= 32 and form == "w64":
        raise CompileError(f"the constraint '{letter}' takes values of 64 bits, not of {bits}", "TFW0619")
    return form


def _held(chip: LaneChip, code: Code, operand: AsmOperand, form: str) -> Slice:
    """A register of a form with the operand in its low bits."""
    element, bits = operand.element, operand.bits
    if isinstance(element, Const):
        register = code.new_register(form)
        chip.move(code, register, element)
        return register
    if form == "w32" and bits == 16:
        element = chip.pack(code, 16, [element])
    elif form == "e16" and bits == 8:
        element = chip.unpack(code, 16, element, 1)[0]
    assert isinstance(element, Slice)
    return element


def _value(chip: LaneChip, code: Code, register: Slice, bits: int) -> Element:
    """A result of so many bits from its register, in the form of its own width."""
    wide = _BITS[form_of(register.reg.cls)]
    if bits == 16 and wide == 32:
        return chip.unpack(code, 16, register, 1)[0]
    return chip.pack(code, 16, [register]) if bits == 8 and wide == 16 else register


def substituted(text: str, names: Sequence[str]) -> str:
    """The text with registers' names in it, `$$` a dollar; raises IndexError for a number beyond them."""
    return _OPERAND.sub(lambda found: "$" if found[3] else names[int(found[1] or found[2])], text)


@cache
def opcodes(text: str, forms: tuple[str, ...], chip: Chip) -> tuple[str, ...]:
    """The opcodes of a text that runs on registers of these forms. Raises CompileError (TFW0619) for what is no PTX of the chip."""
    try:
        body = substituted(text, [f"%tilefw{number}" for number in range(len(forms))])
    except IndexError:
        raise CompileError(
            f"the text of tl.inline_asm_elementwise names a register beyond ${len(forms) - 1}, the last of its constraints",
            "TFW0619",
        ) from None
    declared = "\n".join(f".reg .{_TYPES[form]} %tilefw{number};" for number, form in enumerate(forms))
    head = f".version 9.0\n.target {chip.name}\n.address_size 64\n.visible .entry text()"
    whole = f"{head}\n{{\n{declared}\n{{\n{body}\n}}\nret;\n}}\n"
    try:
        module = isa.parse(whole, "tl.inline_asm_elementwise")
        isa.program(module, "text", isa.instruction_set(chip))
    except CodeError as error:
        raise CompileError(
            f"the text of tl.inline_asm_elementwise is no PTX that {chip.target} takes: {error.message}", "TFW0619",
            note=error.note, help=error.help or "text for another vendor's machine runs on its targets",
        ) from None
    return tuple(dict.fromkeys(statement.opcode for statement in module.entries["text"].statements[:-1]))
