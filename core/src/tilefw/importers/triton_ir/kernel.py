"""The kernel of a text: its function in tile IR, with what the text says of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.ir import Attribute, Block, Region

import tilefw.language as tl
from tilefw.api.errors import IRError, KernelError
from tilefw.frontend.builder import Builder
from tilefw.frontend.tensor_descriptors import DescriptorValue
from tilefw.frontend.values import RuntimeValue, lowered
from tilefw.importers.triton_ir.operations import OPERATIONS
from tilefw.importers.triton_ir.operations.control import run_region
from tilefw.importers.triton_ir.reader import Reader
from tilefw.importers.triton_ir.translation import Translation
from tilefw.importers.triton_ir.tree import Argument, TextFunction
from tilefw.importers.triton_ir.types import block_of, is_descriptor, type_of
from tilefw.tile.dialect.base import integer_attr, string_attr
from tilefw.tile.text.module import verify

_ALIGNMENT = "16"  # of the array behind a descriptor, in bytes


def module(text: str, name: str) -> ModuleOp:
    """See `tilefw.importers.triton_ir.parse`."""
    reader = Reader(text, name)
    try:
        read = reader.module()
        kernel = _kernel(reader, list(read.functions.values()))
        block = Block()
        translation = Translation(reader, read, OPERATIONS, Builder(block, debug=True))
        made = ModuleOp([_function(translation, kernel, block)])
    except RecursionError:
        raise IRError("malformed Triton IR: its regions are nested too deeply", "TFW0401", reader.place(0)) from None
    verify(made)
    return made


def _kernel(reader: Reader, functions: Sequence[TextFunction]) -> TextFunction:
    """The public function; the only one where none says that it is."""
    public = [function for function in functions if function.public] or list(functions)
    if len(public) != 1:
        names = ", ".join(function.name for function in public) or "none"
        raise IRError(
            f"malformed Triton IR: a text has one kernel, and this one has {len(public)}", "TFW0401", reader.place(0),
            note=f"public functions: {names}",
        )
    return public[0]


def _function(t: Translation, kernel: TextFunction, block: Block) -> func.FuncOp:
    t.b.location = location = t.location(kernel.location, kernel.start)
    parameters = kernel.blocks[0].arguments
    try:
        values = _values(block, parameters)
        run_region(t, kernel.blocks, values)
    except KernelError as error:
        error.place = error.place or t.text.place(kernel.start)
        raise
    t.b.location = location
    t.b.insert(func.ReturnOp())
    facts = [
        DictionaryAttr({**_facts(t, parameter), **t.b.argument_hints.get(argument, {})})
        for parameter, argument in zip(parameters, block.args, strict=True)
    ]
    signature = FunctionType.from_lists([argument.type for argument in block.args], [])
    made = func.FuncOp(
        kernel.name, signature, Region(block), visibility="public", arg_attrs=ArrayAttr(facts) if facts else None
    )
    made.location = location
    return made


def _values(block: Block, parameters: Sequence[Argument]) -> list[Any]:
    """What the parameters stand for: arguments of the block. A descriptor that the host made is passed as the pointer to its array;
    Triton lists its extents and strides behind it."""
    types = [tl.pointer_type(block_of(p.type)[0]) if is_descriptor(p.type) else type_of(p.type) for p in parameters]
    values = [RuntimeValue(block.insert_arg(lowered(type), len(block.args)), type) for type in types]
    return [
        _descriptor(values[index:], block_of(parameter.type)[1]) if is_descriptor(parameter.type) else values[index]
        for index, parameter in enumerate(parameters)
    ]


def _descriptor(values: Sequence[RuntimeValue], extents: tuple[int, ...]) -> DescriptorValue:
    """A descriptor of blocks of `extents` made of a pointer, as many extents of the array, and as many strides."""
    axes = len(extents)
    base, shape, leading = values[0], tuple(values[1 : 1 + axes]), tuple(values[1 + axes : 2 * axes])
    if [value.dtype for value in (*shape, *leading)] != [tl.int32] * axes + [tl.int64] * (axes - 1):
        raise IRError("malformed Triton IR: the extents and strides of a descriptor do not follow it", "TFW0401")
    return DescriptorValue(base, shape, leading, extents, "zero")


def _facts(t: Translation, parameter: Argument) -> dict[str, Attribute]:
    """What the text says of a parameter: its name, and a power of two that divides it."""
    facts: dict[str, Attribute] = {"tile.name": string_attr(parameter.name[1:])}
    divisible = _ALIGNMENT if is_descriptor(parameter.type) else parameter.attributes.get("tt.divisibility")
    if divisible is not None:
        facts["tile.divisible"] = integer_attr(int(divisible.partition(":")[0]))
    return facts
