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
from tilefw.frontend.source import KernelSource
from tilefw.frontend.specialize import Specialization, parse
from tilefw.frontend.statements import Statements
from tilefw.frontend.values import Value, lowered
from tilefw.language.constants import unwrap
from tilefw.tile.base import integer_attr, string_attr


def build(kernel: Any, signature: Mapping[str, str], constexprs: Mapping[str, Any]) -> ModuleOp:
    """See `tilefw.frontend.build_module`."""
    _refuse_parameters(kernel.source)
    values = _parameters(kernel, signature, constexprs)
    runtime = {name: value for name, value in values.items() if isinstance(value, Specialization)}
    block = Block(arg_types=[lowered(fact.type) for fact in runtime.values()])
    builder = Builder(block, bool(kernel.debug))
    frame = Activation(kernel, builder)
    arguments = dict(zip(runtime, block.args, strict=True))
    for name, value in values.items():
        if isinstance(value, Specialization):
            name_value(arguments[name], name)
            frame.scope.locals[name] = Value(arguments[name], value.type)
        else:
            frame.scope.locals[name] = value
        frame.scope.lines[name] = frame.source.tree.lineno
    frame.at(frame.source.tree)
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
    return ModuleOp([_function(kernel.__name__, frame, block, runtime)])


def _function(name: str, frame: Activation, block: Block, runtime: dict[str, Specialization]) -> func.FuncOp:
    facts: list[Attribute] = []
    for argument, (parameter, fact) in zip(block.args, runtime.items(), strict=True):
        entries: dict[str, Attribute] = {"tile.name": string_attr(parameter)}
        if fact.divisible > 1:
            entries["tile.divisible"] = integer_attr(fact.divisible)
        if not fact.type.is_ptr() and fact.type.is_int_unsigned():
            entries["tile.dtype"] = string_attr(fact.type.name)
        entries |= frame.b.argument_hints.get(argument, {})
        facts.append(DictionaryAttr(entries))
    function = func.FuncOp(
        name,
        FunctionType.from_lists([argument.type for argument in block.args], []),
        Region(block),
        visibility="public",
        arg_attrs=ArrayAttr(facts) if facts else None,
    )
    function.location = frame.location(frame.source.tree)  # type: ignore[assignment]
    return function


def _parameters(kernel: Any, signature: Mapping[str, str], constexprs: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter in order: a Specialization for run-time ones, the plain value for the others."""
    known = list(kernel.signature.parameters)
    for name in (*signature, *constexprs):
        if name not in known:
            raise CompileError(
                f"kernel `{kernel.__name__}` has no parameter `{name}`", "TFW0119", note=f"its parameters are {', '.join(known)}"
            )
    values: dict[str, Any] = {}
    for name, parameter in kernel.signature.parameters.items():
        if name in constexprs:
            values[name] = unwrap(constexprs[name])
        elif name in signature:
            fact = parse(signature[name], name)
            values[name] = fact if fact.constant is None else fact.constant
        elif parameter.default is not parameter.empty:
            values[name] = unwrap(parameter.default)
        else:
            raise CompileError(
                f"parameter `{name}` of kernel `{kernel.__name__}` has neither a type in the signature nor a constexpr value",
                "TFW0119",
                note="every parameter without a default needs one",
            )
    return values


def _refuse_parameters(source: KernelSource) -> None:
    arguments = source.tree.args
    if not source.name.isascii():
        message = f"the name of kernel `{source.name}` is not ASCII, as machine code needs"
        raise UnsupportedError(message, "TFW0102", source.place(source.tree))
    for star, found in (("*", arguments.vararg), ("**", arguments.kwarg)):
        if found is not None:
            raise UnsupportedError(
                f"kernels cannot have `{star}{found.arg}` parameters", "TFW0102", source.place(found), help="name each parameter"
            )


