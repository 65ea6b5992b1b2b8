"""A roofline as SVG: operations a second over operations a byte, with a roof and the launch's place for each memory level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM, AIR = 560, 300, 52, 34, 14


def roofline(figures: Mapping[str, Any]) -> str:
    """The picture; a sentence where no operations were counted, as then there is no place on it."""
    done, peak = figures["operations_per_second"], figures["peak"]
    levels = [level for level in figures["levels"] if level["achieved"]]
    if not done or not levels:
        return '<p class="none">No arithmetic is counted in this code, so it has no place under a roof: rates of memory alone.</p>'
    intensity = [done / level["achieved"] for level in levels]
    ridges = [peak / level["attainable"] for level in levels] if peak else intensity
    x = _LogAxis(min(*intensity, *ridges) / 4, max(*intensity, *ridges) * 8, LEFT, WIDTH - AIR)
    top = peak or max(level["attainable"] * x.high for level in levels)
    y = _LogAxis(min(done / 8, top / 1000), top * 3, HEIGHT - BOTTOM, AIR)
    roofs = "".join(_roof(number, level, top, x, y) for number, level in enumerate(levels))
    dots = "".join(
        f'<circle class="l{number}" cx="{x.at(value):.1f}" cy="{y.at(done):.1f}" r="5"><title>{escape(level["level"])}: '
        f"{value:,.2f} operations a byte, {done / 1e12:,.3f} T operations/s</title></circle>"
        for number, (level, value) in enumerate(zip(levels, intensity, strict=True))
    )
    said = f"Roofline: {done / 1e12:,.2f} T operations a second"
    return (
        f'<svg class="roofline" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}">{_grid(x, y)}{roofs}{dots}'
        f'<text class="axis" x="{WIDTH - AIR}" y="{HEIGHT - 3}" text-anchor="end">operations for each byte of a level</text></svg>'
        f'<p class="legend">{"".join(_named(number, level) for number, level in enumerate(levels))}</p>'
    )


class _LogAxis:
    """A logarithmic axis from `low` to `high` over pixels."""

    def __init__(self, low: float, high: float, begin: float, end: float) -> None:
        self.low, self.high, self._begin, self._end = low, high, begin, end

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self._begin + min(max(share, 0.0), 1.0) * (self._end - self._begin)

    def decades(self) -> Sequence[float]:
        return [10.0**power for power in range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)]


def _roof(number: int, level: Mapping[str, Any], top: float, x: _LogAxis, y: _LogAxis) -> str:
    """Up by what the level moves until the matrix units' own rate, and flat from there on, where the picture goes so far."""
    rate = level["attainable"]
    begin, ridge = max(x.low, y.low / rate), min(top / rate, x.high)
    points = [(begin, rate * begin), (ridge, rate * ridge), (x.high, min(top, rate * x.high))]
    drawn = " ".join(f"{x.at(px):.1f},{y.at(py):.1f}" for px, py in points)
    return f'<polyline class="l{number}" points="{drawn}"/>'


def _grid(x: _LogAxis, y: _LogAxis) -> str:
    across = "".join(
        f'<line x1="{x.at(v):.1f}" x2="{x.at(v):.1f}" y1="{AIR}" y2="{HEIGHT - BOTTOM}"/>'
        f'<text x="{x.at(v):.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{v:g}</text>' for v in x.decades()
    )
    up = "".join(
        f'<line x1="{LEFT}" x2="{WIDTH - AIR}" y1="{y.at(v):.1f}" y2="{y.at(v):.1f}"/>'
        f'<text x="{LEFT - 5}" y="{y.at(v) + 4:.1f}" text-anchor="end">{_rate(v)}</text>' for v in y.decades()
    )
    return f'<g class="grid">{across}{up}</g>'


def _rate(value: float) -> str:
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:g} {unit}/s"
    return f"{value:g}/s"


def _named(number: int, level: Mapping[str, Any]) -> str:
    key = f'<svg class="key" viewBox="0 0 10 10"><circle class="l{number}" cx="5" cy="5" r="4"/></svg>'
    return f"<span>{key}{escape(level['level'])}</span> "
