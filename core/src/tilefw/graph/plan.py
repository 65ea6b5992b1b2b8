"""A plan: what a model does on one target, as plain data: buffers, kernels in machine code, launches in order.

A plan needs neither the compiler nor the reader of the model's file: it is saved, loaded in another process, run by a `Session`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tilefw.api.artifact import Artifact, Entry
from tilefw.api.device import Scalar
from tilefw.api.dtypes import dtype as dtype_named
from tilefw.graph.kernel_graph import ModelBuffer, ModelTensor, RankTransfer

PlanArgument = ModelTensor | Scalar | None
"""One argument of a launch; None is a null pointer, or what whoever launches makes of the others or knows (`Parameter.hidden`)."""


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
    """One launch: the kernel by its number, and an argument for each parameter of its entry, hidden ones too. One that all ranks
    make at once has in `transfer` what it means."""

    label: str
    kernel: int
    grid: tuple[int, int, int]
    arguments: tuple[PlanArgument, ...]
    transfer: RankTransfer | None = None

    def tensors(self) -> Iterator[ModelTensor]:
        """Those of the arguments that are tensors."""
        return (argument for argument in self.arguments if isinstance(argument, ModelTensor))


@dataclass(frozen=True, slots=True)
class PlanLink:
    """Successive steps, `count` from number `first` on, in one artifact, which takes pointers to whole `buffers`. `ended` says why
    the next step is not in it. `observed` computes the same and stores what passes between the steps too, to `observed_buffers`."""

    first: int
    count: int
    artifact: Artifact
    buffers: tuple[int, ...]
    observed: Artifact
    observed_buffers: tuple[int, ...]
    ended: str = ""


@dataclass(frozen=True, slots=True)
class PlanLaunch:
    """What a device is launched with: one step, or the artifact of a link for all of its `steps`."""

    label: str
    artifact: Artifact
    grid: tuple[int, int, int]
    arguments: tuple[PlanArgument, ...]
    steps: tuple[PlanStep, ...]

    def tensors(self) -> Iterator[ModelTensor]:
        """Those of the arguments that are tensors."""
        return (argument for argument in self.arguments if isinstance(argument, ModelTensor))


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """What a model does on the target called `target`. A buffer that is no constant is free before the first launch that uses it,
    and after the last one; that of an input is taken from the beginning, that of an output to the end. Steps of `links`, which are
    in order and have no step in common, are launched together.

    `ranks` devices run it, each all of it; each is given its part of the inputs in `divided`, along the axis there. `inputs` have
    the shapes that a rank has."""

    target: str
    buffers: tuple[ModelBuffer, ...]
    kernels: tuple[PlanKernel, ...]
    inputs: Mapping[str, ModelTensor]
    outputs: Mapping[str, ModelTensor]
    steps: tuple[PlanStep, ...]
    links: tuple[PlanLink, ...] = ()
    ranks: int = 1
    divided: Mapping[str, int] = field(default_factory=dict)

    @property
    def on_node(self) -> bool:
        """Whether it is for the devices of a node."""
        return self.ranks > 1 or any(step.transfer is not None for step in self.steps)

    def of_rank(self, rank: int) -> ModelPlan:
        """The plan with the constants that a rank has."""
        return replace(self, buffers=tuple(buffer.of_rank(rank) for buffer in self.buffers))

    def whole_input(self, name: str) -> ModelTensor:
        """An input as a run is given it, for all ranks."""
        tensor, axis = self.inputs[name], self.divided.get(name)
        if axis is None:
            return tensor
        shape = list(tensor.shape)
        shape[axis] *= self.ranks
        return replace(tensor, shape=tuple(shape))

    def launches(self) -> tuple[PlanLaunch, ...]:
        """The launches in order."""
        found: list[PlanLaunch] = []
        links = {link.first: link for link in self.links}
        number = 0
        while number < len(self.steps):
            link = links.get(number)
            found.append(self._single(self.steps[number]) if link is None else self._linked(link))
            number += 1 if link is None else link.count
        return tuple(found)

    def observed(self) -> ModelPlan:
        """The plan whose links store what passes between their steps."""
        return replace(self, links=tuple(
            replace(link, artifact=link.observed, buffers=link.observed_buffers) for link in self.links
        ))

    def _single(self, step: PlanStep) -> PlanLaunch:
        return PlanLaunch(step.label, self.kernels[step.kernel].artifact, step.grid, step.arguments, (step,))

    def _linked(self, link: PlanLink) -> PlanLaunch:
        steps = self.steps[link.first : link.first + link.count]
        label = f"{steps[0].label} to {steps[-1].label}"
        return PlanLaunch(label, link.artifact, (1, 1, 1), tuple(self._whole(number) for number in link.buffers), steps)

    def _whole(self, number: int) -> ModelTensor:
        """A buffer from its first byte to its last."""
        buffer = self.buffers[number]
        size = dtype_named(buffer.dtype).storage_bits // 8
        return ModelTensor(number, buffer.dtype, (buffer.nbytes // size,))

    def unwritten(self) -> list[str]:
        """The outputs whose elements neither a step gives, nor an input, nor a constant."""
        given = {tensor.buffer for tensor in self.inputs.values()}
        given |= {tensor.buffer for step in self.steps for tensor in step.tensors()}
        given |= {number for number, buffer in enumerate(self.buffers) if buffer.constant is not None or buffer.parts}
        return [name for name, tensor in self.outputs.items() if tensor.nbytes and tensor.buffer not in given]

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants, of each rank where there are several."""
        return sum(buffer.nbytes for buffer in self.buffers if buffer.constant is not None or buffer.parts)
