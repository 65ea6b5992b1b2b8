"""The rows of the table, one file a chapter of the PTX ISA's "Instruction Set"."""

from __future__ import annotations

import importlib

CHAPTERS = (
    "integer",
    "carry",
    "bits",
    "comparison",
    "floating",
    "functions",
    "half",
    "conversion",
    "movement",
    "memory",
    "atomics",
    "copies",
    "warp",
    "matrix",
    "control",
)


def load_rows() -> None:
    """Import every chapter: importing is what fills the table."""
    for chapter in CHAPTERS:
        importlib.import_module(f"{__name__}.{chapter}")
