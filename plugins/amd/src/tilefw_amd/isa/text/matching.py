"""How what was written becomes an instruction of one form: each operand and modifier by itself, then together.

`FormCandidate` is a form for statements that are written alike; what it finds out of one text is remembered, as texts recur.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from tilefw_amd.isa.encoding.modifiers import MODIFIERS
from tilefw_amd.isa.encoding.shape_modifiers import takes_sext, takes_sign
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
from tilefw_amd.isa.text import immediate_syntax, literals
from tilefw_amd.isa.text.parsed_operand import ABS, LIT, NEG, SEXT, Written
from tilefw_amd.isa.text.restrictions import Restriction, restrictions_of
from tilefw_amd.isa.types import TYPES

INLINE: Final = ((NEG, "neg"), (ABS, "abs"), (SEXT, "sext"))
CACHE: Final = frozenset({"sc0", "nt", "sc1"})
UNFIT: Final = "unfit"
"""What stands for "no such operand": None is one (`off`)."""


@dataclass(frozen=True, eq=False)
class FormCandidate:
    """`signed` are the operands with neg, abs or sext in front, `words` the modifiers that are written, in order."""

    form: Form
    operands: tuple[FormOperand, ...]
    modifiers: tuple[FormModifier | None, ...]
    signed: tuple[int, ...]
    restrictions: tuple[Restriction, ...]

    def fill(self, items: Sequence[Written]) -> MCInst | None:
        """The instruction, or None where a value does not fit."""
        inst = self.unrestricted(items)
        if inst is None:
            return None
        for restriction in self.restrictions:
            if restriction(inst):
                return None
        return inst

    def unrestricted(self, items: Sequence[Written]) -> MCInst | None:
        """`fill` without the rules between operands."""
        operands: list[Operand] = []
        size = self.form.size
        for written, operand in zip(items, self.operands, strict=False):
            found = convert(written, operand)
            if found is UNFIT:
                return None
            if type(found) is Literal32:
                size = self.form.size + 4
            operands.append(found)  # type: ignore[arg-type]
        if len(operands) < len(self.form.operands):  # an immediate that may be left out
            operands.append(0)
        modifiers = self.values_of_modifiers(items)
        return None if modifiers is None else MCInst(self.form, tuple(operands), modifiers, size)

    def values_of_modifiers(self, items: Sequence[Written]) -> dict[str, Modifier] | None:
        """The values of the form's modifiers by name, or None where one does not fit."""
        if not self.modifiers and not self.signed:
            return {}
        found = self._signs(items) if self.signed else {}
        for written, modifier in zip(items[len(self.operands) :], self.modifiers, strict=True):
            if modifier is None:  # one that the form has by being itself
                continue
            value = modifier_value(written, modifier)
            if value is None or modifier.name in found or value != self.form.fixed.get(modifier.name, value):
                return None
            if value != modifier.default:
                found[modifier.name] = value
        return found

    def _signs(self, items: Sequence[Written]) -> dict[str, Modifier]:
        """`neg`, `abs` and `sext` as tuples by source."""
        found: dict[str, Modifier] = {}
        for bit, name in INLINE:
            modifier = self.form.modifier.get(name)
            if modifier is None:
                continue
            values = [0] * modifier.count
            for index in self.signed:
                if items[index].sign & bit:
                    values[self.operands[index].source] = 1
            if any(values):
                found[name] = tuple(values)
        return found


def candidate(form: Form, keys: tuple[Hashable, ...]) -> FormCandidate | None:
    """The form for statements of those keys, or None where it cannot fit them, whatever the values are."""
    count = len(form.operands)
    if len(keys) < count and not optional(form, len(keys)):
        return None
    operands = form.operands[: min(count, len(keys))]
    if any(_is_modifier(key) for key in keys[: len(operands)]):
        if not (count and optional(form, count - 1) and not any(map(_is_modifier, keys[: count - 1]))):
            return None
        operands = operands[: count - 1]
    if not all(may_fit(key, operand, form) for key, operand in zip(keys, operands, strict=False)):
        return None
    modifiers = _modifiers(form, keys[len(operands) :])
    if modifiers is None:
        return None
    signed = tuple(i for i, key in enumerate(keys[: len(operands)]) if isinstance(key, tuple) and _sign(key))
    return FormCandidate(form, operands, modifiers, signed, restrictions_of(form, keys[: len(operands)]))


def optional(form: Form, written: int) -> bool:
    return written == len(form.operands) - 1 and form.operands[-1].immediate in immediate_syntax.OPTIONAL


def _is_modifier(key: Hashable) -> bool:
    return isinstance(key, tuple) and key[0] == "modifier"


def _sign(key: tuple[Hashable, ...]) -> int:
    sign = key[2] if len(key) == 4 else key[1]
    return sign & (NEG | ABS | SEXT) if isinstance(sign, int) else 0


def may_fit(key: Hashable, operand: FormOperand, form: Form) -> bool:
    if key == "off":
        return "o" in operand.kinds
    if key == "symbol":
        return "t" in operand.kinds or "l" in operand.kinds
    assert isinstance(key, tuple)
    if key[0] == "call":
        return immediate_syntax.is_call(operand.immediate, str(key[1]))
    sign = _sign(key)
    if sign and not _sign_fits(sign, operand, form, constant=len(key) == 2):
        return False
    if len(key) == 2:
        return any(kind in operand.kinds for kind in "clit")
    return str(key[0]) in operand.kinds and (key[1] == operand.registers or key[3] == "read only")


def _sign_fits(sign: int, operand: FormOperand, form: Form, *, constant: bool) -> bool:
    """A constant takes the signs of a float operand into its own value where the form has no modifier for them."""
    if all(name in form.modifier for bit, name in INLINE if sign & bit):
        if form.format.name == "vop3p":  # v_fma_mix_f32: of any source
            return operand.source >= 0
        return (takes_sign(operand) or not sign & (NEG | ABS)) and (takes_sext(operand) or not sign & SEXT)
    floating = operand.type is not None and operand.type.kind == "float"
    return constant and not sign & SEXT and floating and "l" in operand.kinds


def _modifiers(form: Form, keys: tuple[Hashable, ...]) -> tuple[FormModifier | None, ...] | None:
    """The form's modifiers for those words; None where it lacks one, or where one that it has by being itself is missing."""
    words = words_of(form)
    found: list[FormModifier | None] = []
    present: set[str] = set()
    for key in keys:
        if not _is_modifier(key):
            return None
        word = key[1]  # type: ignore[index]
        if word in words:
            found.append(words[word])
        elif form.fixed.get(str(word)):
            found.append(None)
        else:
            return None
        present.add(str(word))
    needed = {name for name, value in form.fixed.items() if value}
    return tuple(found) if needed <= present and _in_order(form, [str(key[1]) for key in keys]) else None  # type: ignore[index]


def _in_order(form: Form, words: Sequence[str]) -> bool:
    """LLVM takes modifiers in the order in which it prints them, but those of the cache in any."""
    names = [words_of(form)[word].name if word in words_of(form) else word for word in words]
    places = [form.order.index("sc0" if name in CACHE else name) if name in form.order else -1 for name in names]
    return places == sorted(places)


@functools.cache
def words_of(form: Form) -> dict[str, FormModifier]:
    """What a modifier of the form may begin with; numbers that it has by being itself (`cbsz:4`) are among them."""
    found = {word: m for m in form.modifiers if m.spelling.kind != "inline" for word in m.spelling.words}
    found |= {f"no{word}": m for word, m in found.items() if m.spelling.kind == "flag"}
    numbers = ((name, MODIFIERS[name], value) for name, value in form.fixed.items() if MODIFIERS[name].kind == "number")
    fields = form.format.fields
    return found | {name: FormModifier(name, fields[name].pieces, spelling, value) for name, spelling, value in numbers}


@functools.lru_cache(maxsize=65536)
def modifier_value(written: Written, modifier: FormModifier) -> Modifier | None:
    """The value of the field, or None where the text is not a value of it."""
    word, text = written.value
    if modifier.spelling.kind == "flag" and word != modifier.spelling.word:  # noclamp
        return 0
    if text == "bound_ctrl:0":  # LLVM's older spelling of the same bit (AMDGPUModifierSyntax, "bound_ctrl")
        text = "bound_ctrl:1"
    if text == "fi:0":
        return 0
    if modifier.spelling.kind == "number" and "(" in text:
        return immediate_syntax.swizzle(text.partition(":")[2])
    value = modifier.spelling.value(text)
    if isinstance(value, tuple):
        # LLVM reads as many bits as are written, and takes the others for 0.
        return value + (0,) * (modifier.count - len(value)) if len(value) <= max(modifier.count, 1) else None
    if value is None or modifier.spelling.kind == "choice":
        return value
    width = sum(bits for _, bits in modifier.pieces)
    low, high = (-(1 << (width - 1)), 1 << (width - 1)) if modifier.signed else (0, 1 << width)
    return value if isinstance(value, int) and low <= value < high else None


@functools.lru_cache(maxsize=65536)
def convert(written: Written, operand: FormOperand) -> Operand | str:
    """What was written, as this operand; UNFIT where it cannot be."""
    match written.kind:
        case "register":
            return _register(written.value, operand)
        case "off":
            return None if "o" in operand.kinds else UNFIT
        case "symbol":
            return _symbol(written, operand)
        case "call":
            found = immediate_syntax.call(operand.immediate, written.value)
            return UNFIT if found is None else found
    if "t" in operand.kinds:
        value = written.value
        return BranchTarget(_signed16(value)) if isinstance(value, int) and -0x8000 <= value <= 0xFFFF else UNFIT
    if "i" in operand.kinds:
        return _immediate(written, operand)
    return _constant(written, operand)


def _register(register: RegisterTuple, operand: FormOperand) -> Operand | str:
    if register.file == "s" and register.index >= 128:  # a value that is read has one name, however wide it is read
        register = RegisterTuple("s", register.index, operand.registers)
    if operand.codes is None:
        return UNFIT
    return register if register in operand.codes.encode else UNFIT


def _symbol(written: Written, operand: FormOperand) -> Operand | str:
    if "t" in operand.kinds:
        name = getattr(written.value, "name", "")
        return BranchTarget(0, name) if name and not written.value.variant else UNFIT
    return Literal32(0) if "l" in operand.kinds and operand.registers == 1 else UNFIT


def _signed16(value: int) -> int:
    return (value + 0x8000 & 0xFFFF) - 0x8000


def _immediate(written: Written, operand: FormOperand) -> Operand | str:
    if written.kind != "integer" or written.sign or (operand.immediate == "unsigned" and written.value < 0):
        return UNFIT
    width = immediate_syntax.BITS.get(operand.immediate, sum(width for _, width in operand.pieces))
    found = immediate_syntax.number(written.value, width, operand.signed)
    return UNFIT if found is None else found


def _constant(written: Written, operand: FormOperand) -> Operand | str:
    kind = operand.constants or operand.type or TYPES["b32"]
    literal = "l" in operand.kinds
    if literal and "c" not in operand.kinds:  # the constant of fmamk and the like is always written out
        found: Operand = literals.forced(written.value, kind)
        return UNFIT if found is None else found
    if written.sign & LIT:
        found = literals.forced(written.value, kind) if literal else None
        return UNFIT if found is None else found
    value, sign = written.value, written.sign & (NEG | ABS)
    if sign and literal:  # forms of 32 bits have no field for signs
        value = literals.with_sign(value, kind, negate=bool(sign & NEG), absolute=bool(sign & ABS))
    found = literals.from_integer(value, kind, literal) if isinstance(value, int) else literals.from_float(value, kind, literal)
    if found is None or (isinstance(found, InlineConstant) and operand.codes is not None and found not in operand.codes.encode):
        return UNFIT
    return found

