"""What these tests share: one tile in, one value out on the reference interpreter; the targets in turn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilefw
from tilefw.api.errors import KernelError
from tilefw.runtime.plugins.loader import find_target

GPUS = ("reference", "nvidia-sm80", "amd-cdna3")

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


@pytest.fixture(params=GPUS)
def target(request: Any) -> Iterator[str]:
    """The reference and a chip of each vendor's GPUs in turn, chosen for launches."""
    yield from _chosen(request.param)


@pytest.fixture(params=(*GPUS, "spatial-sdm1"))
def everywhere(request: Any) -> Iterator[str]:
    """As `target`, and a chip that is no GPU."""
    yield from _chosen(request.param)


def _chosen(name: str) -> Iterator[str]:
    try:
        find_target(name)
    except KernelError:
        pytest.skip(f"{name} is not installed")
    with tilefw.target(name):
        yield name
