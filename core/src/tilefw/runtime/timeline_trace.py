"""A timeline in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open: a group is a process, a row a thread.

The format counts microseconds: one of them is one cycle here.
Source: "Trace Event Format", Google, 2016, sections "Complete Events" and "Metadata Events".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tilefw.api.timeline import Timeline, Track, Utilisation
from tilefw.runtime.diagnostics import utilisation_to_json


def trace_events(timeline: Timeline, title: str, figures: tuple[Utilisation, ...] = ()) -> str:
    """The JSON text of a timeline; `title` and the figures of the whole stand in `otherData`."""
    groups = {group: number for number, group in enumerate(dict.fromkeys(row.group for row in timeline.rows), 1)}
    events = [event for group, number in groups.items() for event in _names("process", group, number, 0, number)]
    for thread, row in enumerate(timeline.rows, 1):
        events += _names("thread", row.name, groups[row.group], thread, thread)
        events += _spans(row, groups[row.group], thread)
    whole = {
        "title": title, "unit": "1 us is 1 cycle", "cycles": timeline.cycles, **timeline.facts,
        "utilisation": utilisation_to_json(figures),
    }
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    return f'{{"otherData":{json.dumps(whole)},\n"traceEvents":[\n{lines}\n]}}\n'


def _names(what: str, name: str, process: int, thread: int, order: int) -> Iterator[dict[str, Any]]:
    place = {"ph": "M", "pid": process, "tid": thread}
    yield {**place, "name": f"{what}_name", "args": {"name": name}}
    yield {**place, "name": f"{what}_sort_index", "args": {"sort_index": order}}


def _spans(row: Track, process: int, thread: int) -> Iterator[dict[str, Any]]:
    for span in row.spans:
        yield {
            "ph": "X", "pid": process, "tid": thread, "ts": span.begin, "dur": span.length, "name": span.name,
            "cat": span.kind or row.group, "args": {"busy cycles": span.busy, **span.facts},
        }
