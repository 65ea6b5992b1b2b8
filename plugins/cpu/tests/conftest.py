"""Makes the tests' own modules importable, and runs kernels on the processor at hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tilefw


@pytest.fixture(autouse=True)
def target() -> Iterator[None]:
    """Kernels run on the processor."""
    with tilefw.target("cpu"):
        yield
