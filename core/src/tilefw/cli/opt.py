"""`tilefw opt FILE -p PIPELINE`: passes over IR text of any level."""

from __future__ import annotations


def main(summary: str, argv: list[str]) -> int:
    from tilefw.passes.opt import main as run

    return run(argv)
