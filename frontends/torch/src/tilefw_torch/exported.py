"""Programs of torch.export as models of tilefw: `export(program, target)` is a plan, for a session or a file.

Operators become ops of the graph dialect, are fused, and are kernels of the target; PyTorch is not needed to run the plan. Shapes
are static, elements floats of 16 to 64 bits, truth values and signed integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node
from torch.fx.node import map_arg

from tilefw.api.errors import UnsupportedError, UsageError
from tilefw.graph.builder import GraphValue, ModuleBuilder
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.fuse.choice import FEWEST_LAUNCHES, FusionChoice
from tilefw.graph.kernel_graph import KernelGraph
from tilefw.graph.plan import ModelPlan
from tilefw.graph.target_choice import TargetChoice
from tilefw.kernels.formats import array_dtype
from tilefw_torch import (
    attention,
    decompositions,
    exported_measures,
    exported_moves,
    exported_numbers,
    exported_ops,
    exported_orders,
    exported_products,
)
from tilefw_torch.exported_collectives import RankCollectives
from tilefw_torch.exported_ops import ELEMENTS
from tilefw_torch.exported_tensor import ExportedTensor

# Core operators that PyTorch itself writes with others.
_COMPOSED = [
    torch.ops.aten.elu, torch.ops.aten.grid_sampler_2d, torch.ops.aten.slice_scatter, torch.ops.aten.upsample_bilinear2d.vec,
    torch.ops.aten.upsample_nearest2d.vec,
]
_CHANGES = {OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION}
_COLLECTIVES = "_c10d_functional."
_RULES: Mapping[str, Callable[..., Any]] = {
    **exported_ops.RULES, **exported_numbers.RULES, **exported_products.RULES, **exported_measures.RULES, **exported_moves.RULES,
    **exported_orders.RULES,
}
_BY_MEMORY: Mapping[str, Callable[..., Any]] = {"as_strided.default": exported_moves.strided}  # read as the operand lies in memory


def export(
    program: ExportedProgram | Sequence[ExportedProgram], target: str | None = None, executor: str | None = None
) -> ModelPlan:
    """The plan of a program for a target, without a name the current one; of several, one for each rank, a plan for a node
    (`tilefw.graph.node_session.NodeSession`). Raises what `read_exported` and `compile_graph` do."""
    return compile_graph(read_exported(program, TargetChoice(target, executor)), target, executor)


def read_exported(
    program: ExportedProgram | Sequence[ExportedProgram], choice: FusionChoice = FEWEST_LAUNCHES
) -> KernelGraph:
    """The graph of a program, for any target; `choice` is between ways to fuse. Inputs and outputs have the program's names for
    them. Of several programs, one for each rank, the graph is of as many ranks: they do the same with weights of their own, and are
    given the same inputs.

    Raises UnsupportedError TFW0992, which lists the operators without a rule, or says what of one is not served; UsageError TFW0367
    for programs of ranks that do not do the same.
    """
    from torch._decomp import core_aten_decompositions, get_decompositions

    table = {
        **core_aten_decompositions(), **get_decompositions(_COMPOSED), **attention.DECOMPOSITIONS,
        torch.ops.aten.convolution.default: decompositions.without_transposition,
    }
    programs = [program] if isinstance(program, ExportedProgram) else list(program)
    read = [one.run_decompositions(table) for one in programs]
    _require_alike(read)
    return _ProgramReading(read[0], read[1:]).graph(choice)


def _require_alike(programs: Sequence[ExportedProgram]) -> None:
    """Raises UsageError TFW0367 where the programs of ranks differ in more than their weights."""
    if not programs:
        raise UsageError("no programs", code="TFW0367", help="give one, or one for each rank")
    texts = [list(_text(one)) for one in programs]
    for rank, text in enumerate(texts[1:], 1):
        apart = [str(other) for own, other in zip(texts[0], text, strict=False) if own != other]
        if apart or len(text) != len(texts[0]):
            raise UsageError(
                f"the program of rank {rank} does not do what that of rank 0 does", code="TFW0367",
                note=(apart or ["it has other nodes"])[0], help="ranks differ in the elements of their weights alone",
            )


def _text(program: ExportedProgram) -> Iterator[tuple[str, ...]]:
    """What a program does, without the elements of its weights: its nodes, and what inputs are like."""
    given = {spec.arg.name for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT}
    for node in program.graph.nodes:
        value = node.meta.get("val") if node.name in given else None
        kind = f"{value.dtype} {list(value.shape)}" if isinstance(value, torch.Tensor) else ""
        yield node.op, str(node.target), str(node.args), str(node.kwargs), kind


# What a program says of its tensors beside computing them: `_fact` has it.
_SAID = {torch.ops.aten._assert_tensor_metadata.default}


@dataclass
class _ProgramReading:
    """A program that is being read: what each of its nodes is by now."""

    program: ExportedProgram
    others: Sequence[ExportedProgram] = ()  # those of the ranks behind the first
    made: ModuleBuilder = field(default_factory=ModuleBuilder)
    values: dict[Node, Any] = field(default_factory=dict)
    rules: dict[str, Callable[..., Any]] = field(default_factory=dict)
    buffers: Mapping[str, str] = field(default_factory=dict)

    def graph(self, choice: FusionChoice) -> KernelGraph:
        self.rules = {**_RULES, **_BY_MEMORY, **RankCollectives(self.made, 1 + len(self.others)).rules}
        nodes = [node for node in self.program.graph.nodes if node.target not in _SAID]
        self._require_rules(nodes)
        self.buffers = self._changed_buffers()
        given = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        for node in nodes:
            if node.op == "placeholder":
                self._placeholder(node, given[node.name])
            elif node.op == "call_function":
                with self.made.node(node.name):
                    self.values[node] = self._call(node)
        self._outputs(next(node for node in nodes if node.op == "output"))
        return kernel_graph(self.made.module(), choice=choice)

    def _require_rules(self, nodes: list[Node]) -> None:
        missing = sorted({_name(node) for node in nodes if node.op == "call_function" and not self._served(node)})
        others = sorted({node.op for node in nodes} - {"placeholder", "call_function", "output"})
        if missing or others:
            raise UnsupportedError(f"no kernel is written for {', '.join([*missing, *others])}", code="TFW0992")

    def _placeholder(self, node: Node, spec: Any) -> None:
        changed = self.buffers.get(spec.target) if spec.kind is InputKind.BUFFER else None
        if changed or spec.kind is InputKind.USER_INPUT:
            fact = _fact(node)
            self.values[node] = self.made.input(changed or node.name, fact.dtype, fact.shape)
        elif node.users:
            self.values[node] = self._constant(node, spec)

    def _constant(self, node: Node, spec: Any) -> GraphValue:
        fact = _fact(node)
        tensors = [_tensor(one, spec.target) for one in (self.program, *self.others)]
        if len({(tensor.shape, tensor.dtype) for tensor in tensors}) > 1:
            raise UsageError(
                f"'{spec.target}' has other shapes or types on other ranks", code="TFW0367", help="pad it to one shape"
            )
        arrays = [_elements(tensor, fact) for tensor in tensors]
        if all(array.tobytes() == arrays[0].tobytes() for array in arrays[1:]):
            return self.made.constant(arrays[0], fact.dtype)
        every = np.concatenate([array.reshape(fact.shape or (1,)) for array in arrays])
        return self.made.reshape(self.made.part(self.made.constant(every, fact.dtype), 0, len(arrays)), fact.shape)

    def _changed_buffers(self) -> dict[str, str]:
        """What a plan calls the buffers that the program changes, by the model's names for them: a run is given what they hold, and
        gives what they hold behind it. Where an argument has the name, the program's own name is taken."""
        signature = self.program.graph_signature
        changed = {spec.target for spec in signature.output_specs if spec.kind is OutputKind.BUFFER_MUTATION}
        arguments = {spec.arg.name for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT}
        return {
            str(spec.target): str(spec.arg.name if spec.target in arguments else spec.target)
            for spec in signature.input_specs if spec.kind is InputKind.BUFFER and spec.target in changed
        }

    def _call(self, node: Node) -> Any:
        if node.target is operator.getitem:
            source, place = node.args
            assert isinstance(source, Node)
            found = self.values[source][place]
            if found is None and node.users:
                raise UnsupportedError(f"no kernel is written for result {place} of {_name(source)}", code="TFW0992")
            return found
        args, keywords = map_arg((node.args, node.kwargs), lambda one: self.values[one])
        try:
            rule = self.rules[_name(node)]
            if _name(node).startswith(_COLLECTIVES):
                return rule(_fact(node), *args, **keywords)
            if _name(node) in _BY_MEMORY:
                source = node.args[0]
                assert isinstance(source, Node)
                return rule(self.made, _fact(node), source.meta["val"], *args, **keywords)
            return rule(self.made, _fact(node), *args, **keywords)
        except NotImplementedError as error:
            raise UnsupportedError(f"no kernel is written for {error}", code="TFW0992") from None

    def _served(self, node: Node) -> bool:
        return node.target is operator.getitem or _name(node) in self.rules

    def _outputs(self, node: Node) -> None:
        specs, results = self.program.graph_signature.output_specs, node.args[0]
        assert isinstance(results, tuple | list)
        names: set[str] = set()
        for spec, result in zip(specs, results, strict=True):
            if result is None:
                continue
            if spec.kind is not OutputKind.USER_OUTPUT and (spec.kind not in _CHANGES or self.others):
                raise UnsupportedError(f"the program changes '{spec.target or result}', which a plan does not", code="TFW0992")
            if not isinstance(result, Node):
                raise UnsupportedError(f"output {result} of the program is no tensor that it computes", code="TFW0992")
            name = str(spec.target) if spec.kind in _CHANGES else result.name
            if spec.kind is OutputKind.BUFFER_MUTATION:
                name = self.buffers[name]
            while name in names:  # a result that is given twice
                name += "_again"
            names.add(name)
            self.made.output(name, self.values[result])


def _name(node: Node) -> str:
    """`add.Tensor`; an operator of another namespace keeps its whole name."""
    return str(node.target).removeprefix("aten.")


def _tensor(program: ExportedProgram, name: str) -> Any:
    """A weight or another constant of a program."""
    held = program.state_dict.get(name)
    return program.constants[name] if held is None else held


def _elements(tensor: Any, fact: ExportedTensor) -> np.ndarray[Any, Any]:
    """A tensor's elements in storage form."""
    held = tensor.detach().cpu().contiguous()
    if held.dtype == torch.bfloat16:  # NumPy has no such type of its own
        return held.view(torch.int16).numpy().view(array_dtype(fact.dtype))
    return held.numpy().astype(array_dtype(fact.dtype), copy=False)


def _fact(node: Node) -> ExportedTensor:
    """What PyTorch says of a node's result, or of its first. Raises UnsupportedError TFW0992."""
    value = node.meta["val"]
    first = value[0] if isinstance(value, tuple | list) else value
    if not isinstance(first, torch.Tensor) or first.dtype not in ELEMENTS or not all(type(extent) is int for extent in first.shape):
        kind = f"{first.dtype} {list(first.shape)}" if isinstance(first, torch.Tensor) else type(first).__name__
        raise UnsupportedError(
            f"'{node.name}' of the program is {kind}", code="TFW0992",
            note="shapes are static, elements floats of 16 to 64 bits, truth values and signed integers",
        )
    return ExportedTensor(ELEMENTS[first.dtype], tuple(first.shape))
