"""Triton's place in this process is free before each test, and after it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import tilefw.triton


@pytest.fixture
def free_place() -> Iterator[None]:
    """Nobody is in Triton's place for one test. Triton, where another test imported it, comes back: a process loads it once."""
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "triton"}
    yield
    sys.modules.update(kept)


@pytest.fixture
def installed(free_place: None) -> Iterator[None]:
    """tilefw in Triton's place for one test."""
    tilefw.triton.install()
    yield
    tilefw.triton.uninstall()
