"""What the page knows of the reports, packed: a column for each field, each text once, deflated.

Cells of one column are alike and lie together, which is what deflate wants: a thousand cases on six targets stay below 300 KB with
every bound, worst element, time and command. Numbers are rounded to what the page shows; the report itself has them whole.
`model.js` reads what is packed here.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import shlex
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tilefw.api.errors import UsageError
from tilefw_conformance.outcomes import GOOD, OUTCOMES, UNFINISHED
from tilefw_conformance.report import totals
from tilefw_conformance.report.difference import difference
from tilefw_conformance.report.headroom import TIGHT, is_rounding
from tilefw_conformance.report.reading import Report
from tilefw_conformance.report.records import Record

_TIME_BASE = 40  # "(": the characters from here on are free of quotes, and of backslashes for times below 400 s
TARGET_MARK = "\x01"  # stands for the target's name in a command, so that all targets of a case share one text


class _Table:
    """Values that many cells share, each once."""

    def __init__(self, *first: Any) -> None:
        self.values: list[Any] = []
        self._index: dict[str, int] = {}
        for value in first:
            self(value)

    def __call__(self, value: Any) -> int:
        key = json.dumps(value, sort_keys=True)
        if key not in self._index:
            self._index[key] = len(self.values)
            self.values.append(value)
        return self._index[key]


class _Tables:
    def __init__(self) -> None:
        self.texts, self.sets, self.paths, self.names, self.notes = _Table(""), _Table([]), _Table([]), _Table([]), _Table()

    def plain(self) -> dict[str, list[Any]]:
        tables = ("texts", "sets", "paths", "names", "notes")
        return {name: getattr(self, name).values for name in tables}


def payload(reports: Sequence[Report], against: Sequence[Report] = ()) -> dict[str, Any]:
    """The data of `page`, as plain JSON values."""
    tables = _Tables()
    cases: dict[str, Record] = {}
    for report in reports:
        cases |= report.cases
    order = sorted(cases.values(), key=lambda one: one["group"])  # within a group in the order of its file
    targets = [_target(report, index, facts) for index, report in enumerate(reports) for facts in report.header["targets"]]
    _check_once(targets)
    columns = []
    for target in targets:
        results = {one["case"]: one for one in reports[target["report"]].of(target["name"])}
        columns.append(_columns([results.get(case["case"]) for case in order], tables))
    data = {
        "outcomes": OUTCOMES, "good": sorted(GOOD), "unfinished": sorted(UNFINISHED), "tight": TIGHT,
        "reports": [_run(report) for report in reports], "targets": targets,
        "cases": [_case(case, tables) for case in order], "results": columns, **tables.plain(),
    }
    return {**data, "against": _against(reports, against, [case["case"] for case in order])} if against else data


def pack(data: Mapping[str, Any]) -> str:
    """JSON, deflated (RFC 1951), in base 85 with a comma for `<`, so that it cannot end the script element that holds it."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9)
    packed = packer.compress(text.encode("utf-8", "backslashreplace")) + packer.flush()
    return base64.b85encode(packed).decode().replace("<", ",")


def _check_once(targets: Sequence[Mapping[str, Any]]) -> None:
    names = [target["name"] for target in targets]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"two of the reports hold the target {name!r}", code="TFW0981", help="show an older report of it with --against",
            )


def _target(report: Report, index: int, facts: Record) -> dict[str, Any]:
    plugin = facts["plugin"]
    return {
        "name": facts["name"], "vendor": facts["vendor"], "chip": facts["chip"], "executor": facts["executor"],
        "plugin": "" if plugin is None else f"{plugin['distribution']} {plugin['version']}", "profiles": facts["profiles"],
        "capabilities": facts["capabilities"], "report": index, "counts": totals.counts(report.of(facts["name"])),
    }


def _run(report: Report) -> dict[str, Any]:
    names = ("edition", "level", "stage", "seed", "expression", "options", "versions", "started")
    command = shlex.join(["tilefw", "conformance", *report.header["argv"]])
    known = {name: report.header[name] for name in names}
    return {**known, "command": command, "digest": report.footer["digest"], "seconds": report.footer["seconds"]}


def _case(case: Record, tables: _Tables) -> list[Any]:
    fields = ("bugType", "description", "effect")
    notes = [tables.notes([flag, *(case["notes"][flag][name] for name in fields)]) for flag in case["flags"]]
    plain = [case[name] for name in ("case", "group", "level", "kernel", "parameters", "seed")]
    return [*plain, notes, tables.sets(case["requires"])]


# Each field of a result in a column of its own: how it is packed.
_COLUMNS: Mapping[str, Callable[[Record, _Tables], Any]] = {
    "outcome": lambda one, tables: OUTCOMES.index(one["outcome"]),
    "ratio": lambda one, tables: _rounded(one["error_over_bound"], 3),
    "rounding": lambda one, tables: int(is_rounding(one)),
    "worst": lambda one, tables: _worst(one, tables),
    "path": lambda one, tables: tables.paths([[stage["name"], stage["outcome"], stage["note"]] for stage in one["stages"]]),
    "times": lambda one, tables: "".join(_time(stage["seconds"]) for stage in one["stages"]),
    "needs": lambda one, tables: tables.sets(one["required"]),
    "missing": lambda one, tables: tables.sets(one["missing"]),
    "reason": lambda one, tables: tables.texts(one["reason"]),
    "code": lambda one, tables: tables.texts((one["error"] or {}).get("code") or ""),
    "error": lambda one, tables: tables.texts((one["error"] or {}).get("message", "")),
    "artifact": lambda one, tables: tables.texts(one["artifact"] or ""),
    "resources": lambda one, tables: _resources(one["resources"], tables),
    "command": lambda one, tables: tables.texts(one["reproduce"].replace(one["target"], TARGET_MARK)),
    "attempts": lambda one, tables: one["attempts"],
}


def _columns(results: Sequence[Record | None], tables: _Tables) -> dict[str, list[Any]]:
    columns = {name: [None if one is None else packed(one, tables) for one in results] for name, packed in _COLUMNS.items()}
    return {**columns, **{name: _spread(columns[name]) for name in ("worst", "resources")}}


def _spread(cells: Sequence[list[Any] | None]) -> list[list[Any]]:
    """Cells that are lists as a column for each place, None where a list is shorter."""
    return [list(column) for column in itertools.zip_longest(*(cell or [None] for cell in cells))]


def _worst(one: Record, tables: _Tables) -> list[Any] | None:
    """Output, index, expected, bound, and what was found: of a pass only on which side, since error over bound says how far."""
    found = one["worst"]
    if found is None:
        return None
    place = [tables.texts(found["output"]), found["index"]]
    side = _side(one) if one["outcome"] == "pass" and not is_rounding(one) else None
    if side is None:
        return [*place, found["expected"], _rounded(found["bound"], 3), [found["value"]]]
    return [*place, _rounded(found["expected"], _digits(found)), _rounded(found["bound"], 3), *([side] if side else [])]


def _digits(found: Record) -> int:
    """As many significant digits of the expected value as reach a thousandth of its bound."""
    expected, bound = abs(float(found["expected"])), float(found["bound"])
    return 17 if not expected or not bound else min(17, max(3, 4 + math.ceil(math.log10(expected / bound))))


def _side(one: Record) -> int | None:
    """-1, 0 or 1: found is expected, plus so many times the ratio times the bound; None where the numbers do not say that."""
    found, ratio = one["worst"], one["error_over_bound"]
    numbers = (found["value"], found["expected"], found["bound"], ratio)
    if not all(isinstance(number, int | float) for number in numbers):
        return None
    if abs(found["value"]) <= found["bound"]:  # such a value has no digit left after rounding to its bound: 0.0 became -4e-49
        return None
    error = found["value"] - found["expected"]
    side = (error > 0) - (error < 0)
    # The bound may be below what doubles near the value resolve.
    near = abs(abs(error) - ratio * found["bound"]) <= 0.01 * abs(error) + 4 * math.ulp(float(found["value"]))
    return side if near else None


def _resources(found: Record, tables: _Tables) -> list[Any]:
    """Which names (few cases have others), and the number of each."""
    flat: dict[str, Any] = {}
    for name, value in found.items():
        flat |= {f"{name}: {part}": n for part, n in value.items()} if isinstance(value, dict) else {name: value}
    return [tables.names([name.replace("_", " ") for name in flat]), *(_rounded(value, 3) for value in flat.values())]


def _time(seconds: float) -> str:
    """A stage's time as one character: twenty steps a decade from a microsecond, which is closer than it repeats."""
    return chr(_TIME_BASE + max(0, round(20 * math.log10(max(seconds, 1e-6) / 1e-6))))


def _rounded(value: Any, digits: int) -> Any:
    """To significant digits; a float that is a whole number becomes one, which is shorter."""
    if not isinstance(value, float):
        return value
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _against(reports: Sequence[Report], against: Sequence[Report], cases: Sequence[str]) -> dict[str, Any]:
    """For each target the older outcome of every case, by column as above, what is there no more, and what else differs."""
    old: list[dict[str, list[Any]] | None] = []
    deleted: list[list[Any]] = []
    conditions: list[str] = []
    for report in reports:
        for target in report.targets:
            before = next((one for one in against if target in one.targets), None)
            old.append(None if before is None else _old(before, target, cases))
            if before is not None:
                found = difference(before, report)
                deleted += [[len(old) - 1, one.case, one.old] for one in found.of("D") if one.target == target]
                conditions += [text for text in found.conditions if text not in conditions]
    if not any(old):
        raise UsageError(
            "none of the older reports has a target of the page", code="TFW0981",
            note=f"the page shows {', '.join(name for report in reports for name in report.targets)}",
        )
    return {"old": old, "deleted": deleted, "conditions": conditions, "started": [one.header["started"] for one in against]}


def _old(report: Report, target: str, cases: Iterable[str]) -> dict[str, list[Any]]:
    found = [report.results.get((target, case)) for case in cases]
    return {
        "outcome": [None if one is None else OUTCOMES.index(one["outcome"]) for one in found],
        "ratio": [None if one is None else _rounded(one["error_over_bound"], 3) for one in found],
    }
