"""The parts of one profile on its page: figures, what limits, levels of memory, source lines and instructions with their waits."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from tilefw.timing.page.roofline import roofline

CONTEXT = 400  # source lines between the first and the last one with code that are shown; else those with code alone
Row = Mapping[str, Any]


def section(number: int, profile: Mapping[str, Any], picture: str = "") -> str:
    """One profile; `number` is its place on the page, which its anchors have, `picture` its timeline."""
    places = {row["where"]: f"{number}-{at}" for at, row in enumerate(profile["lines"]) if _placed(row)}
    return (
        f'<section id="p{number}"><h2>{escape(profile["kernel"])} <span>on {escape(profile["target"])}</span></h2>'
        f'<p class="facts">{_facts(profile)}</p><div class="pair"><div><h3>Cycles go to</h3>{_limits(profile["limits"])}</div>'
        f"<div><h3>Roofline</h3>{roofline(profile['roofline'])}{_levels(profile['roofline']['levels'])}</div></div>"
        f"{_timeline(picture)}"
        f'<div class="pair code"><div><h3>Source</h3>{_source(profile["lines"], places)}</div>'
        f"<div><h3>Machine code</h3>{_instructions(profile['stalls'], places)}</div></div>{_notes(profile['notes'])}</section>"
    )


def _timeline(picture: str) -> str:
    return f'<h3>Timeline</h3><div class="scroll" tabindex="0">{picture}</div>' if picture else ""


def _placed(row: Row) -> bool:
    return row["where"].rpartition(":")[2].isdigit()


def _facts(profile: Mapping[str, Any]) -> str:
    low, high = profile["range"]
    spread = profile["residency"]
    rate = profile["roofline"]
    facts = [
        f"<b>{profile['cycles']:,.0f} cycles</b>", f"<b>{_microseconds(profile['seconds'])}</b>",
        f"{_microseconds(low)} to {_microseconds(high)} by the ranges of the chip's figures",
        f"{profile['clock_hz'] / 1e6:,.0f} MHz",
        f"{spread['workgroups']:,} workgroups, {spread['resident']} at once on each of {spread['processors']} processors",
    ]
    if rate["peak"]:
        share = rate["operations_per_second"] / rate["peak"]
        facts.append(f"{rate['operations_per_second'] / 1e12:,.2f} of {rate['peak'] / 1e12:,.0f} T operations/s ({share:.0%})")
    return " · ".join(facts)


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.2f} µs"


def _limits(limits: Sequence[Row]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(limit["cause"])}</th><td>{_bar(limit["share"])}</td><td class="n">{limit["share"]:.1%}</td>'
        f'<td class="n">{limit["cycles"]:,.0f}</td></tr>' for limit in limits
    )
    head = '<thead><tr><th>cause</th><th></th><th class="n">share</th><th class="n">cycles</th></tr></thead>'
    return f'<table class="limits">{head}{rows}</table>'


def _levels(levels: Sequence[Row]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(level["level"])}</th><td>{_bar(level["achieved"] / level["attainable"])}</td>'
        f'<td class="n">{level["bytes"] / 1e3:,.1f} KB</td>'
        f'<td class="n">{level["achieved"] / 1e9:,.0f} of {level["attainable"] / 1e9:,.0f} GB/s</td></tr>' for level in levels
    )
    return f'<table class="levels">{rows}</table>'


def _bar(share: float) -> str:
    return f'<i class="bar" style="--s:{100 * min(share, 1):.1f}%"></i>'


def _source(lines: Sequence[Row], places: Mapping[str, str]) -> str:
    if not places:
        return '<p class="none">The machine code names no source lines: waits are told by instruction alone.</p>'
    most = max((row["cycles"] for row in lines), default=0) or 1
    total = sum(row["cycles"] for row in lines) or 1
    files: dict[str, dict[int, Row]] = {}
    for row in lines:
        if _placed(row):
            file, _, line = row["where"].rpartition(":")
            files.setdefault(file, {})[int(line)] = row
    body = []
    for file, found in sorted(files.items(), key=lambda item: -sum(row["cycles"] for row in item[1].values())):
        body.append(_rule(file.rpartition("/")[2]))
        for line, text in _shown(file, found):
            row = found.get(line)
            body.append(_code(str(line), text, row, places[row["where"]], most, total) if row else _plain(line, text))
    elsewhere = sum(row["cycles"] for row in lines if not _placed(row))
    if elsewhere:
        body.append(_rule(f"{elsewhere / total:.1%} of waits are in code without a source line"))
    return f'<div class="scroll"><table class="rows source">{"".join(body)}</table></div>'


def _shown(file: str, found: Mapping[int, Row]) -> Iterator[tuple[int, str]]:
    """The lines of a file from the first to the last one with code, where the file is there and they are not too many."""
    first, last = min(found), max(found)
    for line in range(first, last + 1) if last - first < CONTEXT else sorted(found):
        text = linecache.getline(file, line).rstrip()
        if line in found and text.strip() != found[line]["text"]:
            text = found[line]["text"]  # the file is gone, or another one by now
        if line in found or linecache.getline(file, line):
            yield line, text


def _rule(text: str) -> str:
    return f'<tr class="file"><td colspan="5">{escape(text)}</td></tr>'


def _plain(line: int, text: str) -> str:
    return f'<tr class="plain"><td class="n">{line}</td><td></td><td></td><td></td><td><code>{escape(text)}</code></td></tr>'


def _instructions(rows: Sequence[Row], places: Mapping[str, str]) -> str:
    most = max((row["cycles"] for row in rows), default=0) or 1
    total = sum(row["cycles"] for row in rows) or 1
    body, expected = [], None
    for row in rows:
        number = int(row["where"])
        if expected is not None and number > expected:
            body.append(_rule(f"{number - expected} instructions that did not run"))
        body.append(_code(row["where"], row["text"], row, places.get(row["source"], ""), most, total))
        expected = number + 1
    kinds = f'<p class="quiet">{len(rows):,} instructions ran, {sum(row["executed"] for row in rows):,} times in all.</p>'
    return f'<div class="scroll"><table class="rows machine">{"".join(body)}</table></div>{kinds}'


def _code(name: str, text: str, row: Row, place: str, most: float, total: float) -> str:
    cause = max(row["causes"].items(), key=lambda item: item[1], default=("", 0))[0]
    share = row["cycles"] / total
    said = ", ".join(f"{why} {cycles:,.0f}" for why, cycles in sorted(row["causes"].items(), key=lambda item: -item[1]))
    title = f"executed {row['executed']:,} times; waited {row['cycles']:,.0f} cycles" + (f": {said}" if said else "")
    link = f' data-l="{place}" tabindex="0"' if place else ""
    waits = f"{share:.1%}" if share >= 0.0005 else ""
    return (
        f'<tr{link} title="{escape(title)}" style="--h:{100 * row["cycles"] / most:.0f}%"><td class="n">{name}</td>'
        f'<td class="n h">{waits}</td><td class="c">{escape(cause) if waits else ""}</td>'
        f'<td class="n c">{row["executed"]:,}×</td><td><code>{escape(text)}</code></td></tr>'
    )


def _notes(notes: Sequence[str]) -> str:
    return "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
