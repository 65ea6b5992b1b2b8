"""From a kernel graph to a plan: each call is specialised as a launch with its arguments would be, and compiled once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any

from tilefw.api.artifact import Parameter
from tilefw.api.capabilities import missing
from tilefw.api.device import Scalar
from tilefw.api.dtypes import dtype as dtype_named
from tilefw.api.errors import CompileError, UnsupportedError
from tilefw.api.launch import BufferPlacement, LaunchArguments
from tilefw.api.target import BOUND_FACTS, UNDER_2_GIB, TargetInfo
from tilefw.copy_descriptors import PREFIX as DESCRIPTOR
from tilefw.graph.kernel_graph import KernelCall, KernelGraph, ModelTensor
from tilefw.graph.linking import StepSource, linked
from tilefw.graph.plan import ModelPlan, PlanArgument, PlanKernel, PlanStep
from tilefw.node_context import HIDDEN as NODE_CONTEXT
from tilefw.runtime import config
from tilefw.runtime.arguments.binding import grid_of, scalar
from tilefw.runtime.arguments.kernel_parameter import signature_name
from tilefw.runtime.arguments.specialization import ArrayType, specialize
from tilefw.runtime.compilation import options
from tilefw.runtime.compilation.compiler import compile_source
from tilefw.runtime.compilation.kernel_source import from_jit
from tilefw.runtime.executor import executor_for
from tilefw.runtime.plugins.loader import Target, find_target


def compile_graph(graph: KernelGraph, target: str | None = None, executor: str | None = None) -> ModelPlan:
    """The plan of `graph` for a target (without a name, the current one) as its `executor` runs it. Raises CompileError where a
    kernel does not compile, with the call's label in its note."""
    resolved = config.resolve(config.settings(target, executor))
    chosen = find_target(resolved.target)
    return _GraphCompiler(graph, chosen, executor_for(chosen, resolved.executor).device.assembled).plan()


class _GraphCompiler:
    """One graph on its way to one target's plan."""

    def __init__(self, graph: KernelGraph, target: Target, assemble: bool) -> None:
        self.graph, self.target, self.assemble = graph, target, assemble
        self.kernels: list[PlanKernel] = []
        self.numbers: dict[Any, int] = {}
        self.sources: list[StepSource] = []  # of the steps

    def plan(self) -> ModelPlan:
        steps = tuple(self._step(call.tiled(self.target.info.limits)) for call in self.graph.calls if prod(grid_of(call.grid)))
        made = ModelPlan(
            self.target.name, self.graph.buffers, tuple(self.kernels), self.graph.inputs, self.graph.outputs, steps,
            ranks=self.graph.ranks, divided=self.graph.divided,
        )
        if lacking := made.unwritten():
            raise CompileError(f"no launch of the model writes its output '{lacking[0]}'", code="TFW0363")
        return replace(made, links=linked(made, self.sources, self.target))

    def _step(self, call: KernelCall) -> PlanStep:
        try:
            return self._compiled(call)
        except CompileError as error:
            error.note = f"in the model's call {call.label}" + (f"\n{error.note}" if error.note else "")
            raise

    def _compiled(self, call: KernelCall) -> PlanStep:
        """The step; with what its kernel asserts, where the target has a trap."""
        if call.keywords.get("debug") and not missing(["cf.branch"], self.target.info.capabilities):
            with suppress(UnsupportedError):
                return self._built(call, call.kernel.debug_build)
        return self._built(call, call.kernel)

    def _built(self, call: KernelCall, kernel: Any) -> PlanStep:
        info, grid = self.target.info, grid_of(call.grid)
        signature, constexprs, values = specialize(kernel, self._bound(call))
        tensors = {name: value for name, value in call.arguments.items() if isinstance(value, ModelTensor)}
        for name, tensor in tensors.items():
            if tensor.offset % 16:
                signature[name] = signature[name].removesuffix(":16")
        passed = {name: tensors.get(name, values[name]) for name, kind in signature.items() if not kind.endswith(":1")}
        request = options.resolve(
            call.keywords, info, facts=self._facts(info, list(tensors.values())), launch=self._launch(info, passed, grid)
        )
        source = from_jit(kernel, signature, constexprs, warps=options.warps(request, info))
        number = self._number(call, source, request)
        self.sources.append(StepSource(source, request))
        entry = self.kernels[number].entry
        given = iter(passed.values())
        arguments = tuple(_argument(call, p, None if p.hidden else next(given)) for p in entry.parameters)
        return PlanStep(call.label, number, grid, arguments, call.transfer)

    def _number(self, call: KernelCall, source: Any, request: Any) -> int:
        """The kernel's number; code that is the same as an earlier call's is kept once."""
        known = (source.name, source.key, repr(request)) if source.key is not None else (id(call.kernel), len(self.kernels))
        if known not in self.numbers:
            artifact = compile_source(source, self.target, request, assemble=self.assemble).artifact
            self.kernels.append(PlanKernel(artifact, str(source.build()), request.enable_fp_fusion))
            self.numbers[known] = len(self.kernels) - 1
        return self.numbers[known]

    def _bound(self, call: KernelCall) -> dict[str, Any]:
        given = {
            name: ArrayType(signature_name(value.dtype)) if isinstance(value, ModelTensor) else value
            for name, value in call.arguments.items()
        }
        return {**given, **call.constexprs}

    def _facts(self, info: TargetInfo, tensors: list[ModelTensor]) -> frozenset[str]:
        """What a launch of the same arguments would tell the compiler: every buffer has memory of its own while it is used."""
        wanted = info.wants & {"disjoint", "under_2_gib"}
        if len({tensor.buffer for tensor in tensors}) < len(tensors):
            wanted -= {"disjoint"}
        if any(self.graph.buffers[tensor.buffer].nbytes > UNDER_2_GIB for tensor in tensors):
            wanted -= {"under_2_gib"}
        return frozenset(wanted)

    def _launch(self, info: TargetInfo, passed: Mapping[str, Any], grid: tuple[int, int, int]) -> LaunchArguments | None:
        """The launch itself, for a target that compiles for one."""
        if not info.wants & BOUND_FACTS:
            return None
        buffers = {
            name: BufferPlacement(value.buffer, value.offset, self.graph.buffers[value.buffer].nbytes)
            for name, value in passed.items() if isinstance(value, ModelTensor)
        }
        return LaunchArguments(grid, {name: value for name, value in passed.items() if name not in buffers}, buffers)


def _argument(call: KernelCall, parameter: Parameter, value: Any) -> PlanArgument:
    """What a step passes for a parameter. Raises CompileError TFW0363 for one that only a single launch can fill."""
    if (parameter.hidden or "").startswith(DESCRIPTOR):
        return None  # made of the other arguments, when the step is launched
    if parameter.hidden == NODE_CONTEXT and call.transfer is not None:
        return None  # that of the rank which makes the launch
    if parameter.hidden not in (None, "null_pointer"):
        raise CompileError(
            f"kernel {call.kernel.__qualname__} has a parameter {parameter.name} ({parameter.hidden}), which a plan does not fill",
            code="TFW0363", help="a kernel of a model neither prints nor asks for its rank",
        )
    if value is None or isinstance(value, ModelTensor):
        return value
    what = f"argument '{parameter.name}' of {call.label}"
    return Scalar(scalar(what, value, dtype_named(parameter.dtype)), parameter.dtype)
