"""Dots of every type through PTX on the simulator are NumPy's products, exactly, with the instructions that the types call for."""

from __future__ import annotations

import numpy as np
import pytest
from isa.machine import launch
from lane_kernels import select
from xdsl.dialects.builtin import ModuleOp

from tilefw.api.dtypes import DTYPES
from tilefw.simt.description import LaneMachine
from tilefw.simt.layout import atoms
from tilefw.simt.layout.atoms import DotTypes
from tilefw.testing.dot_kernel import dot_kernel
from tilefw.tile import numbers
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.emit import emit
from tilefw_nvidia.select.lanes import description

DTYPE = {d.ir: d for d in DTYPES.values() if not d.name.startswith("u")}
CASES = [
    (DotTypes("f16", "f16", "f32"), "m16n8k16.row.col.f32.f16"),
    (DotTypes("f16", "f16", "f16"), "m16n8k16.row.col.f16.f16"),
    (DotTypes("bf16", "bf16", "f32"), "m16n8k16.row.col.f32.bf16"),
    (DotTypes("f32", "f32", "f32", "tf32"), "m16n8k8.row.col.f32.tf32"),
    (DotTypes("f32", "f32", "f32", "tf32x3"), "m16n8k8.row.col.f32.tf32"),
    (DotTypes("f32", "f32", "f32", "bf16x6"), "m16n8k16.row.col.f32.bf16"),
    (DotTypes("f32", "f32", "f32"), "fma.rn.f32"),
    (DotTypes("f64", "f64", "f64"), "m8n8k4.row.col.f64"),
    (DotTypes("i8", "i8", "i32"), "m16n8k32.row.col.s32.s8"),
    (DotTypes("i8", "i8", "i32", unsigned=True), "m16n8k32.row.col.s32.u8"),
    (DotTypes("f8E5M2", "f8E5M2", "f32"), "m16n8k16.row.col.f32.f16"),
    (DotTypes("f8E4M3FN", "f8E5M2", "f16"), "m16n8k16.row.col.f16.f16"),
]


def _name(value: object) -> str:
    return "-".join((value.a, value.b, value.acc, value.precision)) if isinstance(value, DotTypes) else str(value)


def compiled(kinds: DotTypes, shape: tuple[int, ...], warps: int, chip: Chip) -> str:
    machine = LaneMachine(description(chip), warps)
    function = dot_kernel(atoms.choose(shape, kinds, machine), machine, by_step=True)
    return emit(select(ModuleOp([function]), chip), chip, None)


def check(kinds: DotTypes, shape: tuple[int, ...], warps: int, text: str, chip: Chip) -> None:
    rng = np.random.default_rng(sum(shape) + warps)
    *batch, m, n, k = shape
    names = (kinds.a, kinds.b, kinds.acc)
    limits = (-128, 128) if kinds.a == "i8" else (-3, 4)
    a, b, c = (rng.integers(*limits, (*batch, *s)) for s in ((m, k), (k, n), (m, n)))
    raw = [numbers.to_bytes(_held(x, name).reshape(-1), DTYPE[name]).copy() for x, name in zip((a, b, c), names, strict=True)]
    buffers, findings = launch(text, [*raw, np.zeros_like(raw[2])], 1, 32 * warps, chip)
    assert findings == ()
    found = numbers.from_bytes(np.frombuffer(buffers[3], np.uint8), DTYPE[kinds.acc]).reshape(c.shape)
    left, right = ((x & 0xFF if kinds.unsigned else x) for x in (a, b))
    np.testing.assert_array_equal(found, np.matmul(left, right) + c)


def _held(values: np.ndarray, name: str) -> np.ndarray:
    return values if name.startswith("i") else values.astype(np.float64)


def instruction_for(kinds: DotTypes, without: str, chip: Chip) -> str:
    """The instruction on the chip, where `without` is that of a chip whose matrix unit has few types and shapes."""
    if kinds.a == "f64" and chip.architecture.number >= 90:
        return "m16n8k16.row.col.f64"
    if not kinds.a.startswith("f8") or "e4m3" not in chip.matrix_rates:
        return without
    return f"m16n8k32.row.col.{kinds.acc}.{'e5m2' if kinds.a == 'f8E5M2' else 'e4m3'}"


@pytest.mark.parametrize(("kinds", "instruction"), CASES, ids=_name)
@pytest.mark.parametrize(
    ("shape", "warps"), [((32, 16, 32), 1), ((16, 32, 64), 4), ((2, 32, 16, 32), 4), ((64, 64, 32), 16)], ids=str
)
def test_dots_are_exact(kinds, instruction, shape, warps, chip):
    text = compiled(kinds, shape, warps, chip)
    assert instruction_for(kinds, instruction, chip) in text
    check(kinds, shape, warps, text, chip)


@pytest.mark.parametrize("shape", [(1, 1, 1), (8, 8, 8), (16, 8, 8), (16, 16, 4), (64, 2, 8), (4, 1, 64)], ids=str)
@pytest.mark.parametrize("kinds", [CASES[0][0], CASES[3][0], CASES[7][0], CASES[8][0]], ids=_name)
def test_small_dots_are_exact(kinds, shape, chip):
    check(kinds, shape, 2, compiled(kinds, shape, 2, chip), chip)
