"""`triton.profiler.viewer`: profiles of nothing, since nothing is recorded."""

from __future__ import annotations

import sys
from typing import Any


def parse(
    metrics: list[str], filename: str, include: str | None = None, exclude: str | None = None, threshold: float | None = None
) -> tuple[None, list[str]]:
    """No tree and no metrics, whatever the file: none was written."""
    return None, []


def print_tree(gf: Any, metrics: list[str], depth: int = 100, format: str | None = None, print_sorted: bool = False) -> None:
    """Say on standard error that there is nothing to show."""
    print("no profile: nothing was recorded", file=sys.stderr)
