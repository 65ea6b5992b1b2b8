"""Files of the graph dialect's text, `.graph`: what `str(builder.module())` writes, or a person.

    func.func @model(%x : tensor<8x32xf32> {graph.name = "x"}) -> tensor<8x32xf32> attributes {graph.outputs = ["y"]} {
      %y = graph.collective "all_reduce" %x of 4 : tensor<8x32xf32> to tensor<8x32xf32>
      func.return %y : tensor<8x32xf32>
    }
"""

from __future__ import annotations

import os
from pathlib import Path

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from tilefw.api.dtypes import DTYPES
from tilefw.api.errors import CodeError, IRError, Place
from tilefw.graph.dialect.text import parse_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.fuse.choice import FEWEST_LAUNCHES, FusionChoice
from tilefw.graph.kernel_graph import KernelGraph
from tilefw.tile import types


def read(path: str | os.PathLike[str], *, choice: FusionChoice = FEWEST_LAUNCHES) -> KernelGraph:
    """The graph of a file's module; `choice` is between ways to fuse. Raises CodeError TFW0930 for a file that cannot be read,
    IRError TFW0401 and TFW0402 for one that is no module of graph ops, UnsupportedError TFW0992 for an op without a kernel."""
    name = os.fspath(path)
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise CodeError(f"{name} cannot be read: {error.strerror or error}", code="TFW0930") from None
    except UnicodeDecodeError as error:
        raise CodeError(f"{name} is no text: {error}", code="TFW0930") from None
    return kernel_graph(_one_model(parse_graph(text, name), name), choice=choice)


def _one_model(module: ModuleOp, name: str) -> ModuleOp:
    """The module, if it is a model. Raises IRError TFW0402."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    if len(functions) != 1 or len(list(module.ops)) != 1 or len(functions[0].body.blocks) != 1:
        raise IRError("a model is one function of one block", "TFW0402", Place(name, 1))
    for type in (*functions[0].function_type.inputs, *functions[0].function_type.outputs):
        if not isinstance(type, TensorType) or any(extent < 0 for extent in type.get_shape()) or not _has_elements(type):
            raise IRError(f"a model takes and gives tensors of numbers, of static shape, not {type}", "TFW0402", Place(name, 1))
    if (wrong := _wrong_name(functions[0])) is not None:
        raise IRError(wrong, "TFW0402", Place(name, 1))
    return module


def _wrong_name(function: FuncOp) -> str | None:
    """What is wrong with the names of inputs and outputs, and with the element types that are said of inputs."""
    told = [facts.data for facts in function.arg_attrs.data] if function.arg_attrs is not None else []
    for facts, type in zip(told, function.function_type.inputs, strict=True) if told else ():
        kind = facts.get("graph.dtype")
        if kind is not None and not _stores(kind, type):
            return f"graph.dtype = {kind} is no name of the element type of {type}"
    inputs = [facts["graph.name"] for facts in told if "graph.name" in facts]
    outputs = function.attributes.get("graph.outputs")
    named = list(outputs.data) if isinstance(outputs, ArrayAttr) else []
    if outputs is not None and len(named) != len(function.function_type.outputs):
        return f"graph.outputs names {len(named)} of {len(function.function_type.outputs)} outputs"
    for names in (inputs, named):
        if not all(isinstance(one, StringAttr) for one in names) or len(set(names)) != len(names):
            return f"names are texts, each another: {', '.join(map(str, names))}"
    return None


def _stores(kind: Attribute, type: Attribute) -> bool:
    """Whether an attribute names an element type of tensors of this type."""
    if not isinstance(kind, StringAttr) or kind.data not in DTYPES or not isinstance(type, TensorType):
        return False
    return types.ir_type(DTYPES[kind.data]) == type.element_type


def _has_elements(type: TensorType[Attribute]) -> bool:
    """Whether a tensor's elements are numbers that kernels have."""
    try:
        types.dtype_of(type)
    except TypeError:
        return False
    return True
