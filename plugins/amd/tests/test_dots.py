"""Dots of every type through the whole compiler are NumPy's products, exactly, by the atoms that the types call for."""

from __future__ import annotations

import numpy as np
import pytest
from served import CHIPS
from test_llvm_accepts import compiled as compiled_kernel
from xdsl.dialects.builtin import ModuleOp

from tilefw.api import ALL_CHECKS, Artifact, BufferView, CompileOptions, LaunchOptions
from tilefw.api.dtypes import DTYPES
from tilefw.api.simt import selection_passes
from tilefw.passes.manager import PassManager
from tilefw.simt.description import LaneMachine
from tilefw.simt.layout import atoms
from tilefw.simt.layout.atoms import AtomChain, DotTypes
from tilefw.testing.dot_kernel import dot_kernel
from tilefw.tile import numbers
from tilefw_amd.backend import AmdBackend
from tilefw_amd.chips import Chip
from tilefw_amd.chips.targets import target
from tilefw_amd.select.lanes import description

DTYPE = {d.ir: d for d in DTYPES.values() if not d.name.startswith("u")}
# The types of a dot with the instruction that multiplies them, by chip.
CASES = {"gfx942": [
    (DotTypes("f16", "f16", "f32"), "v_mfma_f32_32x32x8_f16"),
    (DotTypes("f16", "f16", "f16"), "v_mfma_f32_32x32x8_f16"),  # the wider sums are rounded once
    (DotTypes("bf16", "bf16", "f32"), "v_mfma_f32_32x32x8_bf16"),
    (DotTypes("f32", "f32", "f32", "tf32"), "v_mfma_f32_32x32x4_xf32"),
    (DotTypes("f32", "f32", "f32", "bf16x3"), "v_mfma_f32_32x32x8_bf16"),
    (DotTypes("f32", "f32", "f32"), "v_mfma_f32_32x32x2_f32"),
    (DotTypes("f64", "f64", "f64"), "v_mfma_f64_16x16x4_f64"),
    (DotTypes("i8", "i8", "i32"), "v_mfma_i32_32x32x16_i8"),
    (DotTypes("f8E4M3FNUZ", "f8E4M3FNUZ", "f32"), "v_mfma_f32_32x32x16_fp8_fp8"),
    (DotTypes("f8E5M2FNUZ", "f8E4M3FNUZ", "f32"), "v_mfma_f32_32x32x16_fp8_bf8"),  # transposed: B comes first
    (DotTypes("f8E5M2", "f8E4M3FN", "f32"), "v_mfma_f32_32x32x8_f16"),  # the formats that the chip does not have
], "gfx950": [
    (DotTypes("f16", "f16", "f32"), "v_mfma_f32_32x32x16_f16"),
    (DotTypes("f16", "f16", "f16"), "v_mfma_f32_32x32x16_f16"),
    (DotTypes("bf16", "bf16", "f32"), "v_mfma_f32_32x32x16_bf16"),
    (DotTypes("f32", "f32", "f32", "tf32"), "v_mfma_f32_32x32x2_f32"),  # more exact than was asked
    (DotTypes("f32", "f32", "f32", "bf16x3"), "v_mfma_f32_32x32x16_bf16"),
    (DotTypes("f32", "f32", "f32"), "v_mfma_f32_32x32x2_f32"),
    (DotTypes("f64", "f64", "f64"), "v_mfma_f64_16x16x4_f64"),
    (DotTypes("i8", "i8", "i32"), "v_mfma_i32_32x32x32_i8"),
    (DotTypes("f8E4M3FN", "f8E4M3FN", "f32"), "v_mfma_f32_32x32x16_fp8_fp8"),
    (DotTypes("f8E5M2", "f8E4M3FN", "f32"), "v_mfma_f32_32x32x16_fp8_bf8"),
    (DotTypes("f8E5M2FNUZ", "f8E4M3FNUZ", "f32"), "v_mfma_f32_32x32x16_f16"),
]}
BY_CHIP = [(chip, *case) for chip in CHIPS for case in CASES[chip.name]]
SHAPES = [((32, 32, 32), 1, AtomChain.NONE), ((2, 32, 32, 32), 2, AtomChain.NONE), ((64, 32, 64), 2, AtomChain.FOLLOWS)]


def _name(value: object) -> str:
    if isinstance(value, Chip):
        return value.name
    return "-".join((value.a, value.b, value.acc, value.precision)) if isinstance(value, DotTypes) else str(value)


def compiled(chip: Chip, kinds: DotTypes, shape: tuple[int, ...], waves: int, chain: AtomChain = AtomChain.NONE) -> Artifact:
    """A kernel of this dot alone, every pass checked."""
    machine, options, backend = LaneMachine(description(chip), waves), CompileOptions(num_warps=waves, verify=True), _backend(chip)
    module = ModuleOp([dot_kernel(atoms.choose(shape, kinds, machine, chain), machine, by_step=True)])
    lanes = backend.chip(options)
    PassManager([*selection_passes(lanes, backend.target.name), *backend.machine_passes(options)]).run(module)
    return backend.assemble(backend.emit(module, options), options)


def _backend(chip: Chip) -> AmdBackend:
    return AmdBackend(target(chip))


def check(chip: Chip, kinds: DotTypes, shape: tuple[int, ...], waves: int, artifact: Artifact) -> None:
    """Runs the kernel on small whole numbers, whose products add up exactly."""
    rng = np.random.default_rng(sum(shape) + waves)
    *batch, m, n, k = shape
    limits = (-128, 128) if kinds.a == "i8" else (-3, 4)
    a, b, c = (rng.integers(*limits, (*batch, *s)) for s in ((m, k), (k, n), (m, n)))
    raw = [_bytes(x, name) for x, name in zip((a, b, c), (kinds.a, kinds.b, kinds.acc), strict=True)]
    device = _backend(chip).simulator()
    buffers = [device.allocate(x.nbytes, label="abc"[i]) for i, x in enumerate(raw)] + [device.allocate(raw[2].nbytes, label="d")]
    for buffer, data in zip(buffers, raw, strict=False):
        device.write(buffer, data.tobytes())
    options = LaunchOptions(block=(64 * waves, 1, 1), dynamic_shared=0, checks=ALL_CHECKS)
    report = device.launch(device.load(artifact), "k", (1,), [BufferView(buffer) for buffer in buffers], options)
    assert report.findings == (), report.findings[:3]
    found = np.frombuffer(device.read(buffers[3], raw[2].nbytes), np.uint8)
    np.testing.assert_array_equal(numbers.from_bytes(found, DTYPE[kinds.acc]).reshape(c.shape), np.matmul(a, b) + c)


def _bytes(values: np.ndarray, name: str) -> np.ndarray:
    held = values if name.startswith("i") else values.astype(np.float64)
    return np.ascontiguousarray(numbers.to_bytes(held.reshape(-1), DTYPE[name]))


@pytest.mark.parametrize(("chip", "kinds", "instruction"), BY_CHIP, ids=_name)
def test_dots_are_exact(chip: Chip, kinds: DotTypes, instruction: str) -> None:
    artifact = compiled(chip, kinds, (64, 64, 32), 4)
    assert instruction in artifact.text
    check(chip, kinds, (64, 64, 32), 4, artifact)


@pytest.mark.parametrize(("shape", "waves", "chain"), SHAPES, ids=str)
@pytest.mark.parametrize("chip", CHIPS, ids=_name)
def test_dots_of_any_shape_and_place_in_a_chain_are_exact(
    chip: Chip, shape: tuple[int, ...], waves: int, chain: AtomChain
) -> None:
    kinds = CASES[chip.name][0][0]
    check(chip, kinds, shape, waves, compiled(chip, kinds, shape, waves, chain))


@pytest.mark.parametrize("chip", CHIPS, ids=_name)
def test_small_tiles_take_the_small_atom_or_lanes(chip: Chip) -> None:
    """A tile too small for the large atoms takes the small one; one of no matrix atom at all is computed by lanes."""
    small = DotTypes("f16", "f16", "f32")
    for shape, atom in (((16, 16, 16), "v_mfma_f32_16x16x16_f16"), ((8, 8, 8), "v_fma_mix_f32")):
        artifact = compiled(chip, small, shape, 1)
        assert atom in artifact.text
        check(chip, small, shape, 1, artifact)


@pytest.mark.parametrize("chip", CHIPS, ids=str)
def test_attention_exchanges_nothing_between_its_dots(chip: Chip) -> None:
    """The sums of one are the other's A, of which lanes have the k that they have of the sums: what is left are reductions."""
    artifact = compiled_kernel(chip, "attention", {})
    assert artifact is not None
    assert artifact.text.count("ds_bpermute_b32") < artifact.text.count("v_exp_f32") / 2
