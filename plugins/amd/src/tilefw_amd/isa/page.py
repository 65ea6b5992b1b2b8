"""The page of the instruction set, as Markdown, from the table alone: every row with its forms, unit, latency and meaning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from tilefw_amd.isa.encoding.modifiers import MODIFIERS
from tilefw_amd.isa.model import Form
from tilefw_amd.isa.row import Row
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text.immediates import IMMEDIATES
from tilefw_amd.isa.units import UNITS

_KINDS = {"v": "v", "a": "a", "s": "s", "c": "constant", "l": "literal", "o": "off", "t": "label"}


def page(isa: InstructionSet) -> str:
    """The whole page."""
    by_row: dict[str, list[Form]] = {}
    for form in isa.forms:
        by_row.setdefault(form.row.name, []).append(form)
    rows = sorted(isa.rows.values(), key=lambda row: (row.section, row.name))
    lines = [
        f"# Instructions of {isa.chip.name} ({isa.chip.product})",
        "",
        f"{len(rows)} instructions, {len(isa.forms)} forms. Text is LLVM's; sections are those of the CDNA3 ISA document. "
        "Operands:",
        "v vector, a accumulation, s scalar registers with their number; latencies are cycles to a dependent result.",
        "",
        *_units(isa),
    ]
    for section, several in groupby(rows, key=lambda row: row.section):
        lines += ["", f"## {section}", "", "| instruction | forms | unit | latency | meaning |", "|---|---|---|---|---|"]
        lines += [_row(isa, row, by_row[row.name]) for row in several]
    return "\n".join(lines) + "\n"


def _units(isa: InstructionSet) -> Iterator[str]:
    yield "| unit | latency | what |"
    yield "|---|---|---|"
    for unit, doc in UNITS.items():
        yield f"| {unit} | {isa.chip.rates.latency[unit]} | {doc} |"


def _row(isa: InstructionSet, row: Row, its: Iterable[Form]) -> str:
    syntax = "<br>".join(dict.fromkeys(f"`{_syntax(form)}`" for form in its))
    meaning = " ".join(row.doc.split()).replace("|", "\\|")
    return f"| {row.name} | {syntax} | {row.unit} | {isa.latency(row)} | {meaning} |"


def _syntax(form: Form) -> str:
    """One form: `v_add_f32_e64 v, v s constant, v s constant [clamp] [omod]`."""
    operands = ", ".join(_operand(form, index) for index in range(len(form.operands)))
    fixed = "".join(f" {MODIFIERS[name].text(value)}" for name, value in form.fixed.items() if value)
    modifiers = "".join(f" [{name}]" for name in form.modifier)
    return f"{form.mnemonic} {operands}{fixed}{modifiers}".strip()


def _operand(form: Form, index: int) -> str:
    operand = form.operands[index]
    if operand.immediate in IMMEDIATES and "i" in operand.kinds:
        return operand.immediate
    if operand.codes is not None and len(operand.codes.encode) == 1 and not operand.pieces:
        return "vcc" if "s" in operand.kinds else "off"
    width = f"[{operand.registers}]" if operand.registers > 1 else ""
    return " or ".join(_KINDS[kind] + (width if kind in "vas" else "") for kind in operand.kinds)
