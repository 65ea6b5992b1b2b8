"""A chip is one page: a copy with other numbers and another generation is served by every part, beside the first chip."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tilefw.api import ALL_CHECKS, Artifact, BufferView, CodeError, CompileOptions, LaunchOptions
from tilefw.api.ir import ModuleOp
from tilefw.api.simt import selection_passes
from tilefw.passes.manager import PassManager
from tilefw.simt.description import LaneMachine
from tilefw.simt.layout import atoms
from tilefw.simt.layout.atoms import AtomChain, DotTypes
from tilefw.testing.dot_kernel import dot_kernel
from tilefw_amd import chips as pages
from tilefw_amd.backend import AmdBackend
from tilefw_amd.chips import Chip, occupancy
from tilefw_amd.chips.targets import target
from tilefw_amd.isa.encoding.decode import decode
from tilefw_amd.isa.encoding.encode import encode
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.isa.text.parser import parse
from tilefw_amd.machine import spill
from tilefw_amd.machine.timing import timing
from tilefw_amd.select.lanes import description

NAME = "gfx9scratch"
# What the copy has otherwise, as edits of the page's text.
EDITS = (
    ('name="gfx942"', f'name="{NAME}"'), ('target="amd-cdna3"', 'target="amd-scratch"'),
    ('aliases=("amd-gfx942", "amd-mi300x")', "aliases=()"), ("generation=3", "generation=4"),
    ("elf_machine=0x4C", "elf_machine=0x7E"), ("elf_flags=0x54C", "elf_flags=0x57E"),
    ('"shared_bytes": 64 * 1024', '"shared_bytes": 32 * 1024'), ('"registers_per_thread": 512', '"registers_per_thread": 256'),
    ("quarter_rate=4", "quarter_rate=8"), ('"lds": 20', '"lds": 36'),
    ("    access_bytes=16,", '    removed=frozenset({"v_mfma_f32_32x32x2_f32"}),\n    access_bytes=16,'),
)
GONE = (
    "v_mfma_f32_16x16x8_xf32 v[0:3], v[4:5], v[6:7], v[0:3]",  # an instruction that the next generation lacks
    "v_mfma_f32_32x32x2_f32 v[0:15], v16, v17, v[0:15]",  # one that it has and the page takes out
)


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Chip, Chip]]:
    """The first chip, and the copy of its page, found in a folder of its own."""
    first = next(iter(pages.chips().values()))
    page = Path(str(pages.__path__[0]), f"{first.name}.py").read_text(encoding="utf-8")
    for old, new in EDITS:
        assert page.count(old) == 1, old
        page = page.replace(old, new)
    (tmp_path / f"{NAME}.py").write_text(page, encoding="utf-8")
    monkeypatch.setattr(pages, "__path__", [*pages.__path__, str(tmp_path)])
    pages.chips.cache_clear()
    yield first, pages.named(NAME)
    pages.chips.cache_clear()
    sys.modules.pop(f"{pages.__name__}.{NAME}")


def test_description_and_limits_are_the_pages(both: tuple[Chip, Chip]) -> None:
    first, other = both
    assert (description(first).shared_bytes, description(other).shared_bytes) == (64 * 1024, 32 * 1024)
    assert (description(first).registers, description(other).registers) == (256, 128)
    assert (spill.limits(first, 4), spill.limits(other, 4)) == ({"v": 256, "a": 256}, {"v": 256, "a": 0})
    assert (occupancy.waves_per_simd(first, 128), occupancy.waves_per_simd(other, 128)) == (4, 2)
    assert (target(first).limits["shared_bytes"], target(other).limits["shared_bytes"]) == (64 * 1024, 32 * 1024)


def test_rates_are_the_pages(both: tuple[Chip, Chip]) -> None:
    first, other = (timing(instruction_set(chip)) for chip in both)
    assert (first["v_rcp_f32"].issue, other["v_rcp_f32"].issue) == (16, 32)
    assert (first["ds_read_b32"].latency, other["ds_read_b32"].latency) == (20, 36)
    assert first["v_add_f32"] == other["v_add_f32"]


def test_a_removed_instruction_is_in_one_set_only(both: tuple[Chip, Chip]) -> None:
    first, other = map(instruction_set, both)
    for gone in GONE:
        code = encode(parse(first, gone))
        assert decode(first, code).form.chip is both[0]
        with pytest.raises(CodeError, match="unknown instruction") as unknown:
            parse(other, gone)
        assert NAME in (unknown.value.note or "")
        with pytest.raises(CodeError, match="undefined encoding") as undefined:
            decode(other, code)
        assert NAME in (undefined.value.note or "")
    lost = {"v_mfma_f32_16x16x8_xf32", "v_mfma_f32_32x32x4_xf32", "v_mfma_f32_32x32x2_f32"}
    assert set(first.rows) - set(other.rows) == lost


def _dot(chip: Chip) -> tuple[AmdBackend, Artifact]:
    """A tf32 product of 32 x 32 x 32, compiled for the chip with every pass checked."""
    backend = AmdBackend(target(chip))
    machine, options = LaneMachine(description(chip), 1), CompileOptions(num_warps=1, verify=True)
    kinds = DotTypes("f32", "f32", "f32", "tf32")
    module = ModuleOp([dot_kernel(atoms.choose((32, 32, 32), kinds, machine, AtomChain.NONE), machine, by_step=True)])
    PassManager([*selection_passes(backend.chip(options), backend.target.name), *backend.machine_passes(options)]).run(module)
    return backend, backend.assemble(backend.emit(module, options), options)


def test_compiler_and_simulator_serve_the_copy(both: tuple[Chip, Chip]) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(-3, 4, (32, 32)).astype(np.float32) for _ in range(3))
    for chip, product in zip(both, ("_xf32", "_f32"), strict=True):
        backend, artifact = _dot(chip)
        assert f".amdgcn_target \"amdgcn-amd-amdhsa--{chip.name}\"" in artifact.text
        assert ("_xf32" in artifact.text) == (product == "_xf32") and "v_mfma_f32_" in artifact.text
        assert chip is both[0] or "v_mfma_f32_32x32x2_f32" not in artifact.text
        device = backend.simulator()
        buffers = [device.allocate(x.nbytes, label=name) for x, name in ((a, "a"), (b, "b"), (c, "c"), (c, "d"))]
        for buffer, x in zip(buffers, (a, b, c, c), strict=True):
            device.write(buffer, x.tobytes())
        options = LaunchOptions(block=(64, 1, 1), checks=ALL_CHECKS)
        report = device.launch(device.load(artifact), artifact.entries[0].name, (1,), [BufferView(x) for x in buffers], options)
        assert report.findings == ()
        assert (np.frombuffer(device.read(buffers[3], c.nbytes), np.float32).reshape(32, 32) == a @ b + c).all()


def test_code_of_the_other_chip_is_refused_with_both_names(both: tuple[Chip, Chip]) -> None:
    made = [_dot(chip) for chip in both]
    for (_, theirs), (backend, _), chip, own in zip(made, reversed(made), both, reversed(both), strict=True):
        assert theirs.binary is not None
        with pytest.raises(CodeError, match=f"the file is for {chip.name}, this assembler for {own.name}"):
            backend.to_binary(theirs.text, "theirs.s")
        for read in (backend.to_text, backend.parse):
            with pytest.raises(CodeError, match=f"is code for {chip.name}, not for {own.name}"):
                read(theirs.binary, "theirs.hsaco")
        with pytest.raises(CodeError, match=f"is code for {chip.name}, not for {own.name}"):
            backend.simulator().load(theirs)


def test_disassembly_names_its_chip_and_assembles_again(both: tuple[Chip, Chip]) -> None:
    for chip in both:
        backend, artifact = _dot(chip)
        assert artifact.binary is not None
        text = backend.to_text(artifact.binary, "dot.hsaco")
        assert chip.triple in text and backend.parse(backend.to_binary(text, "dot.s"), "dot.hsaco").entries
