"""Kernels of these tests: one tile in, one value out, run by the reference interpreter."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilefw

sys.path.insert(0, str(Path(__file__).parent))  # for the modules that these tests share


def _ran(kernel: Any, inputs: Any, shape: tuple[int, ...], dtype: Any, **constexprs: Any) -> np.ndarray:
    out = np.zeros(shape, dtype)
    arrays = inputs if isinstance(inputs, tuple) else (inputs,)
    with tilefw.target("reference"):
        kernel[(1,)](*[np.ascontiguousarray(array) for array in arrays], out, **constexprs)
    return out


@pytest.fixture(scope="session")
def ran() -> Callable[..., np.ndarray]:
    """`ran(kernel, inputs, shape, dtype, **constexprs)`: what one program of the kernel stores behind its inputs."""
    return _ran
