"""Files of the graph dialect's text, `.graph`: what `str(builder.module())` writes, or a person.

    func.func @model(%x : tensor<8x32xf32> {graph.name = "x"}) -> tensor<8x32xf32> attributes {graph.outputs = ["y"]} {
      %y = graph.collective "all_reduce" %x of 4 : tensor<8x32xf32> to tensor<8x32xf32>
      func.return %y : tensor<8x32xf32>
    }
"""

from __future__ import annotations

import os
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp

from tilefw.api.errors import CodeError, IRError, Place
from tilefw.graph.dialect.text import parse_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.fuse.choice import FEWEST_LAUNCHES, FusionChoice
from tilefw.graph.kernel_graph import KernelGraph


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
        if not isinstance(type, TensorType) or any(extent < 0 for extent in type.get_shape()):
            raise IRError(f"a model takes and gives tensors of static shape, not {type}", "TFW0402", Place(name, 1))
    return module
