"""Opcodes that a plugin's own code wrote, held against its instruction table: a misspelled one is told with the plugin's line.

Selection checks what rules emit as they emit it. What spill models, waits and a plugin's passes write comes from functions without
a table, and is checked by the pass of core that called them, or by the next one that has a table.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from tilefw.api.errors import Place, PluginError
from tilefw.machine.inst import Inst
from tilefw.machine.table import InstructionTable


def check_opcodes(insts: Iterable[Inst], table: InstructionTable, writer: Any) -> None:
    """Raises PluginError (TFW0512) at the source of `writer`, the function or class that made the instructions, for an opcode that
    the table does not have."""
    seen: set[str] = set()
    for inst in insts:
        if inst.opcode not in seen:
            seen.add(inst.opcode)
            try:
                table.traits(inst.opcode)
            except KeyError as missing:
                raise unknown_opcode(table.name, inst, place_of_source(writer), missing) from None


def unknown_opcode(table: str, inst: Inst, place: Place | None, missing: KeyError) -> PluginError:
    """The error for an opcode that a chip's table does not have, as the table said by `missing`; `place` is the plugin's."""
    part = missing.args[0] if missing.args else inst.opcode
    needed = "" if part == inst.opcode else f", which '{inst.opcode}' is made of"
    return PluginError(
        f"the instruction table of {table} has no '{part}'{needed}", code="TFW0512", place=place,
        note=f"for the kernel's line {inst.place}" if inst.place else None,
        help="correct the opcode, or add the instruction to the table",
    )


def place_of_source(of: Any) -> Place | None:
    """The line where a class or a function begins; None where there is no source of it."""
    try:
        return Place(inspect.getfile(of), inspect.getsourcelines(of)[1])
    except (OSError, TypeError):
        return None
