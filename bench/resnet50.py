"""ResNet-50, batch 1, int8, on spatial-sdm1: every layer a kernel compiled, simulated and checked. Writes `spatial-resnet50.md`.

    python bench/resnet50.py        # one to two minutes

The network is He et al.'s (CVPR 2016) with the stride in the 3x3 convolutions, 4.09 billion multiply-adds; weights are random, and
what a layer makes is the next one's input. Exit code 1 where a simulation takes other cycles than were predicted, or a result is
wrong.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from convolution import convolution, mean, window_max
from numpy.typing import NDArray

from tilefw.api import Artifact
from tilefw.api.integers import ceil_div
from tilefw_spatial.container import read
from tilefw_spatial.machine import load
from tilefw_spatial.simulate.engine import Simulation
from tilefw_spatial.simulate.findings import Findings

TARGET = "spatial-sdm1"
PEAK = 4 * 320 * 320  # int8 multiply-adds a cycle: four planes (docs/sdm-1.md)
PUBLISHED = 44118  # cycles: 20.4 thousand images a second at 900 MHz, Abts et al., "Think Fast", ISCA 2020
STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))  # channels of the narrow convolutions, blocks
BLOCK = 64
RESIDUAL = 0.5  # scale of what is added
PAGE = Path(__file__).with_name("spatial-resnet50.md")

Image = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Spent:
    """Cycles of a layer by cause; they add up to all of them.

    `multiplying` is what the layer's multiply-adds take at the peak. `padding` is what tiles multiply beyond: rows of K and columns
    that are not there. `before` is until the first product begins, `after` from the end of the last one. `idle` is what planes, on
    average, do nothing in between: tiles that are no multiple of four, weights that load longer than rows are multiplied, and
    accumulators that wait for the vector unit. `vector` are layers without products."""

    multiplying: float = 0.0
    padding: float = 0.0
    before: float = 0.0
    idle: float = 0.0
    after: float = 0.0
    vector: float = 0.0


@dataclass(frozen=True, slots=True)
class Layer:
    """What was measured of a layer."""

    name: str
    shape: str
    predicted: int
    simulated: int
    spent: Spent
    wrong: str


class Network:
    """The layers so far; each method adds one, and gives its output."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.machine = load("sdm-1")
        self.layers: list[Layer] = []

    def convolution(
        self, name: str, x: Image, out: int, window: int, stride: int = 1, residual: Image | None = None, relu: bool = True,
    ) -> Image:
        size, channels = x.shape[0], x.shape[2]
        width, depth = ceil_div(size, stride), window * window * channels
        weight = self.rng.integers(-128, 128, (depth, out), dtype=np.int8)
        # Sums of products of evenly drawn int8 have a deviation of 74 · 74 · √K: outputs of about 40.
        scale = (self.rng.uniform(0.5, 1, out) * 40 / (74 * 74 * np.sqrt(depth))).astype(np.float32)
        bias = self.rng.uniform(-4, 4, out).astype(np.float32)
        result = np.zeros((width, width, out), np.int8)
        report = convolution[(-(-width * width // BLOCK), ceil_div(out, BLOCK))](
            x, weight, scale, bias, residual, result, RESIDUAL, SIZE=size, CHANNELS=channels, OUT=out, WINDOW=window, STRIDE=stride,
            RELU=relu, BLOCK_M=BLOCK, BLOCK_N=BLOCK, BLOCK_K=BLOCK, target=TARGET,
        )
        exact = windows(x, window, stride).astype(np.float64) @ weight.astype(np.float64) * scale + bias
        if residual is not None:
            exact = exact + residual.reshape(-1, out) * RESIDUAL
        exact = np.clip(np.maximum(exact, 0) if relu else exact, -128, 127)
        shape = f"{size}² x {channels} to {width}² x {out}, {window} x {window}"
        self._add(name, shape, report, width * width * depth * out, result.reshape(exact.shape) - exact)
        return result

    def window_max(self, name: str, x: Image, window: int, stride: int) -> Image:
        size, channels = x.shape[0], x.shape[2]
        width = ceil_div(size, stride)
        result = np.zeros((width, width, channels), np.int8)
        report = window_max[(-(-width * width // BLOCK), ceil_div(channels, BLOCK))](
            x, result, SIZE=size, CHANNELS=channels, WINDOW=window, STRIDE=stride, BLOCK_M=BLOCK, BLOCK_N=BLOCK, target=TARGET,
        )
        seen = windows(x, window, stride, fill=-128).reshape(width * width, window * window, channels).max(axis=1)
        shape = f"{size}² x {channels} to {width}² x {channels}"
        self._add(name, shape, report, 0, result.reshape(seen.shape).astype(np.float64) - seen)
        return result

    def mean(self, name: str, x: Image) -> Image:
        pixels, channels = x.shape[0] * x.shape[1], x.shape[2]
        result = np.zeros((1, 1, channels), np.int8)
        report = mean[(ceil_div(channels, BLOCK),)](
            x, result, 1 / pixels, PIXELS=pixels, CHANNELS=channels, BLOCK_M=BLOCK, BLOCK_N=BLOCK, target=TARGET,
        )
        exact = x.reshape(pixels, channels).astype(np.float64).mean(axis=0)
        self._add(name, f"{pixels} x {channels} to {channels}", report, 0, result.reshape(-1) - exact)
        return result

    def _add(self, name: str, shape: str, report: Any, products: int, difference: NDArray[np.float64]) -> None:
        """Note a layer. Rounding to int8 is half a step; float32 may lean to the other side of a tie."""
        worst = float(np.abs(difference).max())
        wrong = "" if worst <= 0.5 + 1e-4 else f"{name}: {worst:.4f} from the exact result"
        counters = report.counters
        spent = self._spent(report.artifact, counters["cycles"], products)
        self.layers.append(Layer(name, shape, counters["cycles_predicted"], counters["cycles"], spent, wrong))

    def _spent(self, artifact: Artifact, cycles: int, products: int) -> Spent:
        """A layer's cycles by cause, by the times in its program."""
        assert artifact.binary is not None
        program = read(artifact.binary, artifact.target, self.machine)
        bursts = Simulation(program, self.machine, Findings(frozenset(), self.machine), sys.maxsize).bursts
        macs = [burst for burst in bursts if burst.inst.op == "MAC"]
        if not macs:
            return Spent(vector=cycles)
        first, last = min(burst.time for burst in macs), max(burst.last for burst in macs) + 1
        busy, multiplying = sum(burst.count for burst in macs) / 4, products / PEAK
        return Spent(multiplying, busy - multiplying, first, last - first - busy, cycles - last)


def windows(x: Image, window: int, stride: int, fill: int = 0) -> Image:
    """The matrix of a convolution: [pixels, window · window · channels]."""
    border = window // 2
    padded = np.pad(x, ((border, border), (border, border), (0, 0)), constant_values=fill)
    size = x.shape[0]
    parts = [padded[r : r + size : stride, c : c + size : stride] for r in range(window) for c in range(window)]
    return np.concatenate(parts, axis=-1).reshape(-1, window * window * x.shape[2])


def run(network: Network) -> None:
    """The whole network on a random image."""
    x = network.rng.integers(-128, 128, (224, 224, 3), dtype=np.int8)
    x = network.window_max("largest", network.convolution("first", x, 64, 7, 2), 3, 2)
    for stage, (channels, blocks) in enumerate(STAGES, 2):
        for block in range(1, blocks + 1):
            name, stride = f"{stage}.{block}", 2 if block == 1 and stage > 2 else 1
            short = x if block > 1 else network.convolution(f"{name} short", x, 4 * channels, 1, stride, relu=False)
            narrow = network.convolution(f"{name} reduce", x, channels, 1)
            narrow = network.convolution(f"{name} 3x3", narrow, channels, 3, stride)
            x = network.convolution(f"{name} expand", narrow, 4 * channels, 1, residual=short)
    network.convolution("fully connected", network.mean("mean", x), 1000, 1, relu=False)


def main() -> int:
    network = Network()
    run(network)
    faults = list(wrong(network.layers))
    PAGE.write_text(told(network.layers, faults), "utf-8")
    total = sum(layer.simulated for layer in network.layers)
    print("\n".join([*faults, f"{total:,} cycles, {len(faults)} faults; bench/{PAGE.name}"]))
    return 1 if faults else 0


def wrong(layers: Sequence[Layer]) -> Iterator[str]:
    for layer in layers:
        if layer.predicted != layer.simulated:
            yield f"{layer.name}: {layer.predicted} cycles predicted, {layer.simulated} simulated"
        if layer.wrong:
            yield layer.wrong


CAUSES: Mapping[str, str] = {
    "multiplying": "all multiply-adds at the peak of four planes",
    "padding": "tiles that K and the columns do not fill",
    "before": "from cycle 0 to the first product: weights read, carried and installed",
    "idle": "planes idle between first and last product: tiles that are no multiple of four, weights that load longer than their "
    "rows take, accumulators that wait for the vector unit",
    "after": "from the end of the last product to the end: its sums, the drain, vector work, results stored, the last superlane",
    "vector": "layers without products: largest of windows, mean",
}


def told(layers: Sequence[Layer], faults: Sequence[str]) -> str:
    """The page."""
    total = sum(layer.simulated for layer in layers)
    spent: dict[str, float] = defaultdict(float)
    for layer in layers:
        for cause in CAUSES:
            spent[cause] += getattr(layer.spent, cause)
    return "\n".join([
        "# ResNet-50 on spatial-sdm1", "",
        "Made by `tox -e spatial-speed` (`bench/resnet50.py`): one image, int8, each layer a tile kernel of `bench/convolution.py`",
        "compiled for spatial-sdm1, simulated and compared with NumPy; a layer's output is the next one's input. Scale, bias,",
        "residual, ReLU and rounding to int8 are vector work fused behind the products.", "",
        f"**{total:,} cycles** in all, predicted and simulated ({len(layers)} layers, {len(faults)} faults); published for the",
        f"chip whose structure the machine follows: **{PUBLISHED:,}** (20.4 thousand images a second at 900 MHz, Abts et al.,",
        f"ISCA 2020), so **{total / PUBLISHED:.2f}** of it. The machine's latencies are our own (docs/sdm-1.md): schedules are",
        "compared, not chips.", "",
        "## Account", "", "| cycles | share | cause |", "|---|---|---|",
        *(f"| {spent[cause]:,.0f} | {spent[cause] / total:.1%} | {said} |" for cause, said in CAUSES.items()),
        "", *ACCOUNT, "", "## Layers", "",
        "| layer | shape | predicted | simulated | multiplying | padding | before | idle | after |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_row(layer) for layer in layers), "",
    ])


ACCOUNT = (
    "How this differs from the published figure:", "",
    "- Ours is more by what layers do not share: every layer is a program of its own that begins with weights in memory and ends",
    "  when its last result is stored. A compiler of the whole network would load the next layer's weights, and begin it, while",
    "  one ends: the rows of what comes before the first product and after the last one are what there is to win.",
    "- Ours is less by what the host does: inputs lie as each layer wants them, and a layer's output is laid out anew for the next",
    "  one (the matrix of a convolution with each pixel once for every window that has it, and second copies for planes that work",
    "  at one time). On a chip that runs the whole network this is work of the switches and of memory.",
    "- Ours is less where activations are the weights: large images with few channels fill tiles with pixels instead of channels.",
)


def _row(layer: Layer) -> str:
    s = layer.spent
    parts = " | ".join(f"{part:.0f}" if part else "" for part in (s.multiplying, s.padding, s.before, s.idle, s.after))
    return f"| {layer.name} | {layer.shape} | {layer.predicted:,} | {layer.simulated:,} | {parts} |"


if __name__ == "__main__":
    sys.exit(main())
