"""The kernel of a file: its function in tile IR, with what the bytecode says of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.ir import Attribute, Block, Region

from tilefw.frontend.builder import Builder
from tilefw.frontend.values import RuntimeValue, lowered
from tilefw.importers.cutile.array_groups import ArrayGroup, grouped, takes_list
from tilefw.importers.cutile.bytecode_cursor import BytecodeCursor
from tilefw.importers.cutile.bytecode_file import read_file
from tilefw.importers.cutile.bytecode_translation import BytecodeTranslation
from tilefw.importers.cutile.bytecode_tree import BytecodeFile, BytecodeFunction, BytecodeOperation
from tilefw.importers.cutile.operations import OPERATIONS
from tilefw.importers.cutile.operations.control import run_body
from tilefw.importers.cutile.singleton_strides import of_singletons
from tilefw.tile.dialect.base import integer_attr, string_attr
from tilefw.tile.text.module import verify


def module(data: bytes, name: str) -> ModuleOp:
    """See `tilefw.importers.cutile.parse`."""
    file, cursor = read_file(data, name), BytecodeCursor(data, name)
    kernel = _kernel(file, cursor)
    block = Block()
    translation = BytecodeTranslation(file, cursor, OPERATIONS, Builder(block, debug=True), of_singletons(kernel.body))
    try:
        made = ModuleOp([_function(translation, kernel, block)])
        verify(made)
    except RecursionError:
        raise cursor.unsupported("the kernel's branches are nested too deeply to import", kernel.start) from None
    return made


def _kernel(file: BytecodeFile, cursor: BytecodeCursor) -> BytecodeFunction:
    """The only entry."""
    entries = [function for function in file.functions if function.entry]
    if len(entries) != 1:
        names = ", ".join(function.name for function in entries) or "none"
        raise cursor.unsupported(
            f"a file of one kernel is imported, and this one has {len(entries)}", 0, f"kernels: {names}",
            "export each with a file of its own",
        )
    if takes_list(entries[0].name):
        raise cursor.unsupported("a kernel that takes a list of arrays is not imported", entries[0].start)
    return entries[0]


def _function(t: BytecodeTranslation, kernel: BytecodeFunction, block: Block) -> func.FuncOp:
    location = t.b.location = t.location(kernel.location)

    def ending(end: BytecodeOperation, given: list[Any]) -> list[Any]:
        if end.name != "return" or given:
            raise t.malformed(end, f"{end.name} ends the kernel")
        return given

    with t.guarded(f"function {kernel.name}", kernel.start):
        run_body(t, kernel.body, _values(t, kernel, block), ending)
    t.b.location = location
    t.b.insert(func.ReturnOp())
    name, arrays = grouped(kernel.name, kernel.signature.parameters, t.groups)
    facts = _facts(t, block, arrays)
    signature = FunctionType.from_lists([argument.type for argument in block.args], [])
    made = func.FuncOp(name, signature, Region(block), visibility="public", arg_attrs=ArrayAttr(facts) if facts else None)
    made.location = location
    return made


def _values(t: BytecodeTranslation, kernel: BytecodeFunction, block: Block) -> list[RuntimeValue]:
    if kernel.signature.results:
        raise t.cursor.malformed("a kernel gives no results", kernel.start)
    types = [t.type_of(type) for type in kernel.signature.parameters]
    return [RuntimeValue(block.insert_arg(lowered(type), len(block.args)), type) for type in types]


def _facts(t: BytecodeTranslation, block: Block, arrays: Sequence[ArrayGroup]) -> list[DictionaryAttr]:
    """A parameter's name, by its place among the arguments of a launch; what divides it; for extents and strides of an array, what
    the runtime passes."""
    facts: list[dict[str, Attribute]] = []
    by_first, at = {array.first: array for array in arrays}, 0
    while len(facts) < len(block.args):
        name = f"arg{at}"
        facts.append({"tile.name": string_attr(name)})
        if (array := by_first.get(len(facts) - 1)) is not None:
            facts.extend(_measures(name, array))
        at += 1
    for argument, found in zip(block.args, facts, strict=True):
        if (divisor := t.divisors.get(argument)) is not None:
            found["tile.divisible"] = integer_attr(divisor)
    return [DictionaryAttr(found) for found in facts]


def _measures(name: str, array: ArrayGroup) -> list[dict[str, Attribute]]:
    found: list[dict[str, Attribute]] = []
    for place in range(2 * array.rank):
        word, axis = ("extent", place) if place < array.rank else ("stride", place - array.rank)
        fixed = f" is {array.fixed[1 + place]}" if 1 + place in array.fixed else ""
        found.append({
            "tile.name": string_attr(f"{name}_{word}{axis}"), "tile.hidden": string_attr(f"{word} {axis} of {name}{fixed}"),
        })
    return found
