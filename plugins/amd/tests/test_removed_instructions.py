"""A chip that was made without an instruction of its generation: code does without it where core or another instruction serves."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilefw.api import ALL_CHECKS, Artifact, BufferView, CompileOptions, LaunchOptions, PluginError
from tilefw.kernels.spec import load
from tilefw.kernels.verify import verify
from tilefw.testing import one_row_softmax
from tilefw_amd import chips as pages
from tilefw_amd.backend import AmdBackend
from tilefw_amd.chips import Chip
from tilefw_amd.chips.targets import target

SIZE = 512
FIRST = next(iter(pages.chips().values()))
# What the kernel below uses on the whole chip, and the compiler can do without.
SPARE = ("ds_bpermute_b32", "v_exp_f32", "global_load_dwordx2", "global_store_dwordx2", "v_max_f32")
# The same of a matrix product: of values that are equal in all lanes, of combined instructions, of accesses.
OF_MATMUL = (
    "s_mul_i32", "s_mul_hi_u32", "s_and_b32", "s_lshl_b32", "s_min_i32", "s_add_u32", "s_addc_u32", "s_cselect_b32",
    "s_cselect_b64", "s_lshl1_add_u32", "v_lshl_add_u32", "v_subrev_u32", "s_load_dwordx16", "buffer_store_short_d16_hi",
)


@pytest.fixture
def without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Chip]]:
    """The first chip's page, copied with one instruction removed."""
    page = Path(str(pages.__path__[0]), f"{FIRST.name}.py").read_text(encoding="utf-8")
    own = (f'name="{FIRST.name}"', f'target="{FIRST.target}"', f"aliases={FIRST.aliases!r}".replace("'", '"'), "    access_bytes=")

    def copied(removed: str) -> Chip:
        text = page
        short = ('name="gfx9short"', 'target="amd-short"', "aliases=()")
        new = (*short, f'    removed=frozenset({{"{removed}"}}),\n    access_bytes=')
        for old, other in zip(own, new, strict=True):
            assert text.count(old) == 1, old
            text = text.replace(old, other)
        (tmp_path / "gfx9short.py").write_text(text, encoding="utf-8")
        return pages.named("gfx9short")

    monkeypatch.setattr(pages, "__path__", [*pages.__path__, str(tmp_path)])
    pages.chips.cache_clear()
    yield copied
    pages.chips.cache_clear()
    sys.modules.pop(f"{pages.__name__}.gfx9short", None)


def compiled(chip: Chip) -> tuple[AmdBackend, Artifact]:
    backend, options = AmdBackend(target(chip)), CompileOptions(verify=True)
    module, ctx = one_row_softmax.tile_module(SIZE)
    for step in backend.pipeline(options):
        step.apply(ctx, module)
    return backend, backend.assemble(backend.emit(module, options), options)


def launched(chip: Chip, x: np.ndarray) -> tuple[str, np.ndarray]:
    """The code, and what it makes of `x` with every check."""
    backend, artifact = compiled(chip)
    device = backend.simulator()
    buffers = [device.allocate(x.nbytes, label=name) for name in ("x", "o")]
    for buffer in buffers:
        device.write(buffer, x.tobytes())
    options = LaunchOptions(block=artifact.entries[0].workgroup, checks=ALL_CHECKS)
    report = device.launch(device.load(artifact), one_row_softmax.NAME, (1,), [BufferView(b) for b in buffers], options)
    assert report.findings == ()
    return artifact.text, np.frombuffer(device.read(buffers[1], x.nbytes), np.float32)


@pytest.mark.parametrize("removed", SPARE)
def test_code_for_the_chip_does_without_the_instruction(removed: str, without: Callable[[str], Chip]) -> None:
    x = one_row_softmax.operand(SIZE)
    for chip in (FIRST, without(removed)):
        text, found = launched(chip, x)
        assert (removed in text) == (chip is FIRST)
        np.testing.assert_allclose(found, one_row_softmax.expected(x), rtol=1e-5)


@pytest.fixture(scope="module")
def whole_product() -> str:
    """The code of a product for the chip as it is."""
    return _right_product()


def _right_product() -> str:
    found = verify(load("matmul"), {"m": 70, "n": 50, "k": 40, "bias": True}, FIRST.target, checks="all")
    assert found.ok and found.artifact is not None, found.failed
    return found.artifact.text


@pytest.mark.parametrize("removed", OF_MATMUL)
def test_a_matrix_product_does_without_the_instruction(
    removed: str, whole_product: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chip = replace(FIRST, removed=frozenset({removed}))
    monkeypatch.setattr(pages, "chips", lambda: {chip.name: chip})
    whole, short = (re.search(rf"^\s+{removed}(_e32|_e64)? ", text, re.MULTILINE) for text in (whole_product, _right_product()))
    assert whole and not short


@pytest.mark.parametrize("removed", ["v_add_f32", "s_endpgm", "s_barrier", "s_waitcnt", "s_mov_b32", "ds_write_b32"])
def test_an_instruction_that_nothing_replaces_is_refused_by_name(removed: str, without: Callable[[str], Chip]) -> None:
    with pytest.raises(PluginError, match=f"has no '?{removed}\\b") as caught:
        compiled(without(removed))
    assert caught.value.code == "TFW0512"
