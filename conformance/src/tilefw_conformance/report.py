"""report.jsonl: a header, a line per result, a footer with the counts; without its footer a report is not whole."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tilefw.api.errors import UsageError
from tilefw.runtime.loader import Target
from tilefw_conformance import EDITION
from tilefw_conformance.runner import OUTCOMES, Result

SCHEMA = "tilefw.report/1"


def header(target: Target, executor: str, level: str, seed: int | None, argv: Sequence[str]) -> dict[str, Any]:
    """What decides the results, beside the cases: versions, claims, options."""
    versions = {name: _version(name) for name in ("tilefw-core", "tilefw-conformance", "xdsl", "numpy")}
    plugin = None if target.plugin is None else {"distribution": target.plugin.distribution, "version": target.plugin.version}
    return {
        "record": "header", "schema": SCHEMA, "edition": EDITION, "target": target.name, "executor": executor, "level": level,
        "seed": seed, "argv": list(argv), "plugin": plugin,
        "versions": {"python": platform.python_version(), **versions},
        "capabilities": len(target.info.capabilities), "capability_digest": _digest(sorted(target.info.capabilities)),
    }


def result(one: Result) -> dict[str, Any]:
    """One case's line."""
    verdict = one.verdict
    worst = None if verdict is None else verdict.worst
    stages = [] if verdict is None else [
        {"name": s.name, "outcome": s.outcome, "seconds": round(s.seconds, 6)} for s in verdict.stages
    ]
    return {
        "record": "result", "case": one.case.id, "level": one.case.level, "kernel": one.case.kernel, "outcome": one.outcome,
        "parameters": dict(one.case.parameters), "seed": one.case.seed, "flags": list(one.case.flags), "stages": stages,
        "error_over_bound": None if verdict is None else _number(verdict.error_over_bound),
        "worst": None if worst is None else {"output": worst[0], "index": list(worst[1])},
        "missing": sorted(one.missing), "reason": one.reason,
        "error": None if one.error is None else {"code": getattr(one.error, "code", None), "message": str(one.error)},
        "reproduce": one.reproduce,
    }


def footer(results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The last line: how many of the results' records have each outcome."""
    counted = Counter(one["outcome"] for one in results)
    return {"record": "footer", "counts": {name: counted.get(name, 0) for name in OUTCOMES}, "cases": counted.total()}


def write(folder: str, records: Iterable[dict[str, Any]]) -> str:
    """Write `report.jsonl` into `folder`, whole or not at all; returns its path."""
    path = os.path.join(folder, "report.jsonl")
    temporary = f"{path}.{os.getpid()}.partial"
    try:
        os.makedirs(folder, exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record, allow_nan=False) + "\n" for record in records)
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError(f"the report cannot be written to {folder}: {error.strerror or error}", code="TFW0954") from None
    return path


def _number(value: float | None) -> float | str | None:
    """JSON has no infinities: an error where the bound is zero is written as the word."""
    return value if value is None or math.isfinite(value) else str(value)


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
