"""Failures that a plugin knows of, kept in its own wheel: strict, with a reason and an issue, and an end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any

from tilefw.api.errors import CodeError, KernelError
from tilefw_conformance import EDITION
from tilefw_conformance.document import check, parse
from tilefw_conformance.edition import numbers

Record = dict[str, Any]

SCHEMA: Mapping[str, Any] = {
    "$id": "tilefw.expectations/1",
    "type": "object", "additionalProperties": False, "required": ["expectations"],
    "properties": {
        "expectations": {
            "type": "array",
            "items": {
                "type": "object", "additionalProperties": False, "required": ["case", "reason", "issue", "until"],
                "properties": {
                    "case": {"type": "string", "description": "a glob over case ids"},
                    "targets": {"type": "string", "description": "a glob over target names; all of the plugin's without it"},
                    "reason": {"type": "string"},
                    "issue": {"type": "string", "pattern": "https?://\\S+", "description": "the address of the issue"},
                    "until": {"type": "string", "pattern": "[0-9]+\\.[0-9]+", "description": "the last edition it holds for"},
                },
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """Cases that are known to fail on some targets, until an edition of the suite."""

    case: str
    targets: str
    reason: str
    issue: str
    until: str

    def covers(self, case_id: str, target: str) -> bool:
        return fnmatchcase(case_id, self.case) and fnmatchcase(target, self.targets)

    @property
    def expired(self) -> bool:
        return numbers(self.until) < numbers(EDITION)


def read(text: str, file: str) -> tuple[Expectation, ...]:
    """The expectations of one file; raises CodeError with the line."""
    document = parse(text, file)
    check(document, SCHEMA)
    return tuple(
        Expectation(raw["case"], raw.get("targets", "*"), raw["reason"], raw["issue"], raw["until"])
        for raw in document.data["expectations"]
    )


def of_plugin(said: Iterable[Mapping[str, Any]]) -> tuple[Expectation, ...]:
    """Those named by the results of a plugin's `tilefw_conformance` hook, as `"package:file.yaml"`."""
    found: list[Expectation] = []
    for facts in said:
        location = facts.get("expectations")
        if location is None:
            continue
        package, name = located(location)
        try:
            text = (files(package) / name).read_text("utf-8")
        except (OSError, ImportError, UnicodeDecodeError) as error:
            raise CodeError(f"the expectations {location} cannot be read: {error}", code="TFW0953") from None
        found += read(text, f"{package}/{name}")
    return tuple(found)


def located(location: object) -> tuple[str, str]:
    """Package and name of `"package:name"`, as the hook names files and folders."""
    package, colon, name = str(location).partition(":")
    if not colon or not package or not name:
        raise CodeError(f"{location!r}, from the hook tilefw_conformance, is not 'package:name'", code="TFW0953")
    return package, name


def source_of(facts: Mapping[str, Any]) -> str | None:
    """The expectation file that the hook names, where it belongs to a source tree: not to a copy that pip installed."""
    if facts.get("expectations") is None:
        return None
    package, name = located(facts["expectations"])
    path = Path(str(files(package) / name))
    return str(path) if path.parent.is_dir() and not {"site-packages", "dist-packages"} & set(path.parts) else None


def expected(record: Record, expectations: Iterable[Expectation]) -> Record:
    """The result's record as the plugin's expectations have it: a failure that is known is `xfail`, a pass that is none `xpass`."""
    if record["outcome"] in ("unsupported", "over-capacity"):
        return record
    known = next((e for e in expectations if e.covers(record["case"], record["target"])), None)
    if known is None:
        return record
    outcome = "xpass" if record["outcome"] == "pass" else "xfail"
    return {**record, "outcome": outcome, "reason": f"{known.reason}, {known.issue}"}


def faults(expectations: Iterable[Expectation], case_ids: Iterable[str], target: str) -> tuple[KernelError, ...]:
    """What is wrong with the expectations themselves: globs that name no case, and entries past their edition."""
    ids = tuple(case_ids)
    errors = []
    for expectation in expectations:
        if not fnmatchcase(target, expectation.targets):
            continue
        if expectation.expired:
            message = f"the expectation {expectation.case!r} ended with edition {expectation.until}"
        elif not any(expectation.covers(case_id, target) for case_id in ids):
            message = f"the expectation {expectation.case!r} names no case"
        else:
            continue
        errors.append(CodeError(message, code="TFW0953", help="`tilefw conformance --update-expectations` writes the file anew"))
    return tuple(errors)
