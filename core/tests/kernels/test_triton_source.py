"""Every library kernel is Triton's as well, but for block pointers, which Triton 3.9 has no more: its front end takes the functions
as they stand, over a namespace in which only the language is exchanged. Skipped where Triton is not installed.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilefw.kernels.index import KERNELS
from tilefw.kernels.spec import load
from tilefw.testing.triton_text import triton_text


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "block_pointer_matmul"])
def test_tritons_front_end_takes_the_kernel(name: str) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    spec = load(name)
    launch = spec.prepare(spec.resolve({}), np.random.default_rng(0))
    text = triton_text(spec.kernel, {**launch.arguments, **launch.constexprs}, ("cuda", 80, 32), optimised=False)
    assert f"@{name}(" in text
