"""What the checks of an executor found, as text for people and as plain JSON values."""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilefw.api.device import Finding
from tilefw.api.errors import CheckError, Place, render_place
from tilefw.api.remark import Remark
from tilefw.api.timeline import Utilisation

SHOWN = 8  # findings printed in full; the rest are counted


def check_error(findings: Sequence[Finding], written: str = "nothing was copied back") -> CheckError:
    """The error for a launch whose checks found faults; its message is the first finding's, its note shows all. `written` says what
    became of the arrays."""
    errors = [f for f in findings if f.severity == "error"]
    first = errors[0]
    place = first.source or first.code_place
    return CheckError(
        f"{first.check}: {first.message}" + (f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""),
        code=first.code, place=with_text(place), note="\n".join(_facts(first)) or None,
        help=f"{written}; see `tilefw explain {first.code}`", findings=tuple(findings),
    )


def render_findings(findings: Sequence[Finding]) -> str:
    """Each finding with its instruction, places and lanes; past the first few, a count."""
    parts = [render_finding(f) for f in findings[:SHOWN]]
    if len(findings) > SHOWN:
        parts.append(f"… and {len(findings) - SHOWN} more findings")
    return "\n".join(parts)


def render_finding(finding: Finding) -> str:
    """One finding: a headline as errors have it, then the place in the source or machine code, then the facts."""
    lines = [f"{finding.severity}[{finding.code}]: {finding.check}: {finding.message}"]
    place = with_text(finding.source or finding.code_place)
    if place is not None:
        lines += render_place(place)
    return "\n".join(lines + [f"  = {fact}" for fact in _facts(finding)])


def render_remarks(remarks: Sequence[Remark]) -> str:
    """The remarks of a compilation (`Artifact.remarks`), each with its place and what to do."""
    lines: list[str] = []
    for remark in remarks:
        lines.append(f"remark[{remark.code}]: {remark.message}")
        lines += [f" --> {remark.place}"] if remark.place is not None else []
        lines.append(f"  = help: {remark.help}")
    return "\n".join(lines)


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """Plain JSON values of a finding; places are `file:line:column`."""
    raw = {name: getattr(finding, name) for name in Finding.__dataclass_fields__}
    raw["code_place"] = None if finding.code_place is None else str(finding.code_place)
    raw["source"] = None if finding.source is None else str(finding.source)
    raw["workgroup"] = None if finding.workgroup is None else list(finding.workgroup)
    return raw


def render_counters(counters: Mapping[str, int]) -> str:
    """The counters that sum up a launch: totals, and bytes moved; the finer ones are in the data."""
    shown = {name: value for name, value in counters.items() if "." not in name or name.startswith("bytes.")}
    return ", ".join(f"{name} {value:,}" for name, value in shown.items())


def render_utilisation(figures: Sequence[Utilisation]) -> str:
    """How far each resource was used, those that were at all: shares of cycles, and amounts of all else."""
    shown = [
        f"{u.resource} {u.share:.1%}" + (f" ({u.used:,} of {u.available:,} {u.unit})" if u.unit != "cycles" else "")
        for u in figures if u.used
    ]
    return "utilisation: " + (", ".join(shown) or "none")


def utilisation_to_json(figures: Sequence[Utilisation]) -> list[dict[str, Any]]:
    """Plain JSON values of the figures, with their shares."""
    return [
        {"resource": u.resource, "used": u.used, "available": u.available, "unit": u.unit, "share": u.share} for u in figures
    ]


def with_text(place: Place | None) -> Place | None:
    """The place with its line's text, where the file can be read."""
    if place is None or place.text or place.line < 1:
        return place
    return replace(place, text=linecache.getline(place.file, place.line).rstrip("\n"))


def _facts(finding: Finding) -> list[str]:
    where = []
    if finding.workgroup is not None:
        where.append(f"workgroup {finding.workgroup}")
    where += [f"{what} {number}" for what, number in (("wave", finding.wave), ("lane", finding.lane)) if number is not None]
    facts = []
    if finding.instruction:
        place = f" at {finding.code_place}" if finding.code_place is not None else ""
        facts.append(f"instruction: {finding.instruction.strip()}{place}")
    seen = [*(["in " + ", ".join(where)] if where else []), *([f"{finding.count} times in all"] if finding.count > 1 else [])]
    if seen:
        facts.append("; ".join(seen))
    if finding.address is not None:
        facts.append(f"address: {finding.address:#x}")
    facts += [text for text in (finding.other and f"other side: {finding.other}", finding.note) if text]
    return facts
