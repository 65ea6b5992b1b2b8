"""A result in words: why it ended as it did, and numbers as people read them. The same in every file made of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilefw.api.capabilities import PROFILES
from tilefw_conformance.report.records import Record

EXECUTORS = {"sim": "simulated", "hw": "hardware", "ref": "reference", "auto": "simulated or hardware"}

MOST_PROFILES = 4


def why(one: Record) -> str:
    """One line: the cause of an outcome, as far as the result says it."""
    if one["outcome"] in ("xfail", "xpass"):
        return one["reason"]
    if one["missing"]:
        return f"needs {', '.join(one['missing'])}"
    if one["error"] is not None:
        return first_line(one["error"])
    return one["reason"] or (f"error {ratio(one['error_over_bound'])} of its bound" if one["error_over_bound"] is not None else "")


def ratio(value: Any) -> str:
    """An error over its bound: three digits, or the word."""
    return str(value) if isinstance(value, str) else f"{value:.3g}"


def profiles(claimed: Sequence[str]) -> list[str]:
    """The profiles of a target's claims, few enough for a line."""
    if len(claimed) <= MOST_PROFILES:
        return [name.removeprefix("tile-") for name in claimed]
    return ["all profiles" if len(claimed) == len(PROFILES) else f"{len(claimed)} of {len(PROFILES)} profiles"]


def worst(one: Record) -> str:
    """The worst element: where it is, what was found, and what was due within which bound; empty where nothing was compared."""
    found = one["worst"]
    if found is None:
        return ""
    bound = f" ± {ratio(found['bound'])}" if found["bound"] else ""
    return f"{found['output']}{found['index']}: {found['value']}, expected {found['expected']}{bound}"


def first_line(error: Record) -> str:
    """An error's message without the code that its rendering begins with."""
    line = error["message"].partition("\n")[0]
    return line.removeprefix(f"error[{error['code']}]: ")
