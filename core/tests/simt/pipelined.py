"""Random loops with loads, as tile IR text, and their execution by the reference interpreter: what the pipeline's tests share."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilefw.api.dtypes import DTYPES
from tilefw.passes.manager import PassManager
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.passes import lane_passes
from tilefw.simt.software_pipeline.loops import PipelineLoops
from tilefw.testing.lane_interpreter import run as run_lanes
from tilefw.tile.reference.interpret import RefReport, run
from tilefw.tile.reference.memory import RefMemory
from tilefw.tile.reference.value import EvaluatedValue
from tilefw.tile.text.module import parse

COPYING = LaneMachine(ChipDescription("copying", 32, 64, 16, shared_bytes=1 << 17, copy_bytes=(4, 8, 16)), 4)
TIGHT = LaneMachine(ChipDescription("tight", 32, 64, 16, shared_bytes=3 << 10, copy_bytes=(4, 8, 16)), 4)  # rings of slots less
STORING = LaneMachine(ChipDescription("storing", 32, 64, 16, shared_bytes=1 << 17), 4)
PLAIN = LaneMachine(ChipDescription("plain", 32, 64, 16), 4)
# No copies either, and it says how many registers there are.
FEW = LaneMachine(ChipDescription("few", 32, 64, 16, registers=255), 4)

SIDE = 16  # of the square tiles
TILE = SIDE * SIDE
ROUNDS = 12  # blocks of each source: what a loop may go over


def pipeline(text: str, stages: int, machine: LaneMachine = COPYING, disjoint: bool = False) -> Any:
    """The module after the pass."""
    module = parse(text)
    PassManager([PipelineLoops(replace(machine, disjoint=disjoint), stages)], verify_each=True).run(module)
    return module


@dataclass
class Loop:
    """A kernel around a loop, line by line; `arrays` are its pointer arguments, `scalars` its numbers."""

    rng: random.Random
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    scalars: dict[str, int] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    carried: list[tuple[str, str, str, str]] = field(default_factory=list)  # argument, initial, next, type
    stores_to: str | None = None
    outer: bool = False  # whether the loop stands in another one, which runs it twice

    def source(self, name: str, dtype: type) -> tuple[str, str]:
        """One more array of blocks, the last ending where the loop ends: its pointer's name and element type."""
        blocks = self.scalars["upper"]
        self.arrays[name] = np.random.default_rng(len(self.arrays)).integers(-8, 8, max(1, blocks) * TILE).astype(dtype)
        return f"%{name}", {np.float16: "f16", np.float32: "f32"}[dtype]

    def text(self) -> str:
        """The kernel."""
        types = {np.dtype(np.float16): "f16", np.dtype(np.float32): "f32", np.dtype(np.int32): "i32"}
        parameters = [f"%{n}: !tile.ptr<{types[a.dtype]}> {{tile.divisible = 16 : i64}}" for n, a in self.arrays.items()]
        parameters += [f"%{n}: i32" for n in self.scalars]
        arguments = ", ".join(f"%{a} = {i}" for a, i, _, _ in self.carried)
        kinds = ", ".join(t for *_, t in self.carried)
        results = ", ".join(f"%end{i}" for i in range(len(self.carried)))
        around = "%total = scf.for %round = %c0 to %c2 step %c1 iter_args(%start = %zero) -> (tensor<16x16xf32>) : i32 {"
        lines = [
            f"func.func @k({', '.join(parameters)}) {{", *self.before, *([around] if self.outer else []),
            f"{results} = scf.for %i = %lower to %end step %step iter_args({arguments}) -> ({kinds}) : i32 {{", *self.body,
            f"scf.yield {', '.join(n for _, _, n, _ in self.carried)} : {kinds}", "} {tile.num_stages = STAGES : i32}",
            *(["scf.yield %end0 : tensor<16x16xf32>", "}"] if self.outer else []),
            "%last = tile.muli %pid, %size : i32", "%outp = tile.addptr %out, %last : !tile.ptr<f32>, i32",
            f"tile.store %outp[%offsets], {'%total' if self.outer else '%end0'} : !tile.ptr<f32>[tensor<16x16xi32>]",
            "func.return", "}",
        ]
        return "\n".join(lines)


def random_loop(seed: int) -> Loop:
    """A loop with up to three loads of random kinds, a dot or a sum, and perhaps a store."""
    rng = random.Random(seed)
    loop = Loop(rng, scalars={"lower": rng.choice([0, 0, 1, 3]), "upper": rng.randrange(ROUNDS), "step": rng.choice([1, 1, 2, 3])})
    loop.outer = rng.random() < 0.3
    loop.arrays["out"] = np.zeros(2 * TILE, np.float32)
    loop.before += _PREAMBLE
    loop.carried.append(("acc", "%start" if loop.outer else "%zero", "%sum", "tensor<16x16xf32>"))
    tiles = [_loaded(loop, f"x{n}") for n in range(rng.randint(1, 3))]
    total = "%acc"
    if rng.random() < 0.6:
        a, b = rng.choice(tiles), rng.choice(tiles)
        loop.body.append(f"%product = tile.dot {a}, {b}, %acc : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>")
        total = "%product"
    for index, tile in enumerate(tiles):
        loop.body.append(f"%partial{index} = tile.addf {total}, {tile} : tensor<16x16xf32>")
        total = f"%partial{index}"
    loop.body.append(f"%sum = tile.mulf {total}, %half : tensor<16x16xf32>")
    _stored(loop)
    return loop


_PREAMBLE = [
    "%pid = tile.program_id 0", "%c0 = tile.constant 0 : i32", "%c1 = tile.constant 1 : i32", "%c2 = tile.constant 2 : i32",
    "%c16 = tile.constant 16 : i32",
    "%size = tile.constant 256 : i32",
    "%zero = tile.constant 0.0 : tensor<16x16xf32>", "%half = tile.constant 0.5 : tensor<16x16xf32>",
    "%end = tile.subi %upper, %pid : i32",  # the second program makes one round less
    "%row = tile.iota 0 to 16", "%rows = tile.expand_dims %row axis 1 : tensor<16xi32>",
    "%columns = tile.expand_dims %row axis 0 : tensor<16xi32>", "%pitch = tile.constant 16 : tensor<16x1xi32>",
    "%starts = tile.muli %rows, %pitch : tensor<16x1xi32>",
    "%across = tile.broadcast %starts : tensor<16x1xi32> to tensor<16x16xi32>",
    "%along = tile.broadcast %columns : tensor<1x16xi32> to tensor<16x16xi32>",
    "%offsets = tile.addi %across, %along : tensor<16x16xi32>", "%fifteen = tile.constant 15 : tensor<16x16xi32>",
    "%back = tile.subi %fifteen, %along : tensor<16x16xi32>",
    "%first = tile.muli %lower, %size : i32", "%stride = tile.muli %step, %size : i32",
]


def _loaded(loop: Loop, name: str) -> str:
    """Lines that load a tile in one of the ways; gives the tile as f32."""
    kind = loop.rng.choice([_block, _block, _pointer, _pointer, _offset, _indirect, _chased, _gathered])
    dtype = loop.rng.choice([np.float16, np.float32])
    kind(loop, name, dtype)
    element = {np.float16: "f16", np.float32: "f32"}[dtype]
    tile = f"%{name}v"
    if loop.rng.random() < 0.4:
        loop.body.append(f"%{name}t = tile.trans {tile} [1, 0] : tensor<16x16x{element}>")
        tile = f"%{name}t"
    if element == "f32":
        return tile
    loop.body.append(f"%{name}w = tile.castf {tile} : tensor<16x16xf16> to tensor<16x16xf32>")
    return f"%{name}w"


def _block(loop: Loop, name: str, dtype: type) -> None:
    pointer, element = loop.source(name, dtype)
    bounds = [" shape (%{0}n : i32) checks [upper, none]", " shape (%{0}n, %c16 : i32, i32) checks [both, upper]"]
    checks = loop.rng.choice(["", *bounds])
    other = _other(loop, name, element, bool(checks))
    loop.before += [
        f"%{name}e = tile.muli %upper, %c16 : i32",
        f"%{name}h = tile.constant {5 if other else 0} : i32",  # with `other`, the last block is not all within the bounds
        f"%{name}n = tile.subi %{name}e, %{name}h : i32",
    ]
    loop.body += [
        f"%{name}r = tile.muli %i, %c16 : i32",
        f"%{name}v = tile.load_block {pointer} at (%{name}r, %c0 : i32, i32) strides (%c16, %c1 : i32, i32)"
        f"{checks.format(name)}{other} : !tile.ptr<{element}>, tensor<16x16x{element}>",
    ]


def _other(loop: Loop, name: str, element: str, masked: bool) -> str:
    """What masked-off elements become: nothing said (the mask is always on then), zero, or another number."""
    number = loop.rng.choice([None, 0.0, 1.5])
    if number is None or not masked:
        return ""
    loop.before.append(f"%{name}o = tile.constant {number} : tensor<16x16x{element}>")
    return f" other %{name}o"


def _masked(loop: Loop, name: str, element: str) -> str:
    """A mask that depends on the iteration: rows below it."""
    if loop.rng.random() < 0.3:
        return ""
    loop.body += [
        f"%{name}k = tile.splat %i : i32 to tensor<16x1xi32>", f"%{name}j = tile.ges %rows, %{name}k : tensor<16x1xi32>",
        f"%{name}m = tile.broadcast %{name}j : tensor<16x1xi1> to tensor<16x16xi1>",
    ]
    number = loop.rng.choice([0.0, 0.0, -2.0])
    loop.before.append(f"%{name}o = tile.constant {number} : tensor<16x16x{element}>")
    return f" mask %{name}m other %{name}o"


def _pointer(loop: Loop, name: str, dtype: type) -> None:
    """A pointer that the loop moves on."""
    pointer, element = loop.source(name, dtype)
    loop.before.append(f"%{name}p0 = tile.addptr {pointer}, %first : !tile.ptr<{element}>, i32")
    mask = _masked(loop, name, element)
    loop.body += [
        f"%{name}v = tile.load %{name}p[%offsets]{mask} : !tile.ptr<{element}>[tensor<16x16xi32>]",
        f"%{name}pn = tile.addptr %{name}p, %stride : !tile.ptr<{element}>, i32",
    ]
    loop.carried.append((f"{name}p", f"%{name}p0", f"%{name}pn", f"!tile.ptr<{element}>"))


def _offset(loop: Loop, name: str, dtype: type) -> None:
    """A tile of offsets that the loop moves on."""
    pointer, element = loop.source(name, dtype)
    loop.before += [
        f"%{name}f = tile.splat %first : i32 to tensor<16x16xi32>", f"%{name}p0 = tile.addi %offsets, %{name}f : tensor<16x16xi32>",
        f"%{name}s = tile.splat %stride : i32 to tensor<16x16xi32>",
    ]
    mask = _masked(loop, name, element)
    loop.body += [
        f"%{name}v = tile.load {pointer}[%{name}p]{mask} : !tile.ptr<{element}>[tensor<16x16xi32>]",
        f"%{name}pn = tile.addi %{name}p, %{name}s : tensor<16x16xi32>",
    ]
    loop.carried.append((f"{name}p", f"%{name}p0", f"%{name}pn", "tensor<16x16xi32>"))


def _table(loop: Loop, name: str) -> None:
    """An array of numbers of blocks."""
    upper = max(1, loop.scalars["upper"])
    loop.arrays[f"{name}x"] = np.random.default_rng(loop.rng.randrange(99)).integers(0, upper, upper).astype(np.int32)


def _indirect(loop: Loop, name: str, dtype: type) -> None:
    """A block whose number is itself loaded."""
    pointer, element = loop.source(name, dtype)
    _table(loop, name)
    loop.body += [
        f"%{name}a = tile.addptr %{name}x, %i : !tile.ptr<i32>, i32", f"%{name}b = tile.load %{name}a : !tile.ptr<i32>",
        f"%{name}r = tile.muli %{name}b, %c16 : i32",
        f"%{name}v = tile.load_block {pointer} at (%{name}r, %c0 : i32, i32) strides (%c16, %c1 : i32, i32) : "
        f"!tile.ptr<{element}>, tensor<16x16x{element}>",
    ]


def _gathered(loop: Loop, name: str, dtype: type) -> None:
    """Rows, read backwards, whose numbers are loaded; the same numbers say which rows count."""
    pointer, element = loop.source(name, dtype)
    rows = max(1, loop.scalars["upper"]) * SIDE
    loop.arrays[f"{name}x"] = np.random.default_rng(loop.rng.randrange(99)).integers(-3, rows, rows).astype(np.int32)
    loop.before += [
        f"%{name}m = tile.constant -1 : tensor<16xi32>", f"%{name}z = tile.constant 0.0 : tensor<16x16x{element}>",
        f"%{name}l = tile.muli %upper, %c16 : i32",
    ]
    loop.body += [
        f"%{name}i = tile.muli %i, %c16 : i32",
        f"%{name}b = tile.load_block %{name}x at (%{name}i : i32) strides (%c1 : i32) shape (%{name}l : i32) checks [upper] "
        f"other %{name}m : !tile.ptr<i32>, tensor<16xi32>",
        f"%{name}c = tile.constant 0 : tensor<16xi32>", f"%{name}g = tile.ges %{name}b, %{name}c : tensor<16xi32>",
        f"%{name}h = tile.expand_dims %{name}g axis 1 : tensor<16xi1>",
        f"%{name}k = tile.broadcast %{name}h : tensor<16x1xi1> to tensor<16x16xi1>",
        f"%{name}r = tile.expand_dims %{name}b axis 1 : tensor<16xi32>",
        f"%{name}s = tile.muli %{name}r, %pitch : tensor<16x1xi32>",
        f"%{name}t0 = tile.broadcast %{name}s : tensor<16x1xi32> to tensor<16x16xi32>",
        f"%{name}t1 = tile.addi %{name}t0, %back : tensor<16x16xi32>",
        f"%{name}u = tile.load {pointer}[%{name}t1] mask %{name}k other %{name}z : !tile.ptr<{element}>[tensor<16x16xi32>]",
        f"%{name}v = tile.select %{name}k, %{name}u, %{name}z : tensor<16x16x{element}>",
    ]


def _chased(loop: Loop, name: str, dtype: type) -> None:
    """A block whose number was loaded in the iteration before: a list that is followed."""
    pointer, element = loop.source(name, dtype)
    _table(loop, name)
    loop.body += [
        f"%{name}r = tile.muli %{name}q, %c16 : i32",
        f"%{name}v = tile.load_block {pointer} at (%{name}r, %c0 : i32, i32) strides (%c16, %c1 : i32, i32) : "
        f"!tile.ptr<{element}>, tensor<16x16x{element}>",
        f"%{name}a = tile.addptr %{name}x, %{name}q : !tile.ptr<i32>, i32", f"%{name}qn = tile.load %{name}a : !tile.ptr<i32>",
    ]
    loop.carried.append((f"{name}q", "%c0", f"%{name}qn", "i32"))


def _stored(loop: Loop) -> None:
    """Perhaps a store in the loop: to an array of its own, or to where a later iteration of the first load reads."""
    choice = loop.rng.choice(["none", "none", "own", "source"])
    if choice == "none":
        return
    if choice == "own":
        loop.source("own", np.float32)
        loop.stores_to = "own"
    else:
        loop.stores_to = next((n for n in ("x0", "x1", "x2") if n in loop.arrays and loop.arrays[n].dtype == np.float32), None)
    if loop.stores_to is None:
        return
    loop.body += [
        "%ahead = tile.addi %i, %c1 : i32", "%most = tile.subi %end, %c1 : i32", "%later = tile.mins %ahead, %most : i32",
        "%target = tile.muli %later, %c16 : i32",
        f"tile.store_block %{loop.stores_to}, %sum at (%target, %c0 : i32, i32) strides (%c16, %c1 : i32, i32) : "
        "!tile.ptr<f32>, tensor<16x16xf32>",
    ]


_NAMES = {"float16": "fp16", "float32": "fp32", "int32": "int32"}


def execute(loop: Loop, module: Any, programs: int) -> tuple[RefReport, dict[str, EvaluatedValue]]:
    """The findings, and what each array holds."""
    memory = RefMemory()
    buffers = {name: memory.of_array(array, name) for name, array in loop.arrays.items()}
    report = run(module, None, (programs,), [*buffers.values(), *loop.scalars.values()], memory=memory)
    return report, {name: buffer.read_reference(DTYPES[_NAMES[loop.arrays[name].dtype.name]]) for name, buffer in buffers.items()}


def check_on_lanes(loop: Loop, stages: int, machine: LaneMachine) -> None:
    """All the way to placed shared memory and barriers, which the lane interpreter watches; results are within the reference's
    bounds."""
    text = loop.text().replace("STAGES", str(stages))
    _, expected = execute(loop, parse(text), 1)
    module = parse(text)
    PassManager(lane_passes(replace(machine, disjoint=True), 1)).run(module)
    arrays = {name: array.copy() for name, array in loop.arrays.items()}
    run_lanes(next(iter(module.body.block.ops)), [*arrays.values(), *loop.scalars.values()], (1,), machine)
    for name, value in expected.items():
        found = arrays[name].reshape(-1).astype(value.x.dtype)
        close = (np.abs(found - value.x) <= (0 if value.err is None else value.err)) | (np.isnan(found) & np.isnan(value.x))
        assert (close | (False if value.free is None else value.free)).all(), (name, text)
