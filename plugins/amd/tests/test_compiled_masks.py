"""Masks of lanes that comparisons make and choices take apart, within compiled runs: every element as in NumPy's form."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.sim.compiled.runs import Compiled

pytest.importorskip("llvmlite")


def chosen(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, MODE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    for _ in tl.static_range(3):
        x = tl.where((x > y) & (y < 0.5), x - y, tl.where(x < -1.0, x / (y * y + 1.0), x + y))
    tl.store(out_ptr + offsets, x, mask=inside)


def test_masks_mean_the_same_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    made = Compiled.__init__

    def kept(self: Compiled, *given: object) -> None:
        made(self, *given)  # type: ignore[arg-type]
        texts.append(self._function.text)

    monkeypatch.setattr(Compiled, "__init__", kept)
    random = np.random.default_rng(5)
    x, y = (random.standard_normal(1000).astype(np.float32) for _ in range(2))
    results = []
    for mode in ("0", "always"):
        monkeypatch.setenv("TILEFW_JIT", mode)
        out = np.zeros_like(x)
        # MODE makes it another kernel: the steps of a loaded program are made once.
        tilefw.jit(chosen)[(2,)](x, y, out, 1000, BLOCK=512, MODE=len(results), target="amd-cdna3", num_warps=2)
        results.append(out.tobytes())
    assert results[0] == results[1]
    assert any("bitcast <" in text and "x i1> " in text for text in texts), "no mask was compiled"
