"""Text of one instruction to `MCInst`: read what is written, choose the form that it fits, put operands and modifiers there.

Without a suffix the first form that fits is taken, in LLVM's order: 32 bits, VOP3, SDWA, DPP. Forms are narrowed down once for
all statements that are written alike (`FormCandidates`: kinds and widths of registers, which modifiers); values decide the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence

from tilefw.api.source_text import SourceText
from tilefw_amd.isa.model import BranchTarget, Form, MCInst
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text.diagnostic import complaint
from tilefw_amd.isa.text.expression import Expression
from tilefw_amd.isa.text.matching import FormCandidate, candidate
from tilefw_amd.isa.text.parsed_operand import OperandParser, Spanned, Written, simple, together
from tilefw_amd.isa.text.source import OPERANDS, UNKNOWN, Fault

Resolve = Callable[[str], int]
# One item without spaces outside of its brackets, and whether a comma stands behind it; else one odd character.
_ITEM = re.compile(r"((?:[^\s,\[\](){}|\"]|\[[^\[\]]*\]|\([^()]*\)|\|[^|]*\|)+|\S)\s*(,?)")


def parse(isa: InstructionSet, text: str, filename: str = "<text>") -> MCInst:
    """The instruction that `text` is; comments and labels belong to files, not here. Raises CodeError."""
    try:
        inst, unknown = statement(isa, text)
        if unknown is not None:
            raise Fault("a number is needed here; symbols have values in files only", 0, len(text))
        return inst
    except Fault as fault:
        raise SourceText(text, filename).error(fault) from None


def _no_symbols(name: str) -> int:
    raise LookupError(name)


def statement(isa: InstructionSet, text: str, resolve: Resolve = _no_symbols) -> tuple[MCInst, Expression | None]:
    """The instruction, and the value of its literal where symbols have to be known for it. Raises Fault."""
    mnemonic, _, rest = text.partition(" ")
    items = _fast_items(rest)
    inst = None if items is None else chosen(isa, mnemonic, items)
    return _slow(isa, text, resolve) if inst is None else (inst, None)


def chosen(isa: InstructionSet, mnemonic: str, items: Sequence[Written]) -> MCInst | None:
    """The instruction of the first form that takes what is written; None where none does."""
    for form in isa.own(FormCandidates).of(mnemonic, tuple([w.key for w in items])):
        inst = form.fill(items)
        if inst is not None:
            return inst
    return None


def _fast_items(rest: str) -> list[Written] | None:
    """What is written, from texts read before; None where only the reader can tell."""
    items: list[Written] = []
    comma = ","
    for item, behind in _ITEM.findall(rest):
        written = simple(item)
        if written is None:
            return None
        if not comma and written.kind != "modifier":
            if written.kind != "call" or items[-1].kind != "call":
                return None
            written = together((items.pop(), written))
        items.append(written)
        comma = behind
    return None if comma and items else items


def _slow(isa: InstructionSet, text: str, resolve: Resolve) -> tuple[MCInst, Expression | None]:
    """As `statement`, through the reader, which knows symbols, odd spacing and the places of mistakes."""
    start = len(text) - len(text.lstrip())
    end = next((i for i in range(start, len(text)) if text[i].isspace()), len(text))
    mnemonic = text[start:end].lower()
    if mnemonic not in isa.forms_by_mnemonic:
        raise _unknown(isa, mnemonic, start, end)
    spans = OperandParser(text, end, resolve).all()
    items = [s.written for s in spans]
    inst = chosen(isa, mnemonic, items)
    if inst is not None:
        return inst, _deferred(inst, spans)
    raise complaint(isa, mnemonic, (start, end), spans)


def _deferred(inst: MCInst, spans: Sequence[Spanned]) -> Expression | None:
    """The expression of a literal that symbols decide; a label of a branch is not such a thing. Raises Fault for two literals."""
    pairs = zip(spans, inst.operands, strict=False)
    found = [span for span, operand in pairs if span.written.kind == "symbol" and not isinstance(operand, BranchTarget)]
    if len(found) > 1:
        raise Fault("an instruction has room for one literal", found[1].start, found[1].end, code=OPERANDS)
    return found[0].written.value if found else None


def _unknown(isa: InstructionSet, mnemonic: str, start: int, end: int) -> Fault:
    nearest = isa.nearest(mnemonic)
    return Fault(
        f"unknown instruction {mnemonic!r}", start, end, code=UNKNOWN,
        note=f"mnemonics are those of LLVM's assembler for {isa.chip.name}", help=f"did you mean {nearest}?" if nearest else None,
    )


class FormCandidates:
    """The forms that may fit statements, of one instruction set: narrowed down once for all statements that are written alike."""

    def __init__(self, isa: InstructionSet) -> None:
        self._isa = isa
        self._known: dict[tuple[str, tuple[Hashable, ...]], tuple[FormCandidate, ...]] = {}

    def of(self, mnemonic: str, keys: tuple[Hashable, ...]) -> tuple[FormCandidate, ...]:
        """The forms that may fit statements of those keys, in the order of preference."""
        found = self._known.get((mnemonic, keys))
        if found is None:
            forms = sorted(self._isa.forms_by_mnemonic.get(mnemonic, ()), key=_preference)
            made = (candidate(form, keys) for form in forms)
            found = self._known[mnemonic, keys] = tuple(c for c in made if c is not None)
        return found


def _preference(form: Form) -> int:
    """LLVM's order of variants (AMDGPUAsmParser.cpp, getAllVariants): the plain encoding, VOP3, SDWA, DPP."""
    name = form.format.name
    return 3 if name.endswith("_dpp") else 2 if name.endswith("_sdwa") else 1 if name.startswith("vop3") else 0
