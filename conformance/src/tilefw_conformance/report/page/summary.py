"""What the page shows before any script runs, and to those who run none: the run's facts and a row for each target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from tilefw_conformance.case import LEVELS
from tilefw_conformance.outcomes import GOOD, OUTCOMES
from tilefw_conformance.report.reading import Report
from tilefw_conformance.report.wording import EXECUTORS, profiles, ratio

MEANINGS = {
    "pass": "every element is within the bound that the reference interpreter computed for it",
    "xfail": "fails, as the plugin's file of expected failures lists with a reason and an issue",
    "unsupported": "needs a capability that the target does not claim; never counted as a pass",
    "over-capacity": "needs more registers, memory or threads than the chip has",
    "fail": "an element is beyond its bound, a check found a fault, or the compiler refused a kernel that it should accept",
    "xpass": "passes, although the plugin expects it to fail",
    "overclaimed": "the target claims the capability and refused it",
    "error": "the compiler or the simulator crashed",
    "timeout": "did not end within its time or its budget of instructions",
}


def title(reports: Sequence[Report]) -> str:
    names = [name for report in reports for name in report.targets]
    return escape(f"tilefw conformance: {', '.join(names)}")


def facts(reports: Sequence[Report]) -> str:
    """One line: edition, level, day, how it was executed, what was left out."""
    levels, editions, selections, stages = (
        sorted({str(report.header[name]) for report in reports if report.header[name] is not None})
        for name in ("level", "edition", "expression", "stage")
    )
    taken = sorted({report.header["options"]["part"] for report in reports if "part" in report.header["options"]})
    days = sorted({_day(report.header["started"]) for report in reports})
    cases = len({case for report in reports for case in report.cases})
    executed = Counter(EXECUTORS[target["executor"]] for report in reports for target in report.header["targets"])
    parts = [f"edition {', '.join(editions)}", f"level {', '.join(levels)}", f"{cases:,} cases", " and ".join(days)]
    parts += [f"{n} {name}" if len(executed) > 1 else name for name, n in executed.most_common()]
    parts += [f"only {text}" for text in selections]
    parts += [f"--part {text}" for text in taken]
    parts += [f"up to the stage {text}" for text in stages if text != "compare"]
    return " · ".join(f"<span>{escape(part)}</span>" for part in parts)


def summary(data: Mapping[str, Any]) -> str:
    """The table of targets."""
    levels = sorted({level for target in data["targets"] for level in target["counts"]}, key=_by_level)
    heads = "".join(f'<th scope="col" class="n">{escape(level)}</th>' for level in levels)
    rows = "".join(_row(index, data, levels) for index in range(len(data["targets"])))
    return (
        '<table class="targets"><caption class="unseen">Results by target: passed of claimed cases, by level</caption>'
        f'<thead><tr><th scope="col">target</th><th scope="col" class="wide">executed</th>{heads}'
        '<th scope="col" class="bar">all results</th><th scope="col" class="bad">not well</th>'
        '<th scope="col" class="n wide" title="largest error over bound of a pass, beyond rounding the output">tightest</th>'
        f'<th scope="col" class="wide">profiles</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def words() -> str:
    """What each outcome means, and what the numbers are."""
    return "".join(f'<dt><b class="o o-{name}">{name}</b></dt><dd>{escape(text)}</dd>' for name, text in MEANINGS.items())


def _row(index: int, data: Mapping[str, Any], levels: Sequence[str]) -> str:
    target = data["targets"][index]
    counted = sum((Counter(level) for level in target["counts"].values()), Counter())
    scores = "".join(f'<td class="n">{_score(target["counts"].get(level))}</td>' for level in levels)
    wrong = [name for name in OUTCOMES if counted[name] and name not in GOOD]
    bad = "".join(f'<b class="o o-{name}">{counted[name]:,} {name}</b> ' for name in wrong)
    bad += f'<b class="total">{sum(counted[name] for name in wrong):,}</b>' if wrong else ""
    about = " · ".join(text for text in (target["vendor"], target["plugin"]) if text)
    claimed = " ".join(f"<i>{escape(name)}</i>" for name in profiles(target["profiles"]))
    return (
        f'<tr data-target="{index}"><th scope="row"><span class="name">{escape(target["name"])}</span> '
        f'<small class="wide">{escape(about)}</small></th>'
        f'<td class="wide">{escape(EXECUTORS[target["executor"]])}</td>{scores}<td class="bar">{_bar(counted)}</td>'
        f'<td class="bad">{bad or "<span class=quiet>–</span>"}</td><td class="n wide">{_tightest(data["results"][index])}</td>'
        f'<td class="wide profiles" title="{escape(", ".join(target["profiles"]))}">{claimed}</td></tr>'
    )


def _score(counted: Mapping[str, int] | None) -> str:
    if not counted:
        return '<span class="quiet">–</span>'
    every = sum(counted.values())
    claimed = every - counted.get("unsupported", 0)
    told = f"{counted.get('pass', 0):,} of {claimed:,} claimed cases pass; there are {every:,}"
    return f'<span title="{told}"><b>{counted.get("pass", 0):,}</b>/{claimed:,}</span>'


def _bar(counted: Mapping[str, int]) -> str:
    parts = [(name, counted[name]) for name in OUTCOMES if counted[name]]
    told = ", ".join(f"{n:,} {name}" for name, n in parts)
    pieces = "".join(f'<i class="f-{name}" style="flex-grow:{n}"></i>' for name, n in parts)
    return f'<span class="stack" role="img" aria-label="{told}" title="{told}">{pieces}</span>'


def _tightest(columns: Mapping[str, Sequence[Any]]) -> str:
    passed = OUTCOMES.index("pass")
    rows = zip(columns["outcome"], columns["ratio"], columns["rounding"], strict=True)
    ratios = [float(value) for outcome, value, rounding in rows if outcome == passed and value is not None and not rounding]
    return ratio(max(ratios)) if ratios else "–"


def _by_level(level: str) -> int:
    return LEVELS.index(level)


def _day(started: str) -> str:
    try:
        return f"{datetime.fromisoformat(started):%-d %B %Y}"
    except ValueError:
        return started
