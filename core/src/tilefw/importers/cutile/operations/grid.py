"""The place in the grid, tokens of their own, launches that follow one another, assertions, prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tilefw.frontend.builtins.debug import device_assert
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast
from tilefw.importers.cutile.memory_order import AccessToken, joined

if TYPE_CHECKING:
    from tilefw.importers.cutile.bytecode_translation import BytecodeTranslation
    from tilefw.importers.cutile.bytecode_tree import BytecodeOperation

meaning = Meanings()

_AXES = range(3)
_CONVERSION = re.compile(r"%(%)|%[^%a-zA-Z]*(?:hh|h|ll|l)?[a-zA-Z]")


@meaning("get_tile_block_id")
def place(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    return [cast(t.b, t.b.program_id(axis), t.type_of(op.types[axis])) for axis in _AXES]


@meaning("get_num_tile_blocks")
def extent(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    return [cast(t.b, t.b.num_programs(axis), t.type_of(op.types[axis])) for axis in _AXES]


@meaning("make_token")
def start(t: BytecodeTranslation, op: BytecodeOperation) -> AccessToken:
    return AccessToken()


@meaning("join_tokens")
def join(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    return [joined(t.listed(op, "tokens"))]


@meaning("memory_fence_alias_tko")
def fence(t: BytecodeTranslation, op: BytecodeOperation) -> AccessToken:
    """Accesses go by one address space here: nothing is held back."""
    return t.value(op, "token")


@meaning("gdc_wait_tko")
@meaning("gdc_launch_dependents_tko")
def follow(t: BytecodeTranslation, op: BytecodeOperation) -> AccessToken:
    """Launches follow one another: none begins early."""
    return joined(t.listed(op, "token"))


@meaning("assert")
def check(t: BytecodeTranslation, op: BytecodeOperation) -> None:
    device_assert(t.b, t.tile(op, "condition"), op.attributes["message"], None)


@meaning("print_tko")
def write(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    """The text of the format without its conversions, then the values; a line of each element, as the language prints."""
    values = t.listed(op, "arguments")
    prefix = " ".join(_CONVERSION.sub(lambda found: found[1] or "", op.attributes["format"]).split())
    t.b.print(f" {prefix}: " if prefix else "", values, [value.dtype.name for value in values], False)
    return [joined([t.token(op) or AccessToken()]) for _ in op.results]
