"""The page of the machine, docs/sdm-1.md: its prose is `data/page.md`, the rest the machine file's, the table's and the word's."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

from tilefw_spatial.container import file, word
from tilefw_spatial.isa import OPS, ROWS, TYPES, InstructionRow, functions
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.text import __doc__ as _text
from tilefw_spatial.text.operands import __doc__ as _operands
from tilefw_spatial.text.statement import syntax

_UNITS = ("ICU", "MEM", "VXM", "MXM", "SXM", "C2C")


def page() -> str:
    """The whole page."""
    machine = load()
    prose = (files("tilefw_spatial") / "data" / "page.md").read_text(encoding="utf-8")
    tables = {unit: "\n".join(_row(machine, row) for row in ROWS.values() if row.unit == unit) for unit in _UNITS}
    return prose.format(
        **tables, positions=_positions(machine), lanes=machine.lanes, streams=machine.streams, superlanes=machine.superlanes,
        skew=machine.skew, quantities="\n".join(_quantities(machine)), capacity=f"{machine.capacity:,}", hash=machine.hash,
        layout="\n".join(_layout()), types=", ".join(f"{t.code} {t.name}" for t in TYPES.values()), rows=len(ROWS), ops=len(OPS),
        delay_step=machine.delay_step, text=_example(_text or ""), operands=(_operands or "").partition("\n\n")[2],
        container=(file.__doc__ or "").strip(), functions=(functions.__doc__ or "").partition("\n\n")[2].strip(),
        ex2=", ".join(value.hex() for value in functions.EX2), lg2=", ".join(value.hex() for value in functions.LG2),
    )


def _positions(machine: Machine) -> str:
    """The units with their positions, as a table of two rows."""
    last = machine.slices - 1
    ends = (("MXM.W",), ("SXM.W",), (f"MEM.W{last}", "MEM.W0"), ("VXM",), ("MEM.E0", f"MEM.E{last}"), ("SXM.E",), ("MXM.E",))
    names = " | ".join(" to ".join(units) for units in ends)
    positions = " | ".join(" to ".join(str(machine.position(unit)) for unit in units) for units in ends)
    return f"| {names} |\n|{'---|' * len(ends)}\n| {positions} |"


def _quantities(machine: Machine) -> Iterator[str]:
    for name, quantity in machine.quantities.items():
        yield f"| `{name}` | {quantity.value} | {quantity.origin} | {_cell(quantity.source)} |"


def _layout() -> Iterator[str]:
    for bits in word.LAYOUT:
        yield f"| {bits.low} to {bits.low + bits.width - 1} | {'n' if bits.name == 'burst' else bits.name} |"


def _row(machine: Machine, row: InstructionRow) -> str:
    variants = "" if row.variants == ("",) else f" (.{', .'.join(v for v in row.variants if v)})"
    form = f"`{f'{row.name} {syntax(row)}'.strip()}`{variants}"
    code = f"{row.code:#04x}" + (f" to {row.code + len(row.variants) - 1:#04x}" if len(row.variants) > 1 else "")
    delay = "" if not row.latency else str(machine.delays[row.latency])
    delay += f", int8 {machine.delays['multiply_int8']}" if row.name == "MAC" else ""
    return f"| {form} | {code} | {_types(row)} | {delay} | {_cell(row.doc)} |"


def _types(row: InstructionRow) -> str:
    if row.types == frozenset(TYPES):
        return "all"
    integers = ", ".join(t.name for t in TYPES.values() if not t.is_float and t.name != "int1")
    return ", ".join(name for name in TYPES if name in row.types).replace(integers, "integers")


def _example(doc: str) -> str:
    """The example below a docstring's first line."""
    return "\n".join(line.removeprefix("    ") for line in doc.partition("\n\n")[2].rstrip().splitlines())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
