"""Why no form of a mnemonic fits what was written: the form that comes nearest is chosen, and its first objection told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tilefw_amd.isa.encoding.modifiers import MODIFIERS
from tilefw_amd.isa.model import Form, FormOperand, RegisterTuple
from tilefw_amd.isa.registers import misaligned, name
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text import immediate_syntax
from tilefw_amd.isa.text.matching import UNFIT, candidate, convert, may_fit, modifier_value, optional, words_of
from tilefw_amd.isa.text.parsed_operand import Spanned, Written
from tilefw_amd.isa.text.restrictions import in_range
from tilefw_amd.isa.text.source import OPERANDS, RANGE, Fault
from tilefw_amd.isa.types import MATRIX_FORMATS

_FILES = {"v": "VGPR", "a": "AGPR", "s": "SGPR"}
# The modifiers that say which format an operand of a product has; the forms of its mnemonic differ in them.
_FORMAT_CODES = {"cbsz": "A", "blgp": "B"}
_TUPLES = {1: "", 2: " pair", 3: " triple", 4: " quad"}


class _Objection(NamedTuple):
    """`progress` tells how much of the statement the form could take: the objection of the form with most of it is told."""

    progress: tuple[int, int]
    fault: Fault


def complaint(isa: InstructionSet, mnemonic: str, place: tuple[int, int], spans: Sequence[Spanned]) -> Fault:
    """The fault to raise for a statement that no form fits; `place` is the mnemonic's."""
    forms = isa.forms_by_mnemonic[mnemonic]
    fault = _no_such_number(forms, spans)
    if fault is not None:
        return fault
    written = [form for form in forms if all(_written_number(spans, name) == value for name, value in _numbers(form).items())]
    found = [_objection(form, mnemonic, place, spans) for form in written or forms]
    return max(found, key=lambda objection: objection.progress).fault


def _numbers(form: Form) -> dict[str, int]:
    """The numbers among the modifiers that a form has by being itself."""
    return {name: value for name, value in form.fixed.items() if isinstance(value, int) and name in _FORMAT_CODES}


def _written_number(spans: Sequence[Spanned], word: str) -> int:
    return next((_value(span) for span in spans if span.written.kind == "modifier" and span.written.value[0] == word), 0)


def _value(span: Spanned) -> int:
    found = MODIFIERS[span.written.value[0]].value(span.written.value[1])
    return found if isinstance(found, int) else -1


def _no_such_number(forms: Sequence[Form], spans: Sequence[Spanned]) -> Fault | None:
    """A format's code that no form of the mnemonic has: LLVM assembles the reserved ones."""
    for span in spans:
        word = span.written.value[0] if span.written.kind == "modifier" else ""
        served = {_numbers(form)[word] for form in forms if word in _numbers(form)}
        if served and _value(span) not in served:
            formats = ", ".join(f"{code} {MATRIX_FORMATS[code]}" for code in sorted(served))
            text = f"{span.written.value[1]!r} names no format of {_FORMAT_CODES[word]}"
            return Fault(text, span.start, span.end, code=RANGE, note=f"its values are {formats}")
    return None


def _objection(form: Form, mnemonic: str, place: tuple[int, int], spans: Sequence[Spanned]) -> _Objection:
    operands = [s for s in spans if s.written.kind != "modifier"]
    modifiers = [s for s in spans if s.written.kind == "modifier"]
    taken = 0
    for span, operand in zip(operands, form.operands, strict=False):
        fault = _operand_fault(span, operand, form)
        if fault is not None:
            return _Objection((taken, _nearness(span.written, operand)), fault)
        taken += 1
    if len(operands) != len(form.operands) and not optional(form, len(operands)):
        return _Objection((taken, 0), _count_fault(form, mnemonic, place, operands))
    for span in modifiers:
        fault = _modifier_fault(span, form)
        if fault is not None:
            return _Objection((taken + 1, 1), fault)
    return _Objection((taken + 2, 0), _whole_fault(form, place, spans, operands))


def _nearness(written: Written, operand: FormOperand) -> int:
    """Of forms that object to the same operand, the one that at least takes its kind speaks."""
    if written.kind == "register":
        return 2 if written.value.file in operand.kinds else 0
    if written.kind in ("integer", "float"):
        return 2 if operand.immediate or "t" in operand.kinds else 1 if "l" in operand.kinds else 0
    return 1 if written.kind == "call" and operand.immediate else 0


def _operand_fault(span: Spanned, operand: FormOperand, form: Form) -> Fault | None:
    written, start, end = span
    if may_fit(written.key, operand, form) and convert(written, operand) is not UNFIT:
        return None
    if written.kind == "register" and may_fit(written.key, operand, form) and misaligned(written.value):
        note = f"{form.mnemonic} takes tuples of vector and accumulation registers that begin at an even one"
        return Fault(misaligned(written.value), start, end, code=OPERANDS, note=note)
    if operand.immediate and written.kind in ("integer", "call"):
        message, (first, last) = immediate_syntax.objection(operand, written)
        inner = (first, last) if last else (start, end)
        return Fault(message, *inner, code=RANGE, help=immediate_syntax.help_for(operand.immediate))
    note = f"{form.mnemonic} takes {', '.join(_operand_text(o) for o in form.operands)}"
    if "t" in operand.kinds and written.kind == "integer":
        return Fault(f"{written.value} is not a signed 16-bit distance in words", start, end, code=RANGE, note=note)
    return Fault(f"operand {operand.name}: expected {wanted(operand)}, found {_found(written)}", start, end,
                 code=OPERANDS, note=note, help=_help(written, operand))


def wanted(operand: FormOperand) -> str:
    """The operand in words: "a VGPR pair, an SGPR pair or an inline constant"."""
    words = [_file_words(file, operand.registers) for file in "vas" if file in operand.kinds]
    if operand.codes is not None and len(operand.codes.encode) == 1:
        (only,) = operand.codes.encode
        words = [name(only)] if isinstance(only, RegisterTuple) else words
    words += [text for kind, text in _OTHERS if kind in operand.kinds]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words or ["nothing"])


_OTHERS = (("c", "an inline constant"), ("l", "a literal of 32 bits"), ("o", "off"), ("i", "a number"), ("t", "a label"))


def _file_words(file: str, registers: int) -> str:
    article = "an" if file in "as" else "a"
    return f"{article} {_FILES[file]}{_TUPLES.get(registers, f' tuple of {registers}')}"


def _operand_text(operand: FormOperand) -> str:
    return f"{operand.name}: {wanted(operand)}" if operand.kinds else operand.name


def _found(written: Written) -> str:
    sign = " with a sign or absolute value" if written.sign else ""
    if written.kind == "register":
        register: RegisterTuple = written.value
        return f"{name(register)}, {_file_words(register.file, register.count)}{sign}"
    if written.kind in ("integer", "float"):
        return f"the number {written.value}{sign}"
    return {"off": "off", "symbol": "a symbol", "call": "a call"}[written.kind]


def _help(written: Written, operand: FormOperand) -> str | None:
    if written.kind in ("integer", "float") and "c" in operand.kinds:
        if "l" not in operand.kinds:
            return "this encoding has no room for a literal: move the number to a register first"
        return "inline constants are -16 to 64, 0.5, 1.0, 2.0, 4.0, their negatives, and 1/(2*pi); a literal has 32 bits"
    if written.kind == "register" and written.value.file in operand.kinds and written.value.count != operand.registers:
        return f"it is {operand.registers * 32} bits wide: {_example(written.value, operand.registers)}"
    if written.kind == "register" and written.value.file == "s" and "v" in operand.kinds and "s" not in operand.kinds:
        return "move it to a VGPR first: v_mov_b32"
    return None


def _example(register: RegisterTuple, count: int) -> str:
    step = min(4, count) if register.file == "s" else 2
    first = register.index // step * step if count > 1 else register.index
    return f"write {name(RegisterTuple(register.file, min(first, 96), count))}, say"


def _count_fault(form: Form, mnemonic: str, place: tuple[int, int], operands: Sequence[Spanned]) -> Fault:
    names = ", ".join(_operand_text(o) for o in form.operands) or "no operands"
    if len(operands) > len(form.operands):
        extra = operands[len(form.operands)]
        note = f"{form.mnemonic} takes {names}"
        return Fault(f"{mnemonic} has no operand here", extra.start, extra.end, code=OPERANDS, note=note)
    return Fault(
        f"{mnemonic} takes {len(form.operands)} operands, here {'is' if len(operands) == 1 else 'are'} {len(operands)}",
        *place, code=OPERANDS, note=f"{form.mnemonic} takes {names}",
    )


def _modifier_fault(span: Spanned, form: Form) -> Fault | None:
    (word, text), (start, end) = span.written.value, span[1:]
    modifier = words_of(form).get(word)
    if modifier is None and form.fixed.get(word):
        return None
    if modifier is None:
        known = ", ".join(dict.fromkeys([*form.fixed, *words_of(form)])) or "none"
        return Fault(f"{form.mnemonic} has no modifier {word!r}", start, end, code=OPERANDS, note=f"its modifiers are: {known}")
    if modifier_value(span.written, modifier) is not None:
        return None
    return Fault(f"{text!r} is not a value of this modifier", start, end, code=RANGE, note=immediate_syntax.values(modifier))


def _whole_fault(form: Form, place: tuple[int, int], spans: Sequence[Spanned], operands: Sequence[Spanned]) -> Fault:
    """Every part fits by itself: a modifier is missing, twice there or amid the operands, or a rule between operands is broken."""
    end = spans[-1].end if spans else place[1]
    for reason, code in _rules(form, spans):
        first = operands[0].start if operands else place[0]
        return Fault(reason, first, operands[-1].end if operands else end, code=code)
    words = [s.written.value[0] for s in spans if s.written.kind == "modifier"]
    missing = [word for word, value in form.fixed.items() if value and word not in words]
    if missing:
        return Fault(f"{form.mnemonic} of these operands needs the modifier {missing[0]!r}", *place, code=OPERANDS)
    note = f"their order is: {', '.join(form.order)}"
    return Fault("modifiers follow all operands, in their order, each once", place[0], end, code=OPERANDS, note=note)


def _rules(form: Form, spans: Sequence[Spanned]) -> Iterator[tuple[str, str]]:
    fitting = candidate(form, tuple(s.written.key for s in spans))
    inst = fitting.unrestricted([s.written for s in spans]) if fitting else None
    if fitting is None or inst is None:
        return
    for restriction in fitting.restrictions:
        reason = restriction(inst)
        if reason:
            yield reason, RANGE if restriction is in_range else OPERANDS
