"""The suite's options of pytest. Loaded in every pytest run of the environment, so it imports nothing heavy and adds little.

`--tilefw-target`, `--tilefw-level` and their like are always there; the short `--target`, `--level`, … only where the suite is on
the command line, after all conftests had their say: elsewhere the names belong to others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
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
    ("option", {"action": "append", "default": [], "metavar": "K=V", "help": "a launch keyword for every case; repeatable"}),
    ("report", {"metavar": "DIR", "help": "write the suite's own report there"}),
    ("resume", {"action": "store_true", "help": "go on with the interrupted report in DIR"}),
    ("artifacts", {"action": "store_true", "help": "keep the machine code of cases that pass, too"}),
    ("audit-capabilities", {"action": "store_true", "help": "also run cases that need unclaimed capabilities"}),
)
_NO_PASS = ("unsupported", "over-capacity", "xfailed")
_ALWAYS = ("target", "level")  # by their long names, in every pytest run


def _add(parser: Any, option: str, name: str, facts: dict[str, Any]) -> None:
    parser.getgroup("tilefw conformance suite").addoption(option, dest=f"tilefw_{name.replace('-', '_')}", **facts)


def pytest_addoption(parser: Any) -> None:
    for name, facts in _OPTIONS:
        if name in _ALWAYS:
            _add(parser, f"--tilefw-{name}", name, facts)


def pytest_load_initial_conftests(early_config: Any, parser: Any, args: list[str]) -> None:
    if not _is_asked_for(args):
        return
    for name, facts in _OPTIONS:
        if name not in _ALWAYS:
            _add(parser, f"--tilefw-{name}", name, facts)
        try:
            _add(parser, f"--{name}", name, facts)
        except (ValueError, argparse.ArgumentError):  # taken by another plugin: ours keeps its long name
            continue


def pytest_collection(session: Any) -> None:
    """What is wrong with the options is told before anything is collected: in a line, and not as a test file's fault."""
    config = session.config
    if hasattr(config, "workerinput") or not _is_asked_for(map(str, config.invocation_params.args)):
        return
    import pytest

    if not config.getoption("tilefw_target"):
        raise pytest.UsageError("the conformance suite needs a target: give --target T, with a name that `tilefw targets` lists")
    if not config.pluginmanager.hasplugin("dsession"):
        from tilefw_conformance.pytest_session import session_of

        session_of(config)
    elif config.getoption("tilefw_report", None):
        raise pytest.UsageError("--report is written by one process: use --jobs, the number of the suite's workers, instead of -n")


def pytest_sessionfinish(session: Any) -> None:
    """A run in which every case was refused or excused is not a good one: it ends as one without tests does, with status 5."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.exitstatus != 0 or reporter is None or not _is_asked_for(map(str, session.config.invocation_params.args)):
        return
    if any(reporter.stats.get(outcome) for outcome in _NO_PASS) and not reporter.stats.get("passed"):
        session.exitstatus = 5


def pytest_unconfigure(config: Any) -> None:
    if (module := sys.modules.get("tilefw_conformance.pytest_session")) is not None:
        module.close(config)


def _is_asked_for(arguments: Iterable[str]) -> bool:
    return any("tilefw_conformance" in argument for argument in arguments)


# pytest reads this attribute of hook functions, so that they are marked without importing it.
pytest_collection.pytest_impl = {"tryfirst": True}  # type: ignore[attr-defined]
pytest_load_initial_conftests.pytest_impl = {"trylast": True}  # type: ignore[attr-defined]
