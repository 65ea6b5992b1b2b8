"""A plan: what a model does on one target, as plain data: buffers, kernels in machine code, launches in order.

A plan needs neither the compiler nor the reader of the model's file: it is saved, loaded in another process, run by a `Session`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilefw.api.artifact import Artifact, Entry
from tilefw.api.device import Scalar
from tilefw.graph.kernel_graph import ModelBuffer, ModelTensor

PlanArgument = ModelTensor | Scalar | None
"""One argument of a launch; None is a null pointer."""


@dataclass(frozen=True, slots=True)
class PlanKernel:
    """Machine code with one entry, and the tile IR that it was made of, by which its results are judged. `fusion` says whether it
    may round a product and a sum once."""

    artifact: Artifact
    source: str
    fusion: bool

    @property
    def entry(self) -> Entry:
        return self.artifact.entry()


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One launch: the kernel by its number, and an argument for each parameter of its entry, hidden ones too."""

    label: str
    kernel: int
    grid: tuple[int, int, int]
    arguments: tuple[PlanArgument, ...]

    def tensors(self) -> Iterator[ModelTensor]:
        """Those of the arguments that are tensors."""
        return (argument for argument in self.arguments if isinstance(argument, ModelTensor))


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """What a model does on the target called `target`. A buffer that is no constant is free before the first step that uses it, and
    after the last one; that of an input is taken from the beginning, that of an output to the end."""

    target: str
    buffers: tuple[ModelBuffer, ...]
    kernels: tuple[PlanKernel, ...]
    inputs: Mapping[str, ModelTensor]
    outputs: Mapping[str, ModelTensor]
    steps: tuple[PlanStep, ...]

    def unwritten(self) -> list[str]:
        """The outputs whose elements neither a step gives, nor an input, nor a constant."""
        given = {tensor.buffer for tensor in self.inputs.values()}
        given |= {tensor.buffer for step in self.steps for tensor in step.tensors()}
        given |= {number for number, buffer in enumerate(self.buffers) if buffer.constant is not None}
        return [name for name, tensor in self.outputs.items() if tensor.nbytes and tensor.buffer not in given]

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants."""
        return sum(buffer.nbytes for buffer in self.buffers if buffer.constant is not None)
