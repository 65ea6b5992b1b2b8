"""A report back from its file, only if it is whole: every line follows the schema, and what the footer says is so.

A digest is not a signature: it shows what was edited, torn or joined by accident or by hand, not who made the report.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from glob import escape, glob
from importlib.resources import files
from typing import Any

from tilefw.api.errors import CodeError, Place, UsageError
from tilefw_conformance.document import faults
from tilefw_conformance.report import totals
from tilefw_conformance.report.records import FILE, SCHEMA, Record

KINDS = ("header", "case", "result", "footer")


@dataclass(frozen=True, slots=True)
class Report:
    """One run's records: `cases` by id; `results` by (target, case), in the order in which they came."""

    file: str
    header: Record
    cases: Mapping[str, Record]
    results: Mapping[tuple[str, str], Record]
    footer: Record

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(one["name"] for one in self.header["targets"])

    def facts(self, target: str) -> Record:
        """The header's entry of a target."""
        return next(one for one in self.header["targets"] if one["name"] == target)

    def of(self, target: str) -> list[Record]:
        """The results of one target, in the order of the cases."""
        order = {name: index for index, name in enumerate(self.cases)}
        return sorted((one for key, one in self.results.items() if key[0] == target), key=lambda one: order[one["case"]])


def all_of(paths: Iterable[str]) -> list[Report]:
    """The reports at `paths`; of a folder that a run on several targets named, the report of each. Raises as `read` does."""
    return [read(one) for path in paths for one in _several(path) or [path]]


def _several(path: str) -> list[str]:
    """The folders with reports in a folder that has none of its own."""
    if not os.path.isdir(path) or os.path.exists(os.path.join(path, FILE)):
        return []
    return sorted(os.path.dirname(found) for found in glob(os.path.join(escape(path), "*", FILE)))


def read(path: str) -> Report:
    """The report in a file, or in the folder that `--report` named.

    Raises UsageError TFW0976 where there is none, and CodeError with the line: TFW0976 for a line that is not a record, TFW0977 for
    a report that ends before its footer, TFW0978 for one whose footer does not fit its lines, TFW0979 for records that are there
    twice, TFW0980 for another version of the schema.
    """
    there = _several(path)
    path = os.path.join(path, FILE) if os.path.isdir(path) else path
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise UsageError(
            f"no report can be read from {path}: {error.strerror or error}", code="TFW0976",
            help=f"there are {', '.join(there)}" if there else None,
        ) from None
    return parse(data, path)


def parse(data: bytes, file: str) -> Report:
    """The report in `data`; `file` is its name in errors, which are those of `read`."""
    lines = data.split(b"\n")
    torn = lines.pop()
    records = [record_of(line, Place(file, number)) for number, line in enumerate(lines, 1)]
    _check_version(records, file)
    for number, record in enumerate(records, 1):
        check_form(record, Place(file, number))
    if torn or not records or records[-1]["kind"] != "footer":
        raise CodeError(
            f"{file} ends before its footer: the run was interrupted", code="TFW0977",
            place=Place(file, len(lines) + bool(torn)) if data else None,
            help="`--resume` with the options of that run completes it",
        )
    report = _collected(records, file)
    for message in _contradictions(report, data):
        raise CodeError(f"{file} is not as a run writes it: {message}", code="TFW0978")
    return report


def record_of(line: bytes, place: Place) -> Record:
    """A line as an object; raises CodeError TFW0976 where it is none, holds a name twice or what is not a JSON."""
    try:
        record = json.loads(line, object_pairs_hook=_once, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise CodeError(f"no record of a report: {error}", code="TFW0976", place=place) from None
    if not isinstance(record, dict):
        raise CodeError("no record of a report: a record is an object", code="TFW0976", place=place)
    return record


def _once(pairs: Sequence[tuple[str, Any]]) -> Record:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} occurs twice in an object")
    return dict(pairs)


def _refused(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _check_version(records: Sequence[Record], file: str) -> None:
    """Before anything else: another version may have other fields, and its faults would be no faults."""
    if not records:
        return
    schema = records[0].get("schema")
    if schema != SCHEMA:
        found = f"it says {schema!r}" if schema is not None else "its first line names none"
        raise CodeError(f"{file} does not follow {SCHEMA}: {found}", code="TFW0980", place=Place(file, 1))


@cache
def _schemas() -> Mapping[str, Mapping[str, Any]]:
    definitions = json.loads((files("tilefw_conformance") / "report" / "report.schema.json").read_text("utf-8"))["$defs"]
    return {kind: {"$ref": f"#/$defs/{kind}", "$defs": definitions} for kind in KINDS}


def check_form(record: Record, place: Place) -> None:
    """Raises CodeError TFW0976 where the record does not follow the schema of its kind."""
    kind = record.get("kind")
    if kind not in KINDS:
        known = f"kinds: {', '.join(KINDS)}"
        raise CodeError(f"no record of a report is of kind {kind!r}", code="TFW0976", place=place, help=known)
    for _, message, help in faults(record, _schemas()[kind]):
        raise CodeError(f"{kind}: {message}", code="TFW0976", place=place, help=help)


def _collected(records: Sequence[Record], file: str) -> Report:
    cases: dict[str, Record] = {}
    results: dict[tuple[str, str], Record] = {}
    for number, record in enumerate(records, 1):
        twice, kind = False, record["kind"]
        if kind == "case":
            twice = record["case"] in cases
            cases[record["case"]] = record
        elif kind == "result":
            key = (record["target"], record["case"])
            twice = key in results
            results[key] = record
        else:
            twice = number != (1 if kind == "header" else len(records))
        if twice:
            named = f" of {record['case']}" if "case" in record else ""
            on = f" on {record['target']}" if kind == "result" else ""
            raise CodeError(f"{file} has a second {kind}{named}{on}", code="TFW0979", place=Place(file, number))
    return Report(file, records[0], cases, results, records[-1])


def _contradictions(report: Report, data: bytes) -> Iterator[str]:
    """What cannot be in a report that a run wrote, the most telling first."""
    results = list(report.results.values())
    for one in results:
        yield from _contradictions_of(one, report)
    counts, targets = totals.counts(results), totals.targets(results)
    if report.footer["cases"] != len(results):
        yield f"the footer counts {report.footer['cases']} results, and there are {len(results)}"
    if report.footer["counts"] != counts:
        yield f"the footer's counts are {report.footer['counts']}, and the results make {counts}"
    if report.footer["targets"] != targets:
        yield f"the footer's counts by target are {report.footer['targets']}, and the results make {targets}"
    if report.footer["digest"] != totals.results_digest(results):
        yield "its results do not have the footer's digest"
    if report.footer["content"] != hashlib.sha256(data[: data.rstrip(b"\n").rfind(b"\n") + 1]).hexdigest():
        yield "its lines do not have the footer's digest of the content"


def _contradictions_of(one: Record, report: Report) -> Iterator[str]:
    name = f"{one['case']} on {one['target']}"
    case = report.cases.get(one["case"])
    if case is None:
        yield f"there is a result of {one['case']}, and no such case"
    elif (case["level"], case["kernel"]) != (one["level"], one["kernel"]):
        yield f"{name} has another level or kernel than its case"
    if one["target"] not in report.targets:
        yield f"there is a result on {one['target']}, which the header does not name"
    if one["outcome"] not in ("pass", "xpass"):
        return
    failed = next((stage["name"] for stage in one["stages"] if stage["outcome"] not in ("pass", "skipped")), None)
    if failed is not None:
        yield f"{name} has the outcome {one['outcome']}, but does not pass the stage {failed}"
    ratio = one["error_over_bound"]
    if ratio is not None and float(ratio) > 1:
        yield f"{name} has the outcome {one['outcome']} with an error of {ratio} times its bound"
