"""A result told to a person: the outcome, its cause, and the command that runs the case again."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any

from tilefw.runtime.plugins.local_plugins import MODULES
from tilefw_conformance.case import Case
from tilefw_conformance.packs import PACKS


def message(record: Mapping[str, Any]) -> str:
    """A result's record in several lines."""
    reason = f" ({record['reason']})" if record["reason"] else ""
    lines = [f"{record['case']} on {record['target']}: {record['outcome']}{reason}"]
    if record["missing"]:
        lines.append(f"needs {', '.join(record['missing'])}, which the target does not claim")
    if record["error"] is not None:
        lines.append(record["error"]["message"])
    lines.append(f"run it again: {record['reproduce']}")
    return "\n".join(lines)


def reproduce(case: Case, target: str, execution: Mapping[str, Any], keywords: Mapping[str, Any]) -> str:
    """The command that runs this case alone; for a kernel of the library the one that every user has."""
    options = [f"--{name} {shlex.quote(str(value))}" for name, value in execution.items() if name != "seed"]
    options += [f"--option {name}={shlex.quote(str(value))}" for name, value in keywords.items()]
    if ":" in case.kernel:
        owner = case.kernel.partition(":")[0]
        chosen = f"{f'--pack {owner} ' if owner in PACKS else ''}--level {case.level} -k {shlex.quote(case.id)}"
        return " ".join([f"{_tilefw()} conformance --target {target} {chosen}", *options])
    parameters = [f"--param {name}={shlex.quote(str(value))}" for name, value in case.parameters.items()]
    seed = execution.get("seed", case.seed)
    return " ".join([f"{_tilefw()} run {case.kernel} --target {target} --seed {seed}", *options, *parameters])


def _tilefw() -> str:
    """The command, with the plugins that are there only because somebody named them."""
    named = [word.strip() for word in os.environ.get(MODULES, "").split(",") if word.strip()]
    return " ".join(["tilefw", *(f"-p {shlex.quote(word)}" for word in named)])
