"""Writes a plugin's expectations anew from what a run found: failures come in, what passes now goes out.

A new entry says `issue: TODO`, which the suite refuses until somebody puts an issue's address there: a failure that nobody looks
after is not expected, only forgotten.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from tilefw.api.errors import UsageError
from tilefw.runtime import atomic_write
from tilefw_conformance import EDITION
from tilefw_conformance.expectations import Expectation
from tilefw_conformance.report.wording import first_line
from tilefw_conformance.workers.protocol import Ready

_EXPECTED = frozenset({"xfail", "fail", "error", "timeout", "overclaimed"})
_TODO = "TODO"


def update(ready: Ready, results: Sequence[Mapping[str, Any]], file: str | None) -> str:
    """Write the expectations of the target's plugin into `file`, or where the plugin keeps them; says what changed.

    Raises UsageError TFW0970 where that is not a file of a source tree, or cannot be written.
    """
    path = file or ready.file
    if path is None:
        raise UsageError(
            "the plugin's expectations are not in a source tree, so they cannot be updated there", code="TFW0970",
            help="install it editable, or name a file: --update-expectations FILE",
        )
    old, new = ready.expectations, renewed(ready.expectations, results, ready.target["name"])
    _write(path, new)
    added = sum(one.issue == _TODO for one in new)
    gone = sum(one.case not in {n.case for n in new} for one in old)
    return f"{path}: {added} new, {gone} gone" + (f"; put the address of an issue in place of each {_TODO}" if added else "")


def renewed(old: Sequence[Expectation], results: Sequence[Mapping[str, Any]], target: str) -> tuple[Expectation, ...]:
    """`old` as `results` have it. An entry none of whose cases ran stays; one all of whose cases failed stays as it is, and holds
    for this edition too; of any other, only the cases that failed stay, by their ids."""
    failed = {one["case"]: one for one in results if one["outcome"] in _EXPECTED}
    ran = [one["case"] for one in results]
    kept: list[Expectation] = []
    for entry in old:
        covered = [case for case in ran if entry.covers(case, target)]
        failing = [case for case in covered if case in failed]
        renewal = replace(entry, until=EDITION) if entry.expired else entry
        if not covered:
            kept.append(entry)
        elif len(failing) == len(covered):
            kept.append(renewal)
        else:
            kept += [replace(renewal, case=_literal(case)) for case in failing]
    known = {case for case in failed if any(entry.covers(case, target) for entry in kept)}
    new = [
        Expectation(_literal(case), target, _reason(one), _TODO, EDITION) for case, one in failed.items() if case not in known
    ]
    return (*kept, *sorted(new, key=lambda entry: entry.case))


def _reason(record: Mapping[str, Any]) -> str:
    return record["outcome"] if record["error"] is None else first_line(record["error"])


def _literal(case: str) -> str:
    """A glob that fits this id alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in case)


def _write(path: str, entries: Sequence[Expectation]) -> None:
    """The comment lines on top of the file stay."""
    listed = [
        {"case": one.case, **({} if one.targets == "*" else {"targets": one.targets}), "reason": one.reason, "issue": one.issue,
         "until": one.until}
        for one in entries
    ]
    text = yaml.safe_dump({"expectations": listed}, sort_keys=False, allow_unicode=True, width=1000)
    try:
        atomic_write.write(path, _comments(path) + text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}", code="TFW0970") from None


def _comments(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    count = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    return "".join(lines[:count])
