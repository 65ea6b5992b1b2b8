"""Instructions to text, character for character as LLVM 22 prints them (`AMDGPUInstPrinter.cpp`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from tilefw_amd.isa import constants
from tilefw_amd.isa.encoding.modifiers import MODIFIERS
from tilefw_amd.isa.model import (
    BranchTarget,
    Form,
    FormModifier,
    FormOperand,
    InlineConstant,
    Literal32,
    MCInst,
    Modifier,
    Operand,
    RegisterTuple,
)
from tilefw_amd.isa.registers import name
from tilefw_amd.isa.text.immediates import IMMEDIATES
from tilefw_amd.isa.types import Type

OperandWriter = Callable[[Operand], str]


def text(inst: MCInst) -> str:
    """The instruction in one line, without indentation; a branch's target is its label or its distance in words."""
    return printer_of(inst.form).write(inst)


class FormPrinter:
    """One form, ready to be written."""

    __slots__ = ("always", "forms", "mnemonic", "order", "plain", "signs")

    def __init__(self, form: Form) -> None:
        self.mnemonic = form.mnemonic
        self.forms = tuple((_operand_writer(o), o) for o in form.operands)
        self.order = tuple(_suffix(form, key) for key in form.order)
        self.signs = tuple(m.name for m in form.modifiers if m.spelling.kind == "inline")
        self.plain = "".join(write(None) for _, write in self.order)

    def write(self, inst: MCInst) -> str:
        modifiers = inst.modifiers
        if modifiers:
            operands = self.signed(inst) if self.signs else self.unsigned(inst)
            tail = self.tail(modifiers)
        else:
            operands, tail = self.unsigned(inst), self.plain
        listed = ", ".join([o for o in operands if o])
        return f"{self.mnemonic} {listed}{tail}" if listed else f"{self.mnemonic}{tail}"

    def tail(self, modifiers: Mapping[str, Modifier]) -> str:
        """What stands behind the operands."""
        return "".join([write(modifiers.get(key)) for key, write in self.order])

    def unsigned(self, inst: MCInst) -> list[str]:
        return [write(operand) for (write, _), operand in zip(self.forms, inst.operands, strict=True)]

    def signed(self, inst: MCInst) -> list[str]:
        """Operands with `neg`, `abs` and `sext` around them."""
        given = {key: inst.modifiers[key] for key in self.signs if key in inst.modifiers}
        found = self.unsigned(inst)
        for index, (operand, (_, of)) in enumerate(zip(inst.operands, self.forms, strict=True)):
            if of.source >= 0 and given:
                set_ = {key for key, bits in given.items() if isinstance(bits, tuple) and bits[of.source]}
                found[index] = _with_signs(found[index], set_, isinstance(operand, InlineConstant | Literal32))
        return found


def _with_signs(operand: str, signs: set[str], constant: bool) -> str:
    if "sext" in signs:
        operand = f"sext({operand})"
    if "abs" in signs:
        operand = f"|{operand}|"
    if "neg" in signs:
        # -1 is a constant of its own, other than 1 with its sign flipped.
        return f"neg({operand})" if constant and "abs" not in signs else f"-{operand}"
    return operand


@functools.cache
def printer_of(form: Form) -> FormPrinter:
    """The form's printer, made once."""
    return FormPrinter(form)


def _operand_writer(of: FormOperand) -> OperandWriter:
    if "t" in of.kinds:
        return _target
    if of.immediate == "optional":
        return lambda value: str(value) if value else ""
    if of.immediate and of.kinds != "l":
        return IMMEDIATES[of.immediate]  # type: ignore[return-value]
    if of.kinds == "l":
        return _number if of.immediate == "literal" else _bare_literal
    kind = of.constants or of.type
    return functools.lru_cache(maxsize=1024)(lambda operand: _text(operand, kind))


def _text(operand: Operand, kind: Type | None) -> str:
    if isinstance(operand, RegisterTuple):
        return name(operand)
    if isinstance(operand, InlineConstant):
        return constants.text(operand.code, kind)
    if isinstance(operand, Literal32):
        return constants.literal_text(operand.bits, kind)
    return "off" if operand is None else str(operand)


def _bare_literal(operand: Operand) -> str:
    """Where nothing but a literal can stand, it needs no mark."""
    assert isinstance(operand, Literal32)
    return f"{operand.bits:#x}"


def _number(operand: Operand) -> str:
    assert isinstance(operand, Literal32)
    return constants.number_text(operand.bits)


def _target(operand: Operand) -> str:
    assert isinstance(operand, BranchTarget)
    return operand.label or str(operand.offset & 0xFFFF)


def _suffix(form: Form, key: str) -> tuple[str, Callable[[Modifier | None], str]]:
    """How the modifier `key` is written behind the operands; the function gets its value, None for the default."""
    if key in form.fixed:
        fixed = f" {MODIFIERS[key].text(form.fixed[key])}" if form.fixed[key] else ""
        return key, lambda value: fixed
    modifier = form.modifier.get(key)
    if modifier is None or modifier.spelling.kind == "inline":
        return key, lambda value: ""
    default = f" {modifier.spelling.text(modifier.default)}" if modifier.always else ""
    return key, lambda value: default if value is None else _written(modifier, value)


@functools.lru_cache(maxsize=65536)
def _written(modifier: FormModifier, value: Modifier) -> str:
    return f" {modifier.spelling.text(value)}"
