"""A chip that was made without an instruction of its generation: code does without it where core or another instruction serves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api import ALL_CHECKS, Artifact, BufferView, CompileOptions, LaunchOptions, PluginError
from tilefw.api.ir import context, parse
from tilefw_amd import chips as pages
from tilefw_amd.backend import AmdBackend
from tilefw_amd.chips import Chip
from tilefw_amd.chips.targets import target

SIZE = 512
FIRST = next(iter(pages.chips().values()))
# What the kernel below uses on the whole chip, and the compiler can do without.
SPARE = ("ds_bpermute_b32", "v_exp_f32", "global_load_dwordx2", "global_store_dwordx2", "v_max_f32")


@tilefw.jit
def softmax(x_ptr, o_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    e = tl.exp2(x - tl.max(x, 0))
    tl.store(o_ptr + offsets, e / tl.sum(e, 0))


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
    tiles = tilefw.compile(softmax, target="reference", signature={"x_ptr": "*fp32", "o_ptr": "*fp32"}, constexprs={"N": SIZE})
    backend, options = AmdBackend(target(chip)), CompileOptions(verify=True)
    module, ctx = parse(tiles.text), context()
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
    report = device.launch(device.load(artifact), "softmax", (1,), [BufferView(b) for b in buffers], options)
    assert report.findings == ()
    return artifact.text, np.frombuffer(device.read(buffers[1], x.nbytes), np.float32)


@pytest.mark.parametrize("removed", SPARE)
def test_code_for_the_chip_does_without_the_instruction(removed: str, without: Callable[[str], Chip]) -> None:
    x = np.random.default_rng(3).standard_normal(SIZE).astype(np.float32)
    exact = np.exp2(x.astype(np.float64) - x.max())
    for chip in (FIRST, without(removed)):
        text, found = launched(chip, x)
        assert (removed in text) == (chip is FIRST)
        np.testing.assert_allclose(found, exact / exact.sum(), rtol=1e-5)


def test_an_instruction_that_nothing_replaces_is_refused_by_name(without: Callable[[str], Chip]) -> None:
    with pytest.raises(PluginError, match="gfx9short has no v_add_f32") as caught:
        compiled(without("v_add_f32"))
    assert caught.value.code == "TFW0512"
