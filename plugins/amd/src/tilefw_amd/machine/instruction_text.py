"""The text of finished instructions, most of them by what is known of others that are written alike.

`machine_inst.instruction` finds the encoding of any instruction, with its values, and the printer writes that. Few instructions
need it: of those written alike the forms are known, and of each operand of a form what it is, and its text, after the first time.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tilefw.api.machine import Inst, Operand
from tilefw_amd.isa.model import FormOperand, MCInst, Modifier
from tilefw_amd.isa.model import Operand as MCOperand
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text import parser, printer
from tilefw_amd.isa.text.matching import UNFIT, FormCandidate, convert
from tilefw_amd.isa.text.parsed_operand import Written
from tilefw_amd.isa.text.printer import OperandWriter, printer_of
from tilefw_amd.machine import machine_inst

_KEPT = 4096  # texts of one operand, and of one form's modifiers


class InstructionText:
    """Writes the instructions of one function, but branches."""

    __slots__ = ("_isa", "_items", "_lone", "_shapes")

    def __init__(self, isa: InstructionSet) -> None:
        self._isa = isa
        self._items: dict[Operand, tuple[Written, int] | None] = {}  # what an operand says, None where its neighbours matter
        self._lone: dict[tuple[str, tuple[Operand, ...]], str] = {}  # of those that write no register: waits
        self._shapes = isa.own(_StatementForms)

    def of(self, inst: Inst) -> str:
        """The instruction in one line. Raises InternalError where no encoding takes it."""
        if inst.predicate is not None:  # which no encoding has
            return printer.text(machine_inst.instruction(self._isa, inst))
        text = self._by_forms(inst)
        if text is not None:
            return text
        key = (inst.opcode, inst.uses)
        if not inst.defs and key in self._lone:
            return self._lone[key]
        text = printer.text(machine_inst.instruction(self._isa, inst))
        if not inst.defs:
            self._lone[key] = text
        return text

    def _by_forms(self, inst: Inst) -> str | None:
        uses = machine_inst.written_uses(self._isa, inst) if inst.tied else inst.uses
        items, numbers = [], []
        known = self._items
        for operand in (*inst.defs, *uses):
            found = known[operand] if operand in known else self._item(operand)
            if found is None:
                return None
            items.append(found[0])
            numbers.append(found[1])
        long, shapes = self._shapes.of(inst.opcode, tuple(numbers), items)
        if long and any(not machine_inst.is_inline(items[place].value) for place in long):
            return None
        for shape in shapes:
            text = shape.text(items)
            if text is not None:
                return text
        return None

    def _item(self, operand: Operand) -> tuple[Written, int] | None:
        written = machine_inst.lone_operand(operand)
        found = None if written is None else (written, self._shapes.number(written.key))
        self._items[operand] = found
        return found


class _StatementForms:
    """The forms of statements that are written alike, by the mnemonic and the numbers of what each operand is."""

    def __init__(self, isa: InstructionSet) -> None:
        self._candidates = isa.own(parser.FormCandidates)
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[tuple[str, tuple[int, ...]], _Found] = {}

    def number(self, key: Hashable) -> int:
        """A number for a key of `Written`: a smaller thing to look up."""
        return self._numbers.setdefault(key, len(self._numbers))

    def of(self, opcode: str, numbers: tuple[int, ...], items: Sequence[Written]) -> _Found:
        """The places of integers of which a literal may hold half (`machine_inst._exact`), and the forms that may fit such
        statements, in the order of preference; no forms where operands alone do not tell."""
        try:
            return self._known[opcode, numbers]
        except KeyError:
            forms = self._candidates.of(opcode, tuple([item.key for item in items]))
            told = not any(form.signed or len(form.operands) != len(form.form.operands) for form in forms)
            long = {place for form in forms for place in _long(form, items)}
            found = self._known[opcode, numbers] = tuple(long), tuple(map(_StatementForm, forms)) if told else ()
            return found


_Found = tuple[tuple[int, ...], tuple["_StatementForm", ...]]


def _long(form: FormCandidate, items: Sequence[Written]) -> list[int]:
    pairs = enumerate(zip(items, form.operands, strict=False))
    return [i for i, (item, of) in pairs if item.kind == "integer" and "l" in of.kinds and machine_inst.width(of) == 64]


class _StatementForm:
    """One form, with the texts of its operands and of its modifiers so far."""

    __slots__ = ("_form", "_mnemonic", "_operands", "_printer", "_tails")

    def __init__(self, form: FormCandidate) -> None:
        self._form = form
        self._printer = printer_of(form.form)
        self._mnemonic = form.form.mnemonic
        self._operands = [_FormOperandTexts(write, operand) for write, operand in self._printer.forms]
        self._tails: dict[tuple[Written, ...], tuple[str, dict[str, Modifier]] | None] = {(): (self._printer.plain, {})}

    def text(self, items: list[Written]) -> str | None:
        """What these are in one line; None where they do not fit this form."""
        operands = [texts[written] for texts, written in zip(self._operands, items, strict=False)]
        modifiers = tuple(items[len(operands) :])
        tail = self._tails[modifiers] if modifiers in self._tails else self._tail(modifiers, items)
        if tail is None or None in operands or (self._form.restrictions and self._is_restricted(operands, tail[1])):
            return None
        listed = ", ".join([operand[0] for operand in operands if operand[0]])  # type: ignore[index]
        return f"{self._mnemonic} {listed}{tail[0]}" if listed else f"{self._mnemonic}{tail[0]}"

    def _is_restricted(self, operands: Sequence[_FormOperandText | None], modifiers: dict[str, Modifier]) -> bool:
        form = self._form.form
        inst = MCInst(form, tuple([operand[1] for operand in operands]), modifiers, form.size)  # type: ignore[index]
        return any([restriction(inst) for restriction in self._form.restrictions])

    def _tail(self, modifiers: tuple[Written, ...], items: Sequence[Written]) -> tuple[str, dict[str, Modifier]] | None:
        if len(self._tails) >= _KEPT:
            self._tails.clear()
        values = self._form.values_of_modifiers(items)
        found = self._tails[modifiers] = None if values is None else (self._printer.tail(values), values)
        return found


_FormOperandText = tuple[str, MCOperand]


class _FormOperandTexts(dict[Written, "_FormOperandText | None"]):
    """The texts of one operand of a form, and the operand, by what was written; None for what does not fit."""

    def __init__(self, write: OperandWriter, operand: FormOperand) -> None:
        super().__init__()
        self._write, self._operand = write, operand

    def __missing__(self, written: Written) -> _FormOperandText | None:
        if len(self) >= _KEPT:
            self.clear()
        found = convert(written, self._operand)
        text = None if found is UNFIT else (self._write(found), found)  # type: ignore[arg-type]
        self[written] = text  # type: ignore[assignment]
        return text  # type: ignore[return-value]
