"""Instructions made from the table's patterns, and a kernel to put them in, for asking an assembler about them."""

from __future__ import annotations

import re

from tilefw_nvidia.isa.model import Form, Modifiers, OperandItem
from tilefw_nvidia.isa.types import TYPES

HEADER = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .b64 param[4]) {{
{registers}
.shared .align 16 .b8 sm[1024];
.local .align 16 .b8 lo[64];
.param .align 16 .b8 passed[16];
"""
_REGISTER = re.compile(r"%(\w+)_\d")
# A register type for operand types that have none of their own.
_HELD_IN = {"tf32": "b32", "e4m3x2": "b16", "e5m2x2": "b16", "u16x2": "b32", "s16x2": "b32", "bf16": "b16", "bf16x2": "b32"}
# Constants that the named operand must have.
_CONSTANTS = {
    "size": "16", "lut": "150", "n": "1", "f": "0f3F800000", "scale_a": "-1", "scale_b": "1", "trans_a": "0", "trans_b": "1",
    "bytes": "128", "registers": "64", "ord": "0", "value": "0",
}


def kernel(instructions: list[str], version: str = "8.8", target: str = "sm_80") -> str:
    """A module with one instruction a line in one kernel, the first at `first_line()`."""
    used = sorted({name for text in instructions for name in _REGISTER.findall(text)})
    registers = " ".join(f".reg .{name} %{name}_<16>;" for name in used)
    return HEADER.format(version=version, target=target, registers=registers) + "\n".join(instructions) + "\ndone: ret;\n}\n"


def first_line() -> int:
    return kernel([]).split("\n").index("done: ret;")


class _Registers:
    """Fresh registers of each type, so that no instruction names one twice."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}

    def take(self, name: str) -> str:
        number = self.used.get(name, 0) + 1
        self.used[name] = number
        return f"%{name}_{number % 16}" if number < 16 else f"%{name}_{number % 15 + 1}"


def instruction(form: Form, opcode: str, modifiers: Modifiers, with_optional: bool = False) -> str:
    """One instruction of the form with registers of exactly the types that it states."""
    registers = _Registers()
    operands = [
        _operand(item, modifiers, registers, form)
        for item in form.operands
        if item.kind != "carry" and (with_optional or not item.optional)
    ]
    return f"{opcode} {', '.join(operands)};".replace(" ;", ";")


def _operand(item: OperandItem, modifiers: Modifiers, registers: _Registers, form: Form) -> str:
    if item.kind == "address":
        space = modifiers.get("space", "")
        if item.count:
            return f"[{registers.take('b64')}, {{{', '.join(registers.take('b32') for _ in range(int(modifiers['dim'][0])))}}}]"
        if (stated := item.name.rpartition("_")[2]) in ("shared", "global"):
            return "[sm]" if stated == "shared" else f"[{registers.take('b64')}]"
        if space.startswith("shared") and item.name != "src":
            return "[sm]"
        if space == "param::func" or (space == "param" and form.base == "st"):
            return "[passed]"
        return "[param]" if space.startswith("param") else f"[{registers.take('b64')}]"
    if item.kind == "constant" or (item.name in _CONSTANTS and item.name not in ("value", "ord")):
        return _CONSTANTS[item.name]
    if item.kind == "label":
        return "done"
    if item.kind == "sink":
        return "_"
    name = modifiers[item.typed_by] if item.typed_by else item.type
    name = _HELD_IN.get(name, name)
    if item.kind == "vector":
        count = _count(item, modifiers, form)
        if count > 1 or item.count != "vec":
            return "{" + ", ".join(registers.take(name) for _ in range(count)) + "}"
    if item.kind == "pack":
        return "{" + ", ".join(registers.take(f"b{TYPES[name].bits // 2}") for _ in range(2)) + "}"
    if item.kind == "pair" and item.second == "both":
        return f"{registers.take(name)}|{registers.take('pred')}"
    return registers.take(name)


def _count(item: OperandItem, modifiers: Modifiers, form: Form) -> int:
    if item.count in form.counts:
        return form.counts[item.count](modifiers)
    return int(item.count) if item.count.isdigit() else int(modifiers.get(item.count, "x1")[1:])
