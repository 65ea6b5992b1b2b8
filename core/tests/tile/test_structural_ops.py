"""A structural op declares its traits once: one that this file alone defines is executed, folded and compiled like the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import launch
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Dialect, Operation

import tilefw
from tilefw.api.errors import UnsupportedError
from tilefw.kernels.reference import typed
from tilefw.kernels.spec import Buffer
from tilefw.passes.axis_info import AxisInfoAnalysis
from tilefw.passes.canonicalize import CanonicalizePass
from tilefw.passes.requirements import required
from tilefw.runtime import config
from tilefw.runtime.arguments.binding import bind
from tilefw.runtime.arguments.bound_launch import launch_of
from tilefw.runtime.compilation import compiler, kernel_source, options, pass_run
from tilefw.runtime.executor import executor_for
from tilefw.runtime.launch import execute
from tilefw.runtime.plugins.loader import find_target
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.testing import lane_interpreter
from tilefw.testing.lane_target import lower
from tilefw.tile.dialect.context import context
from tilefw.tile.dialect.shape_ops import AxisOp
from tilefw.tile.dialect.structural_op import Array, index_map
from tilefw.tile.text.module import parse

MACHINE = LaneMachine(ChipDescription("plain", lanes=32, pointer_bits=64, access_bytes=16, shared_bytes=1 << 16), 4)


class RotateOp(AxisOp):
    """A dim rotated by half of its extent: linear over the bits of indices, with a constant."""

    name = "made.rotate"
    capability = "shape.rotate"

    @staticmethod
    def result_type(type: Attribute, axis: int) -> Attribute:
        return type

    def elements(self, *parts: Array) -> Sequence[Array]:
        return [np.roll(parts[0], parts[0].shape[self.axis + 1] // 2, self.axis + 1)]


class ShuffleOp(AxisOp):
    """The two halves of a dim interleaved: a permutation of the bits of indices, so that layouts change."""

    name = "made.shuffle"

    @staticmethod
    def result_type(type: Attribute, axis: int) -> Attribute:
        return type

    def elements(self, *parts: Array) -> Sequence[Array]:
        half = parts[0].shape[self.axis + 1] // 2
        order = np.arange(2 * half).reshape(2, half).T.reshape(-1)
        return [parts[0].take(order, self.axis + 1)]


class StepOp(AxisOp):
    """A dim rotated by one element: linear over no bits."""

    name = "made.step"

    @staticmethod
    def result_type(type: Attribute, axis: int) -> Attribute:
        return type

    def elements(self, *parts: Array) -> Sequence[Array]:
        return [np.roll(parts[0], 1, self.axis + 1)]


MADE = Dialect("made", [RotateOp, ShuffleOp, StepOp], [])
LAST = {"rotate": lambda x: np.roll(x, 32, 1), "shuffle": lambda x: x.reshape(16, 2, 32).swapaxes(1, 2).reshape(16, 64)}
FIRST = {"rotate": lambda x: np.roll(x, 8, 0), "shuffle": lambda x: x.reshape(2, 8, 64).swapaxes(0, 1).reshape(16, 64)}
CASES = [(name, axis, meaning) for axis, table in ((1, LAST), (0, FIRST)) for name, meaning in table.items()]

KERNEL = """builtin.module {{
  func.func public @k(%in: !tile.ptr<f32> {{tile.name = "x"}}, %out: !tile.ptr<f32> {{tile.name = "y"}}) {{
    %i = tile.iota 0 to 1024
    %at = tile.reshape %i : tensor<1024xi32> to tensor<16x64xi32>
    %p = tile.splat %in : !tile.ptr<f32> to tensor<16x64x!tile.ptr<f32>>
    %q = tile.addptr %p, %at : tensor<16x64x!tile.ptr<f32>>, tensor<16x64xi32>
    %x = tile.load %q : tensor<16x64x!tile.ptr<f32>>
    %y = made.{op} %x axis {axis} : tensor<16x64xf32>
    %o = tile.splat %out : !tile.ptr<f32> to tensor<16x64x!tile.ptr<f32>>
    %r = tile.addptr %o, %at : tensor<16x64x!tile.ptr<f32>>, tensor<16x64xi32>
    tile.store %r, %y : tensor<16x64x!tile.ptr<f32>>
    func.return
  }}
}}"""


def kernel(op: str, axis: int) -> ModuleOp:
    return parse(KERNEL.format(op=op, axis=axis), dialects=[MADE])


@pytest.mark.parametrize("op, axis, meaning", CASES)
def test_the_reference_and_lanes_execute_it(op, axis, meaning) -> None:
    x = np.arange(1024, dtype=np.float32).reshape(16, 64)
    _, buffers = launch(kernel(op, axis), [x.reshape(-1).copy(), (4096,)])
    assert np.array_equal(buffers[1].read_reference().x.reshape(16, 64), meaning(x))
    found = np.zeros(1024, np.float32)
    lane_interpreter.run(lower(kernel(op, axis), MACHINE), [x.reshape(-1).copy(), found], (1, 1, 1), MACHINE)
    assert np.array_equal(found.reshape(16, 64), meaning(x))


@pytest.mark.parametrize("target", ["nvidia-sm80", "amd-cdna3", "spatial-sdm1"])
@pytest.mark.parametrize("op, axis, meaning", CASES)
def test_machine_code_moves_the_same_elements(op, axis, meaning, target) -> None:
    chosen = find_target(target)
    x, found = np.arange(1024, dtype=np.float32).reshape(16, 64), np.zeros(1024, np.float32)
    values: dict[str, Any] = {"x": typed(Buffer(x, "fp32")), "y": typed(Buffer(found, "fp32"))}
    resolved = config.resolve(config.settings(target))
    request = options.resolve({}, chosen.info, facts=frozenset(), launch=launch_of(chosen.info, values, (1, 1, 1)))
    source = kernel_source.ModuleSource("made", None, lambda: kernel(op, axis))
    assembled = executor_for(chosen, resolved.executor).device.assembled
    made = compiler.compile_source(source, chosen, request, assemble=assembled, watch=pass_run.Watch())
    entry = made.artifact.entry()
    execute(chosen, resolved, made, entry, (1, 1, 1), bind(entry, list(values.values())), "made")
    assert np.array_equal(found.reshape(16, 64), meaning(x))


def test_lanes_refuse_what_is_not_linear_over_bits() -> None:
    x = np.arange(1024, dtype=np.float32)
    _, buffers = launch(kernel("step", 1), [x.copy(), (4096,)])
    assert np.array_equal(buffers[1].read_reference().x.reshape(16, 64), np.roll(x.reshape(16, 64), 1, 1))
    with pytest.raises(UnsupportedError, match="not linear over the bits") as raised:
        lower(kernel("step", 1), MACHINE)
    assert raised.value.code == "TFW0612" and raised.value.place is not None


def test_a_pass_reads_what_it_declares() -> None:
    assert "shape.rotate.fp32" in required(kernel("rotate", 1))
    assert not any(name.startswith("shape.shuffle") for name in required(kernel("shuffle", 1)))
    text = """builtin.module {
      func.func public @k(%out: !tile.ptr<i32>) {
        %c = tile.constant 7 : tensor<16xi32>
        %r = made.rotate %c axis 0 : tensor<16xi32>
        %n = tile.iota 16 to 32
        %s = made.shuffle %n axis 0 : tensor<16xi32>
        %t = tile.addi %r, %s : tensor<16xi32>
        %p = tile.splat %out : !tile.ptr<i32> to tensor<16x!tile.ptr<i32>>
        tile.store %p, %t : tensor<16x!tile.ptr<i32>>
        func.return
      }
    }"""
    module = parse(text, dialects=[MADE])
    infos = AxisInfoAnalysis(module)
    (moved,) = (op for op in module.walk() if isinstance(op, ShuffleOp))
    info = infos[moved.results[0]]
    assert (info.low, info.high, info.contiguity, info.divisibility) == (16, 31, (1,), (1,))
    CanonicalizePass().apply(context(), module)
    assert [op.name for op in module.walk() if op.name.startswith("made.")] == ["made.shuffle"]  # the constant rotated is itself


def _map_of(op: Operation) -> tuple[tuple[int, ...], int] | None:
    found = index_map(op)
    return None if found is None else (found.matrix, found.constant)


def test_index_maps_follow_from_the_elements() -> None:
    module = kernel("rotate", 0)
    (rotated,) = (op for op in module.walk() if isinstance(op, RotateOp))
    source = rotated.source
    assert _map_of(rotated) == (tuple(1 << bit for bit in range(10)), 512)
    assert _map_of(ShuffleOp(source, 1)) == ((32, 1, 2, 4, 8, 16, 64, 128, 256, 512), 0)
    assert _map_of(StepOp(source, 1)) is None


# Where an op of the dialect is named: its class, the list of ops, the interface, the front end that makes it, what authors write.
ALLOWED = {
    "tile/dialect/shape_ops.py", "tile/dialect/ops.py", "tile/dialect/structural_op.py", "api/ir.py", "api/capabilities.py",
    "frontend/builder.py", "frontend/attributes.py", "frontend/builtins/rearrange.py", "language/__init__.py",
    "language/rearrange.py", "language/tensor.py", "testing/program_tiles.py",
}


def test_no_pass_and_no_target_names_a_flip() -> None:
    root = Path(tilefw.__file__).parent
    naming = re.compile(r"\bFlipOp\b|\btile\.flip\b|\btl\.flip\b")
    found = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if naming.search(path.read_text(encoding="utf-8"))}
    assert "tile/dialect/shape_ops.py" in found
    assert {name for name in found if not name.startswith("kernels/")} <= ALLOWED
