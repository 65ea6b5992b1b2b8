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
from tilefw.graph.collective_calls import call_collective
from tilefw.graph.dialect import grouping_ops, moving_ops, pointwise_ops
from tilefw.graph.dialect.combining_ops import ContractOp
from tilefw.graph.dialect.rank_ops import CollectiveOp, PartOp
from tilefw.graph.dialect.served_nodes import launch_label, launch_name, node_order
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
from tilefw.graph.rank_meaning import ranks_in
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
        self.made = GraphBuilder(ranks_in(module))
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
            self._input(
                argument, name.data if isinstance(name, StringAttr) else f"input{place}",
                kind.data if isinstance(kind, StringAttr) else types.dtype_of(argument.type).name,
            )
        for op in block.ops:
            self._op(op)
        return self.made.graph()

    def _input(self, argument: SSAValue, name: str, kind: str) -> None:
        """An input, of which each rank is given its part where the model reads that alone. Raises UnsupportedError TFW0992."""
        parts = _parts(argument)
        if not parts:
            self.tensors[argument] = self.made.input(name, kind, types.shape_of(argument.type))
            return
        if argument.uses.get_length() > len(parts) or len({part.axis.value.data for part in parts}) > 1:
            raise UnsupportedError(
                f"input '{name}' is read in parts along one axis and otherwise too", code="TFW0992",
                help="give the model two inputs, the one in parts and the other whole",
            )
        axis, shape = parts[0].axis.value.data, types.shape_of(parts[0].result.type)
        held = self.made.divided_input(name, kind, shape, axis)
        self.tensors.update((part.result, held) for part in parts)

    def _constant(self, op: pointwise_ops.GraphConstantOp) -> None:
        """A constant, or of one that is only read in parts each rank's."""
        kind = types.dtype_of(op.result.type).name
        array = np.frombuffer(op.value.data, array_dtype(kind)).reshape(types.shape_of(op.result.type))
        said = op.attributes.get("graph.name")
        name = said.data if isinstance(said, StringAttr) else self._numbered("constant")
        parts = _parts(op.result)
        if not parts or op.result.uses.get_length() > len(parts):
            self.tensors[op.result] = self.made.constant(name, array, kind)
        for part in parts:
            shares = np.split(array, self.made.ranks, part.axis.value.data)
            self.tensors[part.result] = self.made.constant_parts(name, shares, kind)

    def _op(self, op: Operation) -> None:
        if isinstance(op, ReturnOp):
            names = self.function.attributes.get("graph.outputs")
            for place, value in enumerate(op.operands):
                name = names.data[place] if isinstance(names, ArrayAttr) else None
                self.made.output(name.data if isinstance(name, StringAttr) else f"output{place}", self.tensors[value])
        elif isinstance(op, pointwise_ops.GraphConstantOp):
            self._constant(op)
        elif isinstance(op, PartOp):
            assert op.result in self.tensors, "a part is of an input or a constant, which are there before"
        elif isinstance(op, CollectiveOp):
            label = launch_name([op], self.order) or self._numbered(op.kind.data)
            (result,) = self._results(op, label)
            call_collective(self.made, label, op.kind.data, self.tensors[op.source], result)
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
            self.made.call(label, kernel, {**inputs, **outputs}, (one.grid, 1, 1), keywords=one.keywords, computed=one.work)

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


def _parts(value: SSAValue) -> list[PartOp]:
    """The parts of a value that are read."""
    return [use.operation for use in value.uses if isinstance(use.operation, PartOp)]


def _written(kind: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> TileText:
    """The kernel of a group's body."""
    if kind != attention.KIND:
        return write(inputs, outputs)[1]
    product = outputs[0].owner
    assert isinstance(product, ContractOp)
    return AttentionText(kind, inputs, outputs, product)
