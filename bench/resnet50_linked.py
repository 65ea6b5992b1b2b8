"""ResNet-50, batch 1, int8, on spatial-sdm1 as linked programs. Writes `spatial-resnet50-linked.md`.

    python bench/resnet50_linked.py        # some minutes

The layers are those of `resnet50.py`. A program reaches from the largest of windows or a 3 x 3 convolution to the input of the next
3 x 3 convolution, whose windows the host lays out. What every program stores is compared, bit by bit, with NumPy's float32. Exit
code 1 where a simulation takes other cycles than were predicted, a result differs, or launches were not linked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from convolution import convolution, mean, window_max
from numpy.typing import NDArray
from resnet50 import BLOCK, PUBLISHED, RESIDUAL, STAGES, TARGET, Image, windows

from tilefw.api.integers import ceil_div
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.kernel_graph import GraphBuilder, ModelTensor
from tilefw.graph.session import Session

PAGE = Path(__file__).with_name("spatial-resnet50-linked.md")


@dataclass(frozen=True, slots=True)
class ConvolutionWeights:
    """What a convolution has besides its input."""

    weight: Image
    scale: NDArray[np.float32]
    bias: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LinkedCycles:
    """A program: its layers, cycles of each of them as a program of its own, and of all as one."""

    layers: tuple[str, ...]
    alone: int
    predicted: int
    simulated: int
    wrong: str


@dataclass(slots=True)
class LinkedProgram:
    """Layers being written as one program. Beside each tensor goes what NumPy has for it."""

    rng: np.random.Generator
    made: GraphBuilder = field(default_factory=GraphBuilder)
    inputs: dict[str, Image] = field(default_factory=dict)
    exact: dict[ModelTensor, Image] = field(default_factory=dict)

    def input(self, image: Image) -> ModelTensor:
        name = f"input {len(self.inputs)}"
        tensor = self.made.input(name, "int8", image.shape)
        self.inputs[name] = self.exact[tensor] = image
        return tensor

    def convolution(
        self, name: str, x: ModelTensor, out: int, window: int, stride: int = 1, residual: ModelTensor | None = None,
        relu: bool = True,
    ) -> ModelTensor:
        size, _, channels = x.shape
        width, own = ceil_div(size, stride), self._weights(window * window * channels, out)
        constants = {
            f"{part}_ptr": self.made.constant(f"{name} {part}", data, dtype)
            for part, data, dtype in (("weight", own.weight, "int8"), ("scale", own.scale, "fp32"), ("bias", own.bias, "fp32"))
        }
        sums = windows(self.exact[x], window, stride).astype(np.float64) @ own.weight.astype(np.float64)
        result = _fused(sums.astype(np.float32), own.scale, own.bias)
        if residual is not None:
            result = _fused(self.exact[residual].reshape(-1, out).astype(np.float32), np.float32(RESIDUAL), result)
        image = _rounded(np.maximum(result, 0) if relu else result).reshape(width, width, out)
        arguments = {"x_ptr": x, **constants, "residual_ptr": residual, "residual_scale": RESIDUAL}
        shape = {"SIZE": size, "CHANNELS": channels, "OUT": out, "WINDOW": window, "STRIDE": stride, "RELU": relu, "BLOCK_K": BLOCK}
        return self._called(name, convolution, arguments, shape, image)

    def _weights(self, depth: int, out: int) -> ConvolutionWeights:
        """As in `resnet50.py`: outputs of about 40."""
        weight = self.rng.integers(-128, 128, (depth, out), dtype=np.int8)
        scale = (self.rng.uniform(0.5, 1, out) * 40 / (74 * 74 * np.sqrt(depth))).astype(np.float32)
        return ConvolutionWeights(weight, scale, self.rng.uniform(-4, 4, out).astype(np.float32))

    def window_max(self, name: str, x: ModelTensor, window: int, stride: int) -> ModelTensor:
        size, _, channels = x.shape
        width = ceil_div(size, stride)
        seen = windows(self.exact[x], window, stride, fill=-128).reshape(width * width, window * window, channels).max(axis=1)
        shape = {"SIZE": size, "CHANNELS": channels, "WINDOW": window, "STRIDE": stride}
        return self._called(name, window_max, {"x_ptr": x}, shape, seen.reshape(width, width, channels))

    def mean(self, name: str, x: ModelTensor) -> ModelTensor:
        pixels, channels = x.shape[0] * x.shape[1], x.shape[2]
        total = self.exact[x].reshape(pixels, channels).astype(np.int32).sum(axis=0).astype(np.float32)
        image = _rounded(total * np.float32(1 / pixels)).reshape(1, 1, channels)
        shape = {"PIXELS": pixels, "CHANNELS": channels}
        out = self._tensor(name, image)
        arguments = {"x_ptr": x, "out_ptr": out, "scale": 1 / pixels}
        self.made.call(name, mean, arguments, (ceil_div(channels, BLOCK), 1, 1), {**shape, "BLOCK_M": BLOCK, "BLOCK_N": BLOCK})
        return out

    def _called(self, name: str, kernel: Any, arguments: Mapping[str, Any], shape: Mapping[str, Any], image: Image) -> ModelTensor:
        out = self._tensor(name, image)
        grid = (ceil_div(image.shape[0] * image.shape[1], BLOCK), ceil_div(image.shape[2], BLOCK), 1)
        self.made.call(name, kernel, {**arguments, "out_ptr": out}, grid, {**shape, "BLOCK_M": BLOCK, "BLOCK_N": BLOCK})
        return out

    def _tensor(self, name: str, image: Image) -> ModelTensor:
        tensor = self.made.temporary(name, "int8", image.shape)
        self.exact[tensor] = image
        return tensor

    def run(self, *stored: ModelTensor) -> LinkedCycles:
        """Compile the program, run it, and compare what it stores."""
        for number, tensor in enumerate(stored):
            self.made.output(str(number), tensor)
        plan = compile_graph(self.made.graph(), TARGET)
        labels = tuple(step.label for step in plan.steps)
        alone = sum(int(str(plan.kernels[step.kernel].artifact.metadata["cycles"])) for step in plan.steps)
        with Session(plan) as session:
            outputs = session.run(self.inputs)
            cycles = session.counters["cycles"]
        wrong = [labels[0] for number, tensor in enumerate(stored) if (outputs[str(number)] != self.exact[tensor]).any()]
        if len(plan.steps) > 1 and [link.count for link in plan.links] != [len(plan.steps)]:
            return LinkedCycles(labels, alone, 0, cycles, f"{labels[0]}: not one program")
        predicted = int(str(plan.links[0].artifact.metadata["cycles"])) if plan.links else alone
        return LinkedCycles(labels, alone, predicted, cycles, f"{labels[0]}: another result" if wrong else "")


def _fused(x: NDArray[np.float32], y: Any, z: Any) -> NDArray[np.float32]:
    """x · y + z, rounded once: float64 holds products of float32 exactly, and sums of theirs so far that float32 sees no more."""
    return (x.astype(np.float64) * np.float64(y) + np.asarray(z).astype(np.float64)).astype(np.float32)


def _rounded(x: NDArray[np.float32]) -> Image:
    return np.clip(np.rint(x), -128, 127).astype(np.int8)


def programs() -> Iterator[LinkedCycles]:
    """The whole network on a random image, program by program."""
    rng = np.random.default_rng(0)
    blocks = [(stage, block, channels) for stage, (channels, count) in enumerate(STAGES, 2) for block in range(1, count + 1)]
    one = LinkedProgram(rng)
    x = one.input(rng.integers(-128, 128, (224, 224, 3), dtype=np.int8))
    x = one.convolution("first", x, 64, 7, 2)
    yield one.run(x)
    one, image = LinkedProgram(rng), one.exact[x]
    x = one.window_max("largest", one.input(image), 3, 2)
    for number, (stage, block, channels) in enumerate(blocks):
        narrow, short = _begun(one, x, stage, block, channels)
        yield one.run(narrow, short)
        last, images = number + 1 == len(blocks), (one.exact[narrow], one.exact[short])
        one = LinkedProgram(rng)
        stride, name = 2 if block == 1 and stage > 2 else 1, f"{stage}.{block}"
        narrow = one.convolution(f"{name} 3x3", one.input(images[0]), channels, 3, stride)
        x = one.convolution(f"{name} expand", narrow, 4 * channels, 1, residual=one.input(images[1]))
        if last:
            yield one.run(one.convolution("fully connected", one.mean("mean", x), 1000, 1, relu=False))


def _begun(one: LinkedProgram, x: ModelTensor, stage: int, block: int, channels: int) -> tuple[ModelTensor, ModelTensor]:
    """The first layers of a block: what its 3 x 3 convolution takes, and what is added at its end."""
    name, stride = f"{stage}.{block}", 2 if block == 1 and stage > 2 else 1
    short = x if block > 1 else one.convolution(f"{name} short", x, 4 * channels, 1, stride, relu=False)
    return one.convolution(f"{name} reduce", x, channels, 1), short


def told(found: Sequence[LinkedCycles]) -> str:
    """The page."""
    total, alone, faults = sum(one.simulated for one in found), sum(one.alone for one in found), list(faults_of(found))
    layers, least = sum(len(one.layers) for one in found), sum(min(one.alone, one.predicted) for one in found)
    return "\n".join([
        "# ResNet-50 on spatial-sdm1 as linked programs", "",
        "Made by `tox -e spatial-speed` (`bench/resnet50_linked.py`): one image, int8, the layers of",
        f"[spatial-resnet50.md](spatial-resnet50.md), {layers} of them in {len(found)} programs. What a program stores is compared",
        f"with NumPy's float32 bit by bit ({len(faults)} faults), and is the next one's input.", "",
        f"**{total:,} cycles** in all, predicted and simulated: **{total / PUBLISHED:.2f}** of the {PUBLISHED:,} that are",
        "published for the chip whose structure the machine follows (Abts et al., ISCA 2020).",
        f"As {layers} programs the layers take {alone:,}, which leaves out every change of layout.",
        "Here those between the layers of a program are among its cycles, and what passes between them stays on the chip.",
        "Programs end before the windows of 3 x 3 convolutions, which take each pixel along the lanes of several rows of K:",
        "the host lays them out. Weights are in the slices from a program's first cycle.", "",
        "Programs of large images take more than their layers apart. What an earlier layer made becomes weights there, pixels",
        "along lanes: rows of K are written to 16 slices in turn, which another drain may use between its turns. With each program",
        f"or its layers apart, whichever is less, it is {least:,} cycles, with the host's layouts between those.", "",
        "| program | alone | predicted | simulated |", "|---|---|---|---|",
        *(f"| {', '.join(one.layers)} | {one.alone:,} | {one.predicted:,} | {one.simulated:,} |" for one in found), "",
    ])


def faults_of(found: Sequence[LinkedCycles]) -> Iterator[str]:
    for one in found:
        if one.wrong:
            yield one.wrong
        if one.predicted != one.simulated:
            yield f"{one.layers[0]}: {one.predicted} cycles predicted, {one.simulated} simulated"


def main() -> int:
    found: list[LinkedCycles] = []
    for one in programs():
        found.append(one)
        print(one, flush=True)
    faults, total = list(faults_of(found)), sum(one.simulated for one in found)
    PAGE.write_text(told(found), "utf-8")
    print("\n".join([*faults, f"{total:,} cycles, {len(faults)} faults; bench/{PAGE.name}"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
