"""`tilefw opt FILE -p PIPELINE`: passes over IR text of any level."""

from __future__ import annotations


def main(summary: str, argv: list[str]) -> int:
    from tilefw.passes.opt import main as run
    from tilefw.runtime.loader import registry

    plugins = registry()
    return run(argv, plugins.collect("tilefw_passes"), plugins.collect("tilefw_dialects"))
