"""A timeline as one SVG picture that needs no program but a browser: rows downwards, cycles to the right, a colour for each kind.

Spans nearer to each other than the picture can show are one block, whose opacity is the share of its cycles in which the row is at
work. Colours follow the reader's light or dark setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from operator import attrgetter

from tilefw.api.timeline import Span, Timeline, Track, Utilisation
from tilefw.runtime.diagnostics import render_utilisation

LEFT, PLOT, RIGHT = 180, 1200, 30  # widths in pixels: names, the plot, air
ROW, GAP, LINE = 9, 10, 16  # heights: a row, between groups, a line of text
NEAR = 0.6  # pixels between spans that are drawn as one
FAINTEST = 0.25  # opacity of a block that is hardly ever at work
# Hues of equal weight, told apart on white and on black: (light, dark) for each kind by its place in `Timeline.kinds`.
PALETTE = (
    ("#2563c9", "#6ea8ff"), ("#d9730d", "#ffa94d"), ("#15803d", "#5fd38a"), ("#b91c4b", "#ff7a9c"), ("#7c3aed", "#b799ff"),
    ("#0e8a94", "#4fd1d9"), ("#8a6d00", "#e3c341"), ("#c026a8", "#f18ae0"), ("#57606a", "#a8b3bf"), ("#5b3a1e", "#c99a6b"),
    ("#6b8e00", "#bfe35c"), ("#e85d9f", "#ffb3d6"), ("#1e3a5f", "#9cc3e6"),
)


@dataclass(frozen=True, slots=True)
class _SpanBlock:
    """Spans of one kind that are drawn together."""

    kind: str
    begin: int
    end: int
    busy: int
    count: int
    text: str


def picture(timeline: Timeline, title: str, figures: tuple[Utilisation, ...] = ()) -> str:
    """The text of the SVG file."""
    there = dict.fromkeys(span.kind or row.group for row in timeline.rows for span in row.spans)
    kinds = {kind: number % len(PALETTE) for number, kind in enumerate(dict.fromkeys((*timeline.kinds, *there))) if kind in there}
    head = [title, f"{timeline.cycles:,} cycles", *_wrapped(render_utilisation(figures))]
    top = LINE * (len(head) + 3)
    body: list[str] = []
    y = float(top)
    ends: list[tuple[float, float]] = []
    for group, rows in groupby(timeline.rows, key=attrgetter("group")):  # as long as its rows stand together
        begin = y
        body.append(f'<text class="group" x="8" y="{y + ROW}">{escape(group)}</text>')
        for row in rows:
            body += _row(row, y, timeline.cycles, kinds)
            y += ROW
        ends.append((begin, y))
        y += GAP
    grid = list(_grid(timeline.cycles, top, y, ends))
    height = round(y + LINE)
    parts = [_STYLE, *_head(head), *_legend(kinds, LINE * (len(head) + 1)), *grid, *body]
    size = f'viewBox="0 0 {LEFT + PLOT + RIGHT} {height}" width="{LEFT + PLOT + RIGHT}" height="{height}"'
    return f'<svg class="timeline" xmlns="http://www.w3.org/2000/svg" {size} role="img">\n' + "\n".join(parts) + "\n</svg>\n"


def _row(row: Track, y: float, cycles: int, kinds: dict[str, int]) -> Iterator[str]:
    facts = "".join(f", {name} {value}" for name, value in row.facts.items())
    yield f'<text class="row" x="{LEFT - 6}" y="{y + ROW - 1.5}">{escape(row.name)}<title>{escape(row.name + facts)}</title></text>'
    scale = PLOT / max(cycles, 1)
    for block in _blocks(row, NEAR / scale):
        x, width = LEFT + block.begin * scale, max((block.end - block.begin) * scale, NEAR)
        share = block.busy / (block.end - block.begin)
        opacity = "" if share > 0.99 else f' opacity="{FAINTEST + (1 - FAINTEST) * share:.2f}"'
        what = f"{block.text}\ncycles {block.begin:,} to {block.end - 1:,}, at work in {block.busy:,}"
        yield (
            f'<rect class="k{kinds[block.kind]}" x="{x:.2f}" y="{y + 0.5:g}" width="{width:.2f}" height="{ROW - 1}"'
            f"{opacity}><title>{escape(what)}</title></rect>"
        )


def _blocks(row: Track, near: float) -> Iterator[_SpanBlock]:
    """A row's spans; successive ones of a kind are one block where less than `near` cycles are between them."""
    open_: _SpanBlock | None = None
    for span in row.spans:
        kind = span.kind or row.group
        if open_ is not None and kind == open_.kind and span.begin - open_.end < near:
            open_ = _extended_span(open_, span)
            continue
        if open_ is not None:
            yield open_
        open_ = _SpanBlock(kind, span.begin, span.begin + span.length, span.busy, 1, span.name)
    if open_ is not None:
        yield open_


def _extended_span(block: _SpanBlock, span: Span) -> _SpanBlock:
    count = block.count + 1
    return _SpanBlock(
        block.kind, block.begin, span.begin + span.length, block.busy + span.busy, count, f"{count} times {block.kind}"
    )


def _grid(cycles: int, top: int, bottom: float, groups: list[tuple[float, float]]) -> Iterator[str]:
    """Lines of cycles with their numbers, and a bed for each group's rows."""
    for begin, end in groups:
        yield f'<rect class="bed" x="{LEFT}" y="{begin:g}" width="{PLOT}" height="{end - begin:g}"/>'
    step = _tick_spacing(cycles)
    for cycle in range(0, cycles + 1, step):
        x = LEFT + cycle * PLOT / max(cycles, 1)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 4}" y2="{bottom - GAP:g}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{top - 8}">{cycle:,}</text>'


def _tick_spacing(cycles: int) -> int:
    """The smallest round number (1, 2 or 5 with zeros behind it) of which at most 12 fit in."""
    power = 1
    while cycles > 12 * 5 * power:
        power *= 10
    return next(factor * power for factor in (1, 2, 5) if cycles <= 12 * factor * power)


def _wrapped(text: str, width: int = 190) -> list[str]:
    """Words in lines of at most so many letters, broken behind commas."""
    lines = [""]
    for part in text.split(", "):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += (", " if lines[-1] else "") + part
    return lines


def _head(lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        yield f'<text class="{"title" if number == 1 else "said"}" x="8" y="{LINE * number + 2}">{escape(line)}</text>'


def _legend(kinds: dict[str, int], y: int) -> Iterator[str]:
    x = 8.0
    for kind, number in kinds.items():
        yield f'<rect class="k{number}" x="{x:g}" y="{y - 3}" width="10" height="10"/>'
        yield f'<text class="said" x="{x + 15:g}" y="{y + 6}">{escape(kind)}</text>'
        x += 40 + 7 * len(kind)


def _style() -> str:
    light, dark = ("".join(f".timeline .k{i}{{fill:{pair[theme]}}}" for i, pair in enumerate(PALETTE)) for theme in (0, 1))
    own = _of_own(
        "{background:#fff;font-family:system-ui,sans-serif}", " text{fill:#1b1f24;font-size:12px}",
        " .title{font-weight:600;font-size:14px}", " .row{font-size:7.5px;text-anchor:end;fill:#57606a}",
        " .group{font-size:11px;font-weight:600}", " .tick{font-size:10px;text-anchor:middle;fill:#57606a}", " .bed{fill:#f3f5f7}",
        " .grid{stroke:#d5dae0;stroke-width:.6}",
    )
    own_dark = _of_own(
        "{background:#0f1216}", " text{fill:#e6e9ed}", " .row{fill:#a8b3bf}", " .tick{fill:#a8b3bf}", " .bed{fill:#181c22}",
        " .grid{stroke:#333a43}",
    )
    return f"<style>{own}{light}@media (prefers-color-scheme:dark){{{own_dark}{dark}}}</style>"


def _of_own(*rules: str) -> str:
    """Rules for this picture alone, which may stand among others on a page."""
    return "".join(f".timeline{rule}" for rule in rules)


_STYLE = _style()
