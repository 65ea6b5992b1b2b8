"""A fused module as a graph of kernels, for any target: one launch for each group, views of memory for reshapes.

`kernels` gives what writes the launches of `graph.kernel` ops by their names: a function of a GraphBuilder, the tensors read and
the tensors written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.graph.dialect import grouping_ops, moving_ops, pointwise_ops
from tilefw.graph.dialect.combining_ops import ContractOp
from tilefw.graph.dialect.served_nodes import launch_label, node_order
from tilefw.graph.emit import contract
from tilefw.graph.emit.attention import AttentionText
from tilefw.graph.emit.kinds import write
from tilefw.graph.emit.tile_text import TileText
from tilefw.graph.fuse import attention
from tilefw.graph.fuse.choice import FEWEST_LAUNCHES, FusionChoice
from tilefw.graph.fuse.contract import KIND, fuse_contractions
from tilefw.graph.fuse.groups import fuse
from tilefw.graph.fuse.memory_ranges import first_byte
from tilefw.graph.fuse.siblings import merge_siblings
from tilefw.graph.kernel_graph import GraphBuilder, KernelGraph, ModelTensor
from tilefw.graph.meaning import model_function
from tilefw.graph.normalise.constants import fold_constants
from tilefw.graph.normalise.factor_layout import lay_factors_out
from tilefw.graph.normalise.gathers import view_fixed_places
from tilefw.kernels.formats import array_dtype
from tilefw.runtime.jit import JITFunction
from tilefw.tile import types

LaunchWriter = Callable[[GraphBuilder, Sequence[ModelTensor], Sequence[ModelTensor]], None]


def kernel_graph(
    module: ModuleOp, kernels: Mapping[str, LaunchWriter] | None = None, choice: FusionChoice = FEWEST_LAUNCHES
) -> KernelGraph:
    """The module, fused in place, as launches; `choice` is between ways to fuse. Raises UnsupportedError TFW0992 for an op that no
    kernel computes."""
    order = node_order(model_function(module).body.block)
    merge_siblings(module, choice)
    fold_constants(module)
    view_fixed_places(module)
    lay_factors_out(module)
    attention.fuse_attention(module, choice)
    fuse_contractions(module)
    return launches_of(fuse(module, choice), kernels or {}, order)


def launches_of(module: ModuleOp, kernels: Mapping[str, LaunchWriter], order: Mapping[str, int]) -> KernelGraph:
    """A fused module as launches, labelled by nodes in this order."""
    return _Emission(module, kernels, order).graph()


class _Emission:
    """A fused module on its way to launches."""

    def __init__(self, module: ModuleOp, kernels: Mapping[str, LaunchWriter], order: Mapping[str, int]) -> None:
        self.function = model_function(module)
        self.writers, self.order = kernels, order
        self.made = GraphBuilder()
        self.tensors: dict[SSAValue, ModelTensor] = {}
        self.kernels: dict[str, JITFunction] = {}
        self.labels: dict[str, int] = {}

    def graph(self) -> KernelGraph:
        """The launches."""
        block = self.function.body.block
        said = self.function.arg_attrs
        for place, argument in enumerate(block.args):
            facts = said.data[place].data if said is not None else {}
            name, kind = (facts.get(word) for word in ("graph.name", "graph.dtype"))
            self.tensors[argument] = self.made.input(
                name.data if isinstance(name, StringAttr) else f"input{place}",
                kind.data if isinstance(kind, StringAttr) else types.dtype_of(argument.type).name, types.shape_of(argument.type),
            )
        for op in block.ops:
            self._op(op)
        return self.made.graph()

    def _op(self, op: Operation) -> None:
        if isinstance(op, ReturnOp):
            names = self.function.attributes.get("graph.outputs")
            for place, value in enumerate(op.operands):
                name = names.data[place] if isinstance(names, ArrayAttr) else None
                self.made.output(name.data if isinstance(name, StringAttr) else f"output{place}", self.tensors[value])
        elif isinstance(op, pointwise_ops.GraphConstantOp):
            kind = types.dtype_of(op.result.type).name
            array = np.frombuffer(op.value.data, array_dtype(kind)).reshape(types.shape_of(op.result.type))
            said = op.attributes.get("graph.name")
            name = said.data if isinstance(said, StringAttr) else self._numbered("constant")
            self.tensors[op.result] = self.made.constant(name, array, kind)
        elif isinstance(op, moving_ops.GraphReshapeOp):
            self.tensors[op.result] = self.tensors[op.source].reshaped(types.shape_of(op.result.type))
        elif isinstance(op, moving_ops.ViewOp) and (begin := first_byte(op)) is not None:
            held = self.tensors[op.source]
            self.tensors[op.result] = replace(held, shape=types.shape_of(op.result.type), offset=held.offset + begin)
        elif isinstance(op, grouping_ops.FusedOp):
            self._fused(op)
        elif isinstance(op, grouping_ops.OpaqueKernelOp) and op.kernel.data in self.writers:
            read = [self.tensors[value] for value in op.operands]
            self.writers[op.kernel.data](self.made, read, self._results(op, op.kernel.data))
        else:
            raise UnsupportedError(f"no kernel computes {op.name}", code="TFW0992")

    def _results(self, op: Operation, word: str) -> list[ModelTensor]:
        for result in op.results:
            kind = types.dtype_of(result.type).name
            self.tensors[result] = self.made.temporary(f"{word} result", kind, types.shape_of(result.type))
        return [self.tensors[result] for result in op.results]

    def _fused(self, op: grouping_ops.FusedOp) -> None:
        if op.kind.data == KIND:
            self._contraction(op)
            return
        block = op.body.block
        assert block.last_op is not None
        text = _written(op.kind.data, block.args, list(block.last_op.operands))
        label = self._label(op)
        inputs = {text.pointers[argument]: self.tensors[value] for argument, value in zip(block.args, op.operands, strict=True)}
        outputs = dict(zip(text.outputs, self._results(op, label), strict=True))
        for one in (text,) if text.before is None else (text.before, text):
            kernel = self.kernels[one.key] if one.key in self.kernels else self.kernels.setdefault(one.key, one.kernel())
            grid, keywords = (one.grid, 1, 1), {"num_warps": one.warps}
            self.made.call(label, kernel, {**inputs, **outputs}, grid, keywords=keywords, computed=one.work)

    def _contraction(self, op: grouping_ops.FusedOp) -> None:
        emitted = contract.write(op, KIND)
        source = emitted.source
        kernel = self.kernels[source] if source in self.kernels else self.kernels.setdefault(source, emitted.kernel())
        read = {f"in{place}_ptr": self.tensors[value] for place, value in enumerate(op.operands)}
        label = self._label(op)
        stored = {f"out{place}_ptr": tensor for place, tensor in enumerate(self._results(op, label))}
        arguments = {name: tensor for name, tensor in {**read, **stored}.items() if name in kernel.arg_names}
        self.made.product(label, kernel, arguments, emitted.extents, emitted.computed)

    def _label(self, op: grouping_ops.FusedOp) -> str:
        """The nodes that a launch serves; its kind and a number where its ops are of no node."""
        return launch_label(op.body.block, self.order) or self._numbered(op.kind.data)

    def _numbered(self, word: str) -> str:
        self.labels[word] = number = self.labels.get(word, 0) + 1
        return f"{word}{number}"


def _written(kind: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> TileText:
    """The kernel of a group's body."""
    if kind != attention.KIND:
        return write(inputs, outputs)[1]
    product = outputs[0].owner
    assert isinstance(product, ContractOp)
    return AttentionText(kind, inputs, outputs, product)
