"""The lines of a report (`tilefw.report/1`) before the footer: what ran, the cases as their files say, how each ended."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from tilefw.api.capabilities import profiles
from tilefw.api.errors import KernelError
from tilefw_conformance import EDITION
from tilefw_conformance.outcomes import GOOD

if TYPE_CHECKING:  # a report is read, checked and shown without the compiler
    from tilefw.api.artifact import Artifact
    from tilefw.kernels.verify import Verdict
    from tilefw.runtime.plugins.loader import Target
    from tilefw_conformance.case import Case
    from tilefw_conformance.expectations import Expectation

SCHEMA = "tilefw.report/1"
FILE = "report.jsonl"  # in the folder of a report
ARTIFACT_LIMIT = 4096  # characters of one artifact's text: a report of thousands of failures stays one that opens
_DISTRIBUTIONS = ("tilefw-core", "tilefw-conformance", "xdsl", "numpy")

Record = dict[str, Any]


def target(one: Target, executor: str, expectations: Iterable[Expectation] = ()) -> Record:
    """A target's entry in the header; `executor` is `sim`, `hw` or `ref`, since a simulated result is not one of hardware."""
    plugin = None if one.plugin is None else {"distribution": one.plugin.distribution, "version": one.plugin.version}
    known = [[e.case, e.targets, e.reason, e.issue, e.until] for e in expectations]
    return {
        "name": one.name, "vendor": one.info.vendor, "chip": one.info.chip, "executor": executor, "plugin": plugin,
        "capabilities": len(one.info.capabilities), "capability_digest": digest(sorted(one.info.capabilities))[:16],
        "expectation_digest": digest(sorted(known))[:16], "profiles": list(profiles(one.info.capabilities)),
    }


def header(
    targets: Sequence[Record], *, level: str, stage: str = "compare", seed: int | None = None, expression: str | None = None,
    options: Mapping[str, Any] | None = None, argv: Sequence[str] = (), edition: str = EDITION,
) -> Record:
    """What decides the results beside the cases. `options` holds checks, budget, numerics, launch keywords, pack and
    audit where the user said them."""
    return {
        "kind": "header", "schema": SCHEMA, "edition": edition, "targets": list(targets),
        "target": targets[0]["name"] if len(targets) == 1 else None,
        "level": level, "stage": stage, "seed": seed, "expression": expression, "options": plain(options or {}),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _DISTRIBUTIONS}},
        "argv": list(argv), "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def case(one: Case) -> Record:
    """A case as its file says it, once a report, however many targets run it."""
    return {
        "kind": "case", "case": one.id, "level": one.level, "kernel": one.kernel, "parameters": plain(one.parameters),
        "seed": one.seed, "flags": list(one.flags), "notes": {flag: dict(one.notes[flag]) for flag in one.flags},
        "group": one.group, "requires": sorted(one.requires),
    }


def result(
    one: Case, target: str, outcome: str, *, verdict: Verdict | None = None, stages: Iterable[Record] = (),
    missing: Iterable[str] = (), reason: str = "", error: BaseException | None = None, attempts: int = 1, seconds: float = 0.0,
    reproduce: str = "", artifacts: bool = False,
) -> Record:
    """How `one` ended on `target`. Without a verdict nothing of it came back: its worker died, or its time was up; then
    `stages` are those that it is known to have come to.

    The artifact's text is kept where the outcome is not good, or where `artifacts` asks for it.
    """
    artifact = None if verdict is None else verdict.artifact
    return {
        "kind": "result", "case": one.id, "target": target, "level": one.level, "kernel": one.kernel, "outcome": outcome,
        "stages": list(stages) if verdict is None else [stage(s.name, s.outcome, s.seconds, s.note) for s in verdict.stages],
        "required": [] if verdict is None else sorted(verdict.required), "missing": sorted(missing),
        "error_over_bound": None if verdict is None else number(verdict.error_over_bound),
        "worst": None if verdict is None else _worst(verdict), "reason": reason, "error": _error(error),
        "artifact": _text(artifact) if artifact is not None and (artifacts or outcome not in GOOD) else None,
        "resources": {} if artifact is None else _resources(artifact),
        "counters": {} if verdict is None else plain(verdict.counters),
        "attempts": attempts, "seconds": round(seconds, 6), "reproduce": reproduce,
    }


def digest(value: Any) -> str:
    """sha256 over `value` as JSON in one canonical spelling."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).hexdigest()


def number(value: Any) -> Any:
    """JSON has no infinities and no NaN: they are written as the words `inf`, `-inf` and `nan`."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def plain(value: Any) -> Any:
    """`value` as JSON has it: NumPy's scalars as Python's, tuples as lists, names of keys as strings."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if hasattr(value, "item"):
        value = value.item()
    return number(value) if value is None or isinstance(value, str | bool | int | float) else str(value)


def stage(name: str, outcome: str, seconds: float, note: str = "") -> Record:
    """One of a result's stages."""
    return {"name": name, "outcome": outcome, "seconds": round(seconds, 6), "note": note}


def _worst(verdict: Verdict) -> Record | None:
    if verdict.worst is None:
        return None
    output, index = verdict.worst
    found = verdict.comparisons[output]
    return {
        "output": output, "index": list(index), "value": plain(found.actual), "expected": plain(found.expected),
        "bound": plain(found.bound),
    }


def _error(error: BaseException | None) -> Record | None:
    if error is None:
        return None
    return {"code": error.code if isinstance(error, KernelError) else None, "message": str(error)}


def _text(artifact: Artifact) -> str:
    if len(artifact.text) <= ARTIFACT_LIMIT:
        return artifact.text
    kept = artifact.text[:ARTIFACT_LIMIT].rpartition("\n")[0]
    return f"{kept}\n… {len(artifact.text) - len(kept)} more characters\n"


def _resources(artifact: Artifact) -> Record:
    known = artifact.resources
    facts = {
        "registers": known.registers, "spills": known.spills, "shared_bytes": known.shared_bytes,
        "scratch_bytes": known.scratch_bytes, "occupancy": known.occupancy,
        "instructions": None if known.instructions is None else sum(known.instructions.values()),
    }
    return {name: plain(value) for name, value in facts.items() if value is not None}


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
