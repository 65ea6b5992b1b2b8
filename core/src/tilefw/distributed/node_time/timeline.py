"""What every rank did when: the time of a node's launches as a timeline of all ranks, whose unit is a nanosecond."""

from __future__ import annotations

from collections import defaultdict

from tilefw.api.timeline import Span, Timeline, Track
from tilefw.distributed.links.flows import LinkTransfer
from tilefw.distributed.node_time.node_clock import NodeTime
from tilefw.distributed.node_time.replay import PARTS, Part, ReplayedStep

_UNITS = 1000  # of the timeline in a microsecond
WAITS = "wait"
"""The kind of the spans in which a workgroup does nothing but wait."""


def node_timeline(time: NodeTime) -> Timeline:
    """By rank a row for its launches, one for each of its workgroups, and what each of these sends to and asks of a peer. A
    workgroup's row has its computation, in one span up to the next wait, and its waits."""
    replay = time.replay
    by_agent: dict[int, list[tuple[LinkTransfer, ReplayedStep]]] = defaultdict(list)
    for one, step in zip(replay.network.transfers, replay.steps, strict=True):
        by_agent[one.agent].append((one, step))
    rows = _launch_rows(time)
    for agent, found in by_agent.items():
        if agent in replay.streams:
            continue
        spans = _of_workgroup(found) if found[0][1].workgroup is not None and not found[-1][1].nbytes else _of_others(found)
        if spans:
            rows.append((found[0][1].rank, agent, Track(replay.network.agents[agent], f"rank {found[0][1].rank}", spans)))
    rows.sort(key=lambda row: row[:2])
    facts: dict[str, int | str] = {"unit": "1 us is 1 ns", "system": time.system}
    facts |= {f"{part} ns": round(taken * 1e6 * _UNITS) for part, taken in time.parts.items()}
    return Timeline(max(1, round(time.seconds * 1e6 * _UNITS)), tuple(row for *_, row in rows), (*PARTS, WAITS), facts)


def _launch_rows(time: NodeTime) -> list[tuple[int, int, Track]]:
    """A row for the launches of each rank: the start of each, then what it is called."""
    by_rank: dict[int, list[Span]] = defaultdict(list)
    for one in time.launches:
        begin, started, end = (round(1e6 * _UNITS * at) for at in (one.begin, one.started, one.end))
        _append(by_rank[one.rank], "start", "launch", begin, started, {})
        _append(by_rank[one.rank], one.name, "transfers" if one.communicates else "compute", started, end, {})
    return [(rank, -1, Track(f"rank {rank} launches", f"rank {rank}", tuple(spans))) for rank, spans in by_rank.items()]


def _of_workgroup(found: list[tuple[LinkTransfer, ReplayedStep]]) -> tuple[Span, ...]:
    """Pieces that follow each other at once are one span, and what lies between spans is waiting."""
    stretches: list[list[float]] = []
    for one, _ in found:
        if one.sent > one.begin:
            if stretches and one.begin - stretches[-1][1] < 1 / _UNITS:
                stretches[-1][1] = one.sent
            else:
                stretches.append([one.begin, one.sent])
    spans: list[Span] = []
    for begin, end in stretches:
        if spans:
            _append(spans, "wait", WAITS, spans[-1].begin + spans[-1].length, round(begin * _UNITS), {})
        _append(spans, "compute", "compute", round(begin * _UNITS), round(end * _UNITS), {})
    return tuple(spans)


def _of_others(found: list[tuple[LinkTransfer, ReplayedStep]]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for one, step in found:
        if one.sent > one.begin:
            name = one.name if step.peer is None else f"{one.name}, rank {step.peer}"
            facts: dict[str, int | str] = {}
            if step.nbytes:
                facts = {"bytes": step.nbytes, "arrives_ns": round((one.sent + one.latency) * _UNITS)}
            _append(spans, name, step.part, round(one.begin * _UNITS), round(one.sent * _UNITS), facts)
    return tuple(spans)


def _append(spans: list[Span], name: str, kind: Part | str, begin: int, end: int, facts: dict[str, int | str]) -> None:
    """A span behind the others, of one unit at least, if there is anything of it left."""
    begin = max(begin, spans[-1].begin + spans[-1].length) if spans else begin
    if kind != WAITS or end > begin:
        length = max(1, end - begin)
        spans.append(Span(name, begin, length, length, kind, facts))
