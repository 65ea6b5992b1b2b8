"""What every rank sent when: a played collective as a timeline, and as a file for ui.perfetto.dev.

A unit of the timeline is a nanosecond.
"""

from __future__ import annotations

from tilefw.api.timeline import Span, Timeline, Track
from tilefw.distributed.links.collectives import PlayedCollective
from tilefw.distributed.links.flows import LinkTransfer
from tilefw.runtime.timeline_trace import trace_events

_KINDS = ("send", "local")


def collective_timeline(played: PlayedCollective) -> Timeline:
    """A row for each engine of each rank, in the order of the ranks; the launch comes before all."""
    network, before = played.network, round(played.launch * 1000)
    by_agent: dict[int, list[LinkTransfer]] = {}
    for one in network.transfers:
        if one.size:
            by_agent.setdefault(one.agent, []).append(one)
    named = [(network.agents[agent], ones) for agent, ones in sorted(by_agent.items())]
    rows = [Track(name, _group(name), _spans(ones, before)) for name, ones in named]
    rows.sort(key=lambda row: [int(word) if word.isdecimal() else 0 for word in row.group.split()])
    facts = {"unit": "1 us is 1 ns", "algorithm": played.choice.algorithm, "protocol": played.choice.protocol}
    return Timeline(max(round(played.microseconds * 1000), 1), tuple(rows), _KINDS, facts)


def perfetto(played: PlayedCollective, title: str) -> str:
    """The text of the timeline in the Trace Event Format."""
    return trace_events(collective_timeline(played), title)


def _group(agent: str) -> str:
    """`rank 3` of `rank 3 to 5`."""
    return " ".join(agent.split()[:2])


def _spans(ones: list[LinkTransfer], before: int) -> tuple[Span, ...]:
    spans, free = [], 0
    for one in ones:
        begin = max(before + round(one.begin * 1000), free)
        free = max(before + round(one.sent * 1000), begin + 1)
        kind = "send" if one.ports else "local"
        spans.append(Span(one.name or kind, begin, free - begin, free - begin, kind, {"bytes": round(one.size)}))
    return tuple(spans)
