"""report.md: a run on one screen, for CI's job summary: counts by level and target, what is not well, what is nearly not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilefw_conformance.outcomes import GOOD, OUTCOMES
from tilefw_conformance.report.headroom import TIGHT, is_tight
from tilefw_conformance.report.reading import Report
from tilefw_conformance.report.records import Record
from tilefw_conformance.report.wording import EXECUTORS, ratio, why, worst

MOST_BAD = 50  # a job summary of GitHub is cut at 1 MB, and nobody reads a thousand failures
MOST_TIGHT = 10


def markdown(report: Report) -> str:
    """The whole report as one page of Markdown."""
    header = report.header
    selected = f", `-k {header['expression']}`" if header["expression"] else ""
    part = f", `--part {header['options']['part']}`" if "part" in header["options"] else ""
    stopped = f", up to the stage {header['stage']}" if header["stage"] != "compare" else ""
    parts = [
        f"# tilefw conformance, edition {header['edition']}",
        f"Level {header['level']}{selected}{part}{stopped}; {report.footer['cases']} results of {len(report.cases)} cases, "
        f"{report.footer['seconds']:.1f} s; digest `{report.footer['digest'][:16]}`.",
        _counts(report),
    ]
    bad = [one for target in report.targets for one in report.of(target) if one["outcome"] not in GOOD]
    if bad:
        parts += [f"## Not well: {len(bad)}", *(_bad(one) for one in bad[:MOST_BAD])]
    if len(bad) > MOST_BAD:
        parts.append(f"… and {len(bad) - MOST_BAD} more in `report.jsonl`.")
    tight = sorted(
        (one for one in report.results.values() if is_tight(one)),
        key=lambda one: (-one["error_over_bound"], one["target"], one["case"]),
    )
    if tight:
        shown = tight[:MOST_TIGHT]
        rows = [[f"`{one['case']}`", one["target"], ratio(one["error_over_bound"]), f"`{worst(one)}`"] for one in shown]
        names = ["case", "target", "error / bound", "worst element"]
        parts += [f"## Passed above {TIGHT} of the bound: {len(tight)}", _table(names, rows)]
    return "\n\n".join(parts) + "\n"


def _counts(report: Report) -> str:
    """A row for each target and level: `claimed` leaves out what the target says it does not do."""
    seen = [name for name in OUTCOMES if any(name in level for level in report.footer["counts"].values())]
    rows = []
    for facts in report.header["targets"]:
        for level, counted in report.footer["targets"].get(facts["name"], {}).items():
            numbers = [str(counted.get(name, 0)) for name in seen]
            rows.append([facts["name"], EXECUTORS[facts["executor"]], level, _score(counted), *numbers])
    return _table(["target", "executor", "level", "passed / claimed / all", *seen], rows)


def _score(counted: Mapping[str, int]) -> str:
    every = sum(counted.values())
    return f"{counted.get('pass', 0)} / {every - counted.get('unsupported', 0)} / {every}"


def _bad(one: Record) -> str:
    lines = [f"### {one['outcome']}: `{one['case']}` on {one['target']}", _fenced("text", why(one))]
    if one["worst"] is not None and one["error_over_bound"] is not None:
        lines.append(f"Worst element: `{worst(one)}`, {ratio(one['error_over_bound'])} times the bound.")
    return "\n\n".join([*lines, _fenced("console", one["reproduce"])])


def _fenced(language: str, text: str) -> str:
    """A fence longer than any in the text, which a plugin may have written."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
