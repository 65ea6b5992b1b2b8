"""The whole of a kernel: its function in tile IR, with its parameters, their facts and its body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.ir import Attribute, Block, Region

from tilefw.api.errors import CompileError, UnsupportedError
from tilefw.frontend.activation import Activation
from tilefw.frontend.builder import Builder, name_value
from tilefw.frontend.parameters import DescriptorParameter, bound_parameters, is_runtime
from tilefw.frontend.source import KernelSource
from tilefw.frontend.specialize import Specialization
from tilefw.frontend.statements import Statements
from tilefw.frontend.tensor_descriptors import made
from tilefw.frontend.values import RuntimeValue, lowered, transform
from tilefw.tile.dialect.base import integer_attr, string_attr


def build(
    kernel: Any, signature: Mapping[str, str], constexprs: Mapping[str, Any], warps: tuple[int, int] | None = None
) -> ModuleOp:
    """See `tilefw.frontend.build_module`."""
    _refuse_parameters(kernel.source)
    structures, values = bound_parameters(kernel, signature, constexprs)
    runtime = {name: value for name, value in values.items() if is_runtime(value)}
    block = Block(arg_types=[lowered(fact.type) for fact in runtime.values()])
    builder = Builder(block, bool(kernel.debug), warps)
    frame = Activation(kernel, builder)
    for argument, (name, fact) in zip(block.args, runtime.items(), strict=True):
        name_value(argument, name.replace(".", "_"))
        values[name] = RuntimeValue(argument, fact.type)
    frame.at(frame.source.tree)
    for name, structure in structures.items():
        frame.scope.locals[name] = as_kernels_see(frame, transform(structure, values.__getitem__))
        frame.scope.lines[name] = frame.source.tree.lineno
    try:
        Statements(frame).body()
    except RecursionError:
        raise CompileError(
            f"the source of `{kernel.__name__}` is nested too deeply",
            "TFW0112",
            frame.place(frame.source.tree),
            help="split long expressions over several statements",
        ) from None
    frame.at(frame.source.tree)
    builder.insert(func.ReturnOp())
    return ModuleOp([_function(kernel.entry_name(signature, constexprs), frame, block, runtime)])


def as_kernels_see(frame: Activation, value: Any) -> Any:
    """An argument as kernels see it: a tensor descriptor is made of its pieces, in tuples too."""
    if not isinstance(value, tuple):
        return value
    if not isinstance(value, DescriptorParameter):
        items = [as_kernels_see(frame, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    base, shape, strides, block, padding, rounds = value
    try:
        return made(frame.b, base, shape, strides, block, padding, rounds=bool(rounds))
    except CompileError as error:
        error.place = error.place or frame.place(frame.source.tree)
        raise


def _function(name: str, frame: Activation, block: Block, runtime: dict[str, Specialization]) -> func.FuncOp:
    facts: list[DictionaryAttr] = []
    for argument, (parameter, fact) in zip(block.args[: len(runtime)], runtime.items(), strict=True):
        entries: dict[str, Attribute] = {"tile.name": string_attr(parameter)}
        if fact.divisible > 1:
            entries["tile.divisible"] = integer_attr(fact.divisible)
        if not fact.type.is_ptr() and fact.type.is_int_unsigned():
            entries["tile.dtype"] = string_attr(fact.type.name)
        entries |= frame.b.argument_hints.get(argument, {})
        facts.append(DictionaryAttr(entries))
    facts += [DictionaryAttr(frame.b.argument_hints[argument]) for argument in frame.b.hidden.values()]
    function = func.FuncOp(
        name,
        FunctionType.from_lists([argument.type for argument in block.args], []),
        Region(block),
        visibility="public",
        arg_attrs=ArrayAttr(facts) if facts else None,
    )
    function.location = frame.location(frame.source.tree)
    return function


def _refuse_parameters(source: KernelSource) -> None:
    arguments = source.tree.args
    if not source.name.isascii():
        message = f"the name of kernel `{source.name}` is not ASCII, as machine code needs"
        raise UnsupportedError(message, "TFW0102", source.place(source.tree))
    if arguments.kwarg is not None:
        message = f"kernels cannot have `**{arguments.kwarg.arg}` parameters"
        raise UnsupportedError(message, "TFW0102", source.place(arguments.kwarg), help="name each parameter")


