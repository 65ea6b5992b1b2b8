"""The suite's options of pytest. Loaded in every pytest run of the environment, so it imports nothing heavy and adds little.

`--tilefw-target` and `--tilefw-level` are always there; the short `--target` and `--level` only where the suite is on the command
line, after all conftests had their say: elsewhere the names belong to others.
"""

from __future__ import annotations

import argparse
from typing import Any

_OPTIONS = (
    ("target", {"action": "append", "default": [], "metavar": "T", "help": "a target of the conformance suite; repeatable"}),
    ("level", {"default": "core", "metavar": "L", "help": "conformance cases up to this level (default: core)"}),
)


def pytest_addoption(parser: Any) -> None:
    for name, facts in _OPTIONS:
        parser.getgroup("tilefw conformance suite").addoption(f"--tilefw-{name}", dest=f"tilefw_{name}", **facts)


def pytest_load_initial_conftests(early_config: Any, parser: Any, args: list[str]) -> None:
    if not any("tilefw_conformance" in argument for argument in args):
        return
    for name, facts in _OPTIONS:
        try:
            parser.getgroup("tilefw conformance suite").addoption(f"--{name}", dest=f"tilefw_{name}", **facts)
        except (ValueError, argparse.ArgumentError):  # taken by another plugin: ours keeps its long name
            continue


# Marks the hook as `trylast` without importing pytest: pytest reads this attribute of hook functions.
pytest_load_initial_conftests.pytest_impl = {"trylast": True}  # type: ignore[attr-defined]
