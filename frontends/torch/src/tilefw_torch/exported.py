"""Programs of torch.export as models of tilefw: `export(program, target)` is a plan, for a session or a file.

Operators become ops of the graph dialect, are fused, and are kernels of the target; PyTorch is not needed to run the plan. Shapes
are static, elements float32, float64, truth values and signed integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node
from torch.fx.node import map_arg

from tilefw.api.errors import UnsupportedError
from tilefw.graph.builder import GraphValue, ModuleBuilder
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.fuse.choice import FEWEST_LAUNCHES, FusionChoice
from tilefw.graph.kernel_graph import KernelGraph
from tilefw.graph.plan import ModelPlan
from tilefw.graph.target_choice import TargetChoice
from tilefw.kernels.formats import array_dtype
from tilefw_torch import attention, exported_moves, exported_ops
from tilefw_torch.exported_ops import ELEMENTS, ExportedTensor

_RULES: Mapping[str, Callable[..., Any]] = {**exported_ops.RULES, **exported_moves.RULES}


def export(program: ExportedProgram, target: str | None = None, executor: str | None = None) -> ModelPlan:
    """The plan of a program for a target, without a name the current one. Raises what `read_exported` and `compile_graph` do."""
    return compile_graph(read_exported(program, TargetChoice(target, executor)), target, executor)


def read_exported(program: ExportedProgram, choice: FusionChoice = FEWEST_LAUNCHES) -> KernelGraph:
    """The graph of a program, for any target; `choice` is between ways to fuse. Inputs and outputs have the program's names for
    them.

    Raises UnsupportedError TFW0992, which lists the operators without a rule, or says what of one is not served.
    """
    from torch._decomp import core_aten_decompositions

    return _ProgramReading(program.run_decompositions({**core_aten_decompositions(), **attention.DECOMPOSITIONS})).graph(choice)


# What a program says of its tensors beside computing them: `_fact` has it.
_SAID = {torch.ops.aten._assert_tensor_metadata.default}


@dataclass
class _ProgramReading:
    """A program that is being read: what each of its nodes is by now."""

    program: ExportedProgram
    made: ModuleBuilder = field(default_factory=ModuleBuilder)
    values: dict[Node, Any] = field(default_factory=dict)

    def graph(self, choice: FusionChoice) -> KernelGraph:
        nodes = [node for node in self.program.graph.nodes if node.target not in _SAID]
        self._require_rules(nodes)
        given = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        for node in nodes:
            if node.op == "placeholder":
                self._placeholder(node, given[node.name])
            elif node.op == "call_function":
                self.values[node] = self._call(node)
        self._outputs(next(node for node in nodes if node.op == "output"))
        return kernel_graph(self.made.module(), choice=choice)

    def _require_rules(self, nodes: list[Node]) -> None:
        missing = sorted({_name(node) for node in nodes if node.op == "call_function" and not _served(node)})
        others = sorted({node.op for node in nodes} - {"placeholder", "call_function", "output"})
        if missing or others:
            raise UnsupportedError(f"no kernel is written for {', '.join([*missing, *others])}", code="TFW0992")

    def _placeholder(self, node: Node, spec: Any) -> None:
        if spec.kind is InputKind.USER_INPUT:
            fact = _fact(node)
            self.values[node] = self.made.input(node.name, fact.dtype, fact.shape)
        elif node.users:
            self.values[node] = self._constant(node, spec)

    def _constant(self, node: Node, spec: Any) -> GraphValue:
        program = self.program
        held = program.state_dict.get(spec.target)
        tensor: Any = program.constants[spec.target] if held is None else held
        fact = _fact(node)
        array = tensor.detach().cpu().contiguous().numpy().astype(array_dtype(fact.dtype), copy=False)
        return self.made.constant(array, fact.dtype)

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
            return _RULES[_name(node)](self.made, _fact(node), *args, **keywords)
        except NotImplementedError as error:
            raise UnsupportedError(f"no kernel is written for {error}", code="TFW0992") from None

    def _outputs(self, node: Node) -> None:
        specs, results = self.program.graph_signature.output_specs, node.args[0]
        assert isinstance(results, tuple | list)
        names: set[str] = set()
        for spec, result in zip(specs, results, strict=True):
            if spec.kind is not OutputKind.USER_OUTPUT:
                raise UnsupportedError(f"the program changes '{spec.target or result}', which a plan does not", code="TFW0992")
            if not isinstance(result, Node):
                raise UnsupportedError(f"output {result} of the program is no tensor that it computes", code="TFW0992")
            name = result.name
            while name in names:  # a result that is given twice
                name += "_again"
            names.add(name)
            self.made.output(name, self.values[result])


def _name(node: Node) -> str:
    """`add.Tensor`; an operator of another namespace keeps its whole name."""
    return str(node.target).removeprefix("aten.")


def _served(node: Node) -> bool:
    return node.target is operator.getitem or _name(node) in _RULES


def _fact(node: Node) -> ExportedTensor:
    """What PyTorch says of a node's result, or of its first. Raises UnsupportedError TFW0992."""
    value = node.meta["val"]
    first = value[0] if isinstance(value, tuple | list) else value
    if not isinstance(first, torch.Tensor) or first.dtype not in ELEMENTS or not all(type(extent) is int for extent in first.shape):
        kind = f"{first.dtype} {list(first.shape)}" if isinstance(first, torch.Tensor) else type(first).__name__
        raise UnsupportedError(
            f"'{node.name}' of the program is {kind}", code="TFW0992",
            note="shapes are static, elements float32, float64, truth values and signed integers",
        )
    return ExportedTensor(ELEMENTS[first.dtype], tuple(first.shape))
