"""A timeline drawn is the timeline: every span is in the file, at its cycle, in its row; what has none is told so."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

from tilefw.api import LaunchError, LaunchReport, Span, Timeline, Track, UnsupportedError, Utilisation
from tilefw.runtime import config, launch
from tilefw.runtime.compilation import compiler, kernel_source, options
from tilefw.runtime.diagnostics import render_utilisation, utilisation_to_json
from tilefw.runtime.plugins.loader import find_target
from tilefw.runtime.timeline_svg import LEFT, PALETTE, PLOT, picture
from tilefw.runtime.timeline_trace import trace_events

ROWS = (
    Track("load 0", "loads", (Span("ld a<b> & \"c\"", 0, 10, 10, "read"), Span("st", 40, 20, 5, "write")), {"rows": 3}),
    Track("mul 0", "units", (Span("mul", 90, 10, 10, "multiply"),)),
)
TIMELINE = Timeline(100, ROWS, ("write", "read", "idle", "multiply"), {"chip": "<toy>"})
FIGURES = (Utilisation("loads", 15, 200), Utilisation("never", 0, 100), Utilisation("memory", 512, 2048, "bytes"))
SVG = "{http://www.w3.org/2000/svg}"


def rectangles(text: str) -> list[tuple[str, float, float, str]]:
    """(class, x, width, title) of every span that a picture shows."""
    root = ElementTree.fromstring(text)
    found = [r for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
    return [(r.get("class", ""), float(r.get("x", "")), float(r.get("width", "")), r.findtext(f"{SVG}title") or "") for r in found]


def test_a_trace_has_every_span_with_its_row_and_cycle() -> None:
    made = json.loads(trace_events(TIMELINE, "k on toy", FIGURES))
    events = made["traceEvents"]
    names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"].endswith("_name")}
    spans = [
        (names["process_name", e["pid"], 0], names["thread_name", e["pid"], e["tid"]], e["ts"], e["dur"], e["name"], e["cat"])
        for e in events if e["ph"] == "X"
    ]
    assert spans == [(r.group, r.name, s.begin, s.length, s.name, s.kind) for r in ROWS for s in r.spans]
    assert made["otherData"]["cycles"] == 100 and made["otherData"]["chip"] == "<toy>"
    assert made["otherData"]["utilisation"] == utilisation_to_json(FIGURES)


def test_a_picture_has_every_span_at_its_cycle_in_the_colour_of_its_kind() -> None:
    shown = rectangles(picture(TIMELINE, "k on <toy>", FIGURES))
    scale = PLOT / 100
    assert [(c, x, w) for c, x, w, _ in shown] == [
        ("k1", LEFT, 10 * scale), ("k0", LEFT + 40 * scale, 20 * scale), ("k3", LEFT + 90 * scale, 10 * scale),
    ]
    assert shown[0][3].startswith("ld a<b> & \"c\"\ncycles 0 to 9, ")
    assert "at work in 5" in shown[1][3]


def test_spans_too_near_to_be_told_apart_are_one_block_of_their_share() -> None:
    cycles = 100 * PLOT
    spans = tuple(Span("x", 10 * i, 5, 5, "read") for i in range(1000))
    text = picture(Timeline(cycles, (Track("r", "g", (*spans, Span("far", cycles - 500, 500, 500, "read"))),)), "t")
    shown = rectangles(text)
    assert len(shown) == 2 and shown[0][3] == "1000 times read\ncycles 0 to 9,994, at work in 5,000"
    assert 'opacity="0.63"' in text  # half of the cycles, above the faintest quarter


@pytest.mark.parametrize("cycles", [0, 1, 12, 13, 257, 1458, 75_000, 10**9])
def test_the_axis_has_few_round_numbers(cycles: int) -> None:
    root = ElementTree.fromstring(picture(Timeline(cycles, ROWS[:0]), "t"))
    ticks = [int((text.text or "").replace(",", "")) for text in root.iter(f"{SVG}text") if text.get("class") == "tick"]
    assert ticks[0] == 0 and ticks[-1] <= cycles and len(ticks) <= 13
    assert all(b - a == ticks[1] and str(ticks[1]).rstrip("0") in "125" for a, b in pairwise(ticks))
    assert cycles < 13 or len(ticks) >= 5


def test_each_kind_has_a_colour_for_light_and_for_dark() -> None:
    light, _, dark = picture(TIMELINE, "t").partition("prefers-color-scheme:dark")
    for number, (on_white, on_black) in enumerate(PALETTE):
        assert f".k{number}{{fill:{on_white}}}" in light and f".k{number}{{fill:{on_black}}}" in dark


def test_figures_are_shares_of_cycles_and_amounts_of_other_things() -> None:
    assert render_utilisation(FIGURES) == "utilisation: loads 7.5%, memory 25.0% (512 of 2,048 bytes)"
    assert Utilisation("none", 0, 0).share == 0.0


def test_a_target_that_makes_none_is_told_by_name() -> None:
    with pytest.raises(UnsupportedError, match="reference makes no timeline") as caught:
        launch.require_timeline(find_target("reference").info)
    assert caught.value.code == "TFW0645"


def test_an_empty_grid_has_no_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    target = find_target("reference")
    monkeypatch.setattr(launch, "require_timeline", lambda info: None)
    module = "func.func public @k() {\n  func.return\n}\n"
    source = kernel_source.from_text(module, "k.mlir")
    compiled = compiler.compile_source(source, target, options.resolve({}, target.info), assemble=False)
    with pytest.raises(LaunchError, match="its grid is empty") as caught:
        launch.execute(target, config.resolve(), compiled, compiled.artifact.entry(), (0, 1, 1), [], "k", timeline=True)
    assert caught.value.code == "TFW0646" and LaunchReport().timeline is None
