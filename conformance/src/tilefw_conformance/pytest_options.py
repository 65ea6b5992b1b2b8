"""The suite's options of pytest. Loaded in every pytest run of the environment, so it imports nothing heavy and adds little.

`--tilefw-target`, `--tilefw-level` and their like are always there; the short `--target`, `--level`, … only where the suite is on
the command line, after all conftests had their say: elsewhere the names belong to others.
"""

from __future__ import annotations

import argparse
from typing import Any

# Those of `tilefw conformance`, which explains them; values are read where the suite runs.
_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("target", {"action": "append", "default": [], "metavar": "T", "help": "a target of the conformance suite; repeatable"}),
    ("level", {"default": "core", "metavar": "L", "help": "conformance cases up to this level (default: core)"}),
    ("stage", {"default": "compare", "metavar": "S", "help": "stop after this stage"}),
    ("edition", {"metavar": "E", "help": "the suite as it was in an edition"}),
    ("pack", {"metavar": "NAME", "help": "another body of cases instead of the suite's own"}),
    ("jobs", {"metavar": "N", "help": "worker processes at most"}),
    ("time-limit", {"metavar": "SECONDS", "help": "of one case"}),
    ("memory-limit", {"metavar": "SIZE", "help": "of one worker"}),
    ("executor", {"metavar": "X", "help": "sim, hw or auto"}),
    ("checks", {"metavar": "C", "help": "checks of the simulator"}),
    ("budget", {"metavar": "N", "help": "executed instructions at most"}),
    ("numerics", {"metavar": "N", "help": "ieee or hw"}),
    ("seed", {"metavar": "N", "help": "inputs, and the order of execution when above 0"}),
    ("report", {"metavar": "DIR", "help": "write the suite's own report there"}),
    ("resume", {"action": "store_true", "help": "go on with the interrupted report in DIR"}),
    ("artifacts", {"action": "store_true", "help": "keep the machine code of cases that pass, too"}),
    ("audit-capabilities", {"action": "store_true", "help": "run what is not claimed, too"}),
)
_ALWAYS = ("target", "level")  # by their long names, in every pytest run


def _add(parser: Any, option: str, name: str, facts: dict[str, Any]) -> None:
    parser.getgroup("tilefw conformance suite").addoption(option, dest=f"tilefw_{name.replace('-', '_')}", **facts)


def pytest_addoption(parser: Any) -> None:
    for name, facts in _OPTIONS:
        if name in _ALWAYS:
            _add(parser, f"--tilefw-{name}", name, facts)


def pytest_load_initial_conftests(early_config: Any, parser: Any, args: list[str]) -> None:
    if not any("tilefw_conformance" in argument for argument in args):
        return
    for name, facts in _OPTIONS:
        if name not in _ALWAYS:
            _add(parser, f"--tilefw-{name}", name, facts)
        try:
            _add(parser, f"--{name}", name, facts)
        except (ValueError, argparse.ArgumentError):  # taken by another plugin: ours keeps its long name
            continue


# Marks the hook as `trylast` without importing pytest: pytest reads this attribute of hook functions.
pytest_load_initial_conftests.pytest_impl = {"trylast": True}  # type: ignore[attr-defined]
