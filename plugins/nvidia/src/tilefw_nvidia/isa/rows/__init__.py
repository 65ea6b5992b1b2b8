"""The rows of the table, one file a chapter of the PTX ISA's "Instruction Set"."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from tilefw_nvidia.isa.model import Form

CHAPTERS = (
    "integer", "carry", "bits", "comparison", "floating", "functions", "half", "conversion", "movement", "memory", "atomics",
    "multimem", "copies", "warp", "matrix", "warpgroup", "video", "control", "mbarrier", "clusters", "bulk", "tensor",
)


@cache
def forms() -> tuple[Form, ...]:
    """Every form of every chapter, in the order of the chapters and of their files."""
    chapters = [import_module(f"{__name__}.{name}") for name in CHAPTERS]
    return tuple(form for chapter in chapters for form in chapter.CHAPTER.forms)
