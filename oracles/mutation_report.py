"""What a mutation campaign found, as Markdown: counts by kernel and kind, which check told, every site that no check reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from oracles.site import Site

OUTCOMES = ("reported", "wrong only", "equivalent", "survived")


class Judged(Protocol):
    """A verdict of the campaign."""

    @property
    def kernel(self) -> str: ...
    @property
    def site(self) -> Site: ...
    @property
    def outcome(self) -> str: ...
    @property
    def detail(self) -> str: ...


def report(title: str, results: Sequence[Judged], means: str, seconds: float, missing: Sequence[str] = ()) -> str:
    """The whole page. `means`: what judged, in words; `seconds`: a processor's; `missing`: the kernels that were not tried."""
    count = Counter(v.outcome for v in results)
    rest = max(len(results) - count["equivalent"], 1)
    checks = Counter(v.detail.split()[0] for v in results if v.outcome == "reported")
    parts = [
        f"# {title}",
        "",
        f"{len(results)} sites in {len({v.kernel for v in results})} kernels, {means}; "
        f"{seconds:.0f} s of a processor. Reported: {count['reported'] / rest:.1%} of all but equivalents; reported or wrong: "
        f"{1 - count['survived'] / rest:.1%}; equivalents: {count['equivalent'] / max(len(results), 1):.1%} of all sites.",
        "",
        table(results),
        "",
        "Told by: " + ", ".join(f"{check} {n}" for check, n in checks.most_common()) + ".",
    ]
    if missing:
        parts += ["", f"Not tried yet: {', '.join(missing)}."]
    for outcome in OUTCOMES[1:]:
        listed = [v for v in results if v.outcome == outcome]
        if listed:
            parts += ["", f"## {outcome.capitalize()}", ""]
            parts += [f"- {v.kernel}: {v.site}. {' '.join(v.detail.split())}" for v in listed]
    return "\n".join(parts) + "\n"


def table(results: Sequence[Judged]) -> str:
    """Counts by kernel and by kind."""
    head = "| | sites | " + " | ".join(OUTCOMES) + " | reported of all but equivalents | reported or wrong |"
    lines = [head, "|---|" + "---|" * (len(OUTCOMES) + 3)]
    for keys in ([v.kernel for v in results], [v.site.kind for v in results]):
        for key in dict.fromkeys(keys):
            lines.append(row(key, [v for v, k in zip(results, keys, strict=True) if k == key]))
    return "\n".join([*lines, row("**all**", results)])


def row(name: str, results: Sequence[Judged]) -> str:
    """One line of the table."""
    count = Counter(v.outcome for v in results)
    rest = max(len(results) - count["equivalent"], 1)
    cells = " | ".join(str(count[outcome]) for outcome in OUTCOMES)
    return f"| {name} | {len(results)} | {cells} | {count['reported'] / rest:.1%} | {1 - count['survived'] / rest:.1%} |"
