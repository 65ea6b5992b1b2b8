"""A Llama layer as one program of spatial-sdm1: cycles predicted and simulated, re-layouts included. Writes `spatial-models.md`.

    python bench/spatial_models.py        # about three minutes: the simulator that goes cycle by cycle takes half of that

The layer is of fp16 library kernels: norms, products, rotary positions, causal attention, SwiGLU and sums, with random weights.
Exit code 1 where a simulator takes other cycles than were predicted, or a launch is beyond its bounds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilefw.language as tl
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.kernel_graph import GraphBuilder, KernelGraph, ModelTensor
from tilefw.graph.plan import ModelPlan, PlanLink
from tilefw.graph.session import Session
from tilefw.kernels.attention import attention
from tilefw.kernels.matmul import matmul
from tilefw.kernels.rmsnorm import rmsnorm
from tilefw.kernels.rope import rope
from tilefw.kernels.swiglu import swiglu
from tilefw.kernels.vector_add import vector_add
from tilefw_spatial.container import read
from tilefw_spatial.machine import load
from tilefw_spatial.program import SpatialProgram
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.transfers import HostBuffer
from tilefw_spatial.tick import TickArray
from tilefw_spatial.tick import simulate as simulate_by_cycle

TARGET = "spatial-sdm1"
PAGE = Path(__file__).with_name("spatial-models.md")
GOAL = 8000
UNLINKED = 39475  # cycles of such a layer as 18 kernels of PyTorch's Inductor, each a program of its own, without re-layouts


@dataclass(frozen=True, slots=True)
class LlamaShape:
    """Extents of a layer."""

    tokens: int = 16
    width: int = 256
    heads: int = 4
    hidden: int = 512

    @property
    def head_size(self) -> int:
        return self.width // self.heads


class LlamaLayer:
    """The layer being written, launch by launch."""

    def __init__(self, shape: LlamaShape) -> None:
        self.shape = shape
        self.made = GraphBuilder()
        self._rng = np.random.default_rng(0)

    def graph(self) -> KernelGraph:
        """x + attention, then the feed-forward part."""
        s = self.shape
        x = self.made.input("x", "fp16", (s.tokens, s.width))
        h = self._added("first sum", x, self._attention(self._normed("first norm", x)))
        gate_up = self._product("gate and up", self._normed("second norm", h), 2 * s.hidden)
        self.made.output("y", self._added("second sum", h, self._product("down", self._gated(gate_up), s.width)))
        return self.made.graph()

    def _attention(self, x: ModelTensor) -> ModelTensor:
        s = self.shape
        q, k, v = (self._product(name, x, s.width) for name in ("q", "k", "v"))
        angle = np.arange(s.tokens)[:, None] * 10000.0 ** (-np.arange(s.head_size // 2) / (s.head_size // 2))
        cos, sin = (self.made.constant(f.__name__, f(angle).astype(np.float16), "fp16") for f in (np.cos, np.sin))
        q, k = (self._rotated(f"rotary {name}", part, cos, sin) for name, part in (("q", q), ("k", k)))
        out, lse = self._rows("attention", s.width), self.made.temporary("lse", "fp32", (s.heads, s.tokens))
        strides = {
            f"stride_{name}{letter}": step
            for name, row in (("q", "m"), ("k", "n"), ("v", "n"), ("o", "m"))
            for letter, step in (("z", s.tokens * s.width), ("h", s.head_size), (row, s.width))
        }
        block = max(16, s.tokens)
        self.made.call(
            "attention", attention,
            {"q_ptr": q, "k_ptr": k, "v_ptr": v, "out_ptr": out, "lse_ptr": lse, **strides, "heads": s.heads, "queries": s.tokens,
             "keys": s.tokens, "head_size": s.head_size, "scale": 1 / np.sqrt(s.head_size)},
            (1, s.heads, 1),
            {"GROUP": 1, "CAUSAL": True, "WHOLE_HEAD": True, "INPUT_PRECISION": "ieee", "BLOCK_M": block, "BLOCK_N": block,
             "BLOCK_D": s.head_size},
        )
        return self._product("attention out", out, s.width)

    def _rows(self, name: str, columns: int) -> ModelTensor:
        return self.made.temporary(name, "fp16", (self.shape.tokens, columns))

    def _weights(self, name: str, *extents: int) -> ModelTensor:
        data = self._rng.standard_normal(extents) / np.sqrt(extents[0])
        return self.made.constant(f"{name} weights", data.astype(np.float16), "fp16")

    def _normed(self, label: str, x: ModelTensor) -> ModelTensor:
        rows, columns = x.shape
        out, rstd = self._rows(label, columns), self.made.temporary(f"{label} rstd", "fp32", (rows,))
        scale = self.made.constant(f"{label} scale", self._rng.uniform(0.5, 1.5, columns).astype(np.float16), "fp16")
        self.made.call(
            label, rmsnorm,
            {"x_ptr": x, "weight_ptr": scale, "out_ptr": out, "rstd_ptr": rstd, "stride": columns, "columns": columns, "eps": 1e-5},
            (rows, 1, 1), {"COMPUTE": tl.float32, "ONE_TILE": True, "BLOCK": columns}, {"num_warps": 1},
        )
        return out

    def _product(self, label: str, a: ModelTensor, n: int) -> ModelTensor:
        m, k = a.shape
        out = self._rows(label, n)
        self.made.call(
            label, matmul,
            {"a_ptr": a, "b_ptr": self._weights(label, k, n), "bias_ptr": None, "out_ptr": out, "M": m, "N": n, "K": k,
             "stride_am": k, "stride_ak": 1, "stride_bk": n, "stride_bn": 1, "stride_om": n, "stride_on": 1},
            (m // 16 * (n // 32), 1, 1),
            {"ACTIVATION": "none", "ACCUMULATOR": tl.float32, "COMPUTE": tl.float32, "INPUT_PRECISION": "ieee", "EVEN_K": True,
             "BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP_M": 1},
        )
        return out

    def _rotated(self, label: str, x: ModelTensor, cos: ModelTensor, sin: ModelTensor) -> ModelTensor:
        s = self.shape
        out, pairs = self._rows(label, s.width), s.head_size // 2
        self.made.call(
            label, rope,
            {"x_ptr": x, "cos_ptr": cos, "sin_ptr": sin, "out_ptr": out, "heads": s.heads, "head_size": s.head_size,
             "rotary_pairs": pairs},
            (s.tokens, 1, 1),
            {"INTERLEAVED": False, "COMPUTE": tl.float32, "BLOCK_HEADS": s.heads, "BLOCK_PAIRS": pairs, "BLOCK_REST": 0},
        )
        return out

    def _gated(self, packed: ModelTensor) -> ModelTensor:
        rows, columns = packed.shape[0], packed.shape[1] // 2
        out = self._rows("gated", columns)
        self.made.call(
            "gated", swiglu,
            {"packed_ptr": packed, "out_ptr": out, "columns": columns, "packed_stride": 2 * columns, "out_stride": columns},
            (rows, 1, 1), {"COMPUTE": tl.float32, "BLOCK": columns},
        )
        return out

    def _added(self, label: str, a: ModelTensor, b: ModelTensor) -> ModelTensor:
        out, count = self._rows(label, a.shape[1]), a.shape[0] * a.shape[1]
        arguments = {"x_ptr": a, "y_ptr": b, "out_ptr": out, "n": count}
        self.made.call(label, vector_add, arguments, (count // 128, 1, 1), {"BLOCK": 128})
        return out


PARTS: Mapping[str, int] = {
    "norm, q, k, v": 4, "rotary positions, attention": 7, "attention's product, sum, norm": 10, "feed-forward": 14,
}
"""Parts of the layer, with the launches until their ends."""


@dataclass(frozen=True, slots=True)
class PartCycles:
    """A part: cycles of its launches as programs of their own, and of the program of all launches until its end."""

    label: str
    alone: int
    so_far: int


@dataclass(frozen=True, slots=True)
class ModelCycles:
    """What was measured: cycles of the whole program by each count, vectors that change lanes, and faults."""

    parts: tuple[PartCycles, ...]
    predicted: int
    simulated: int
    by_cycle: int
    moved: int
    instructions: int
    faults: tuple[str, ...]


def measured(graph: KernelGraph, x: NDArray[np.float16]) -> ModelCycles:
    """The model compiled, run, judged and simulated."""
    plan = compile_graph(graph, TARGET)
    (link,) = plan.links
    assert link.artifact.binary is not None
    machine = load()
    program = read(link.artifact.binary, "linked", machine)
    with Session(plan) as session:
        judged = certified(session, {"x": x})
    memories = [_memory(plan, link, x) for _ in range(2)]
    fast = simulate(program, machine, [HostBuffer("", data, 0) for data in memories[0]]).cycles
    slow = simulate_by_cycle(program, machine, [TickArray("", data, 0) for data in memories[1]]).cycles
    faults = [f"{launch.label} is beyond its bounds" for launch in judged.launches if not launch.ok]
    faults += [f"{name} differs from the run that was judged" for name, found in judged.linked.items() if not found.ok]
    if len({program.cycles, fast, slow}) > 1:
        faults.append(f"{program.cycles} cycles predicted, {fast} and {slow} simulated")
    if any((a != b).any() for a, b in zip(*memories, strict=True)):
        faults.append("the simulators leave different bytes")
    return ModelCycles(
        tuple(_parts(graph, plan)), program.cycles, fast, slow, _moved(program),
        sum(len(queue) for queue in program.chips[0].queues.values()), tuple(faults),
    )


def _memory(plan: ModelPlan, link: PlanLink, x: NDArray[np.float16]) -> list[NDArray[np.uint8]]:
    def content(number: int) -> bytes:
        buffer = plan.buffers[number]
        return x.tobytes() if number == plan.inputs["x"].buffer else bytes(buffer.constant or buffer.nbytes)

    return [np.frombuffer(content(number), np.uint8).copy() for number in link.buffers]


def _moved(program: SpatialProgram) -> int:
    """Vectors that the switches bring to other lanes."""
    queues = program.chips[0].queues.items()
    return sum(inst.burst for name, queue in queues if name.startswith("SXM") for inst in queue if inst.op in ("PRM", "DST"))


def _parts(graph: KernelGraph, plan: ModelPlan) -> Iterator[PartCycles]:
    """Each part; of the launches until its end the result of the last alone is stored."""
    alone = [_cycles(plan.kernels[step.kernel].artifact) for step in plan.steps]
    begin = 0
    for label, end in PARTS.items():
        out = graph.calls[end - 1].arguments["out_ptr"]
        assert isinstance(out, ModelTensor)
        (link,) = compile_graph(replace(graph, calls=graph.calls[:end], outputs={"y": out}), TARGET).links
        assert link.count == end
        yield PartCycles(label, sum(alone[begin:end]), _cycles(link.artifact))
        begin = end


def _cycles(artifact: Any) -> int:
    found = artifact.metadata["cycles"]
    assert isinstance(found, int)
    return found


def told(shape: LlamaShape, found: ModelCycles) -> str:
    """The page."""
    alone = sum(part.alone for part in found.parts)
    count = max(PARTS.values())
    before, rows = 0, list[str]()
    for part in found.parts:
        rows.append(f"| {part.label} | {part.alone:,} | {part.so_far:,} | {part.so_far - before:,} |")
        before = part.so_far
    return "\n".join([
        "# A Llama layer as one program of spatial-sdm1", "",
        f"Made by `tox -e spatial-speed` (`bench/spatial_models.py`): {shape.tokens} tokens,",
        f"width {shape.width}, {shape.heads} heads, {shape.hidden} hidden, fp16, {count} launches of library",
        f"kernels. Every launch is judged on the inputs that it had ({len(found.faults)} faults).", "",
        "| cycles of the layer | |", "|---|---|",
        f"| predicted | {found.predicted:,} |",
        f"| simulated, a burst at a time | {found.simulated:,} |",
        f"| simulated, cycle by cycle | {found.by_cycle:,} |",
        f"| the goal | {GOAL:,} |",
        f"| 18 kernels of Inductor, each a program of its own, without changes of layout | {UNLINKED:,} |",
        f"| the {count} launches, each a program of its own, without changes of layout | {alone:,} |", "",
        f"The program has {found.instructions:,} instructions. All changes of layout are among its cycles:",
        f"{found.moved:,} vectors change lanes in the switches, and a product whose result is wanted along different lanes is made",
        "once for each. Weights are in the slices from the first cycle; what passes between launches never leaves the chip.", "",
        "## By part", "",
        "`alone` are the part's launches as programs of their own, whose operands lie as they want them. `so far` is the program",
        "of all launches until the part's end, which stores the last one's result alone: the forms of these programs differ.", "",
        "| part | alone | so far | more |", "|---|---|---|---|", *rows, "",
    ])


def main() -> int:
    shape = LlamaShape()
    x = np.random.default_rng(1).standard_normal((shape.tokens, shape.width)).astype(np.float16)
    found = measured(LlamaLayer(shape).graph(), x)
    PAGE.write_text(told(shape, found), "utf-8")
    late = [f"{found.predicted:,} cycles, more than {GOAL:,}"] if found.predicted > GOAL else []
    print("\n".join([*found.faults, *late, f"{found.predicted:,} cycles, {len(found.faults)} faults; bench/{PAGE.name}"]))
    return 1 if found.faults or late else 0


if __name__ == "__main__":
    sys.exit(main())
