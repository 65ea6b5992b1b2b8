"""Launches of all ranks as one network of work: pieces of computation between what workgroups say to each other, and transfers.

A workgroup goes from piece to piece. What it writes to another rank leaves when the piece before it has ended, over the ports
between them. An answer is waited for where it would have come if nothing else were on the way. A release waits until what was
written before is acknowledged; a wait ends when the words that it saw have been written. Launches of a rank come one behind
another.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Literal

from tilefw.distributed.engine_copies import RankCopy
from tilefw.distributed.links.flows import LinkTransfer, Network
from tilefw.distributed.links.system import System
from tilefw.distributed.node_time.communication import CommunicationEvent
from tilefw.distributed.node_time.rank_execution import WorkgroupExecution

Part = Literal["launch", "compute", "transfers", "signals"]
_Identity = tuple[int, int, int]
"""Launch, rank and number of a workgroup."""
_Change = tuple[int, LinkTransfer]
"""The moment of a change of a word, and what brings it."""
PARTS: tuple[Part, ...] = ("launch", "compute", "transfers", "signals")


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """What a transfer of the network stands for: the part of the time that it is, and whose it is."""

    part: Part
    rank: int
    workgroup: int | None
    before: tuple[LinkTransfer, ...]
    nbytes: int = 0
    peer: int | None = None


@dataclass(slots=True)
class _ReplayedWorkgroup:
    """Where the replay is in a workgroup: the cycle up to which it has pieces, the last of them, what the next one waits for, what
    was written and not yet acknowledged, and answers by the cycle in which they are wanted."""

    rank: int
    number: int
    agent: int
    last: LinkTransfer
    cycle: float = 0.0
    awaited: list[LinkTransfer] = field(default_factory=list)
    written: list[LinkTransfer] = field(default_factory=list)
    answers: list[tuple[float, int, LinkTransfer]] = field(default_factory=list)


@dataclass(slots=True)
class _Seen:
    """A wait: the piece that comes behind it, and the words and the moment at which they were seen."""

    piece: LinkTransfer
    workgroup: _Identity
    event: CommunicationEvent


class Replay:
    """The network of a run; `add` each launch of each rank in its order, then `play`."""

    def __init__(self, system: System, ranks: int, clock_hz: float, workgroup_cycles: float) -> None:
        self.network = Network()
        self.steps: list[ReplayedStep] = []
        self.streams: set[int] = set()  # the agents that start launches
        self._fabric = system.fabric(self.network, ranks)
        self._latency = system["link_latency"]
        words = ("in", "out") if "switch_rate" in system else ()  # of every rank at once, and so one port for all of theirs
        self._switch = [(self.network.port(f"multicast {word}", system["switch_rate"]),) for word in words] or [(), ()]
        self._cycle, self._gap = 1e6 / clock_hz, workgroup_cycles
        self._ended: dict[int, LinkTransfer] = {}
        self._copied: dict[int, list[LinkTransfer]] = defaultdict(list)
        self._copies: list[tuple[RankCopy, LinkTransfer]] = []
        self._launches = 0
        self._seen: list[_Seen] = []
        self._changed: dict[int, dict[_Identity, list[_Change]]] = defaultdict(lambda: defaultdict(list))
        self._ways: dict[tuple[int, int, int, int], int] = {}

    def answer_us(self, rank: int, peer: int, nbytes: int) -> float:
        """Microseconds until a rank has bytes of another one's memory, where nothing else is on the way."""
        rate = min(self.network.ports[port].rate for port in self._fabric.path(peer, rank))
        return 2 * self._latency + nbytes / rate

    def add(
        self, rank: int, launch_us: float, workgroups: Sequence[WorkgroupExecution]
    ) -> tuple[LinkTransfer, LinkTransfer]:
        """A launch of a rank behind its others: its start, and its end."""
        number, self._launches = self._launches, self._launches + 1
        before = (*((self._ended[rank],) if rank in self._ended else ()), *self._copied.pop(rank, ()))
        stream = self.network.agent(f"rank {rank} launch {number}")
        self.streams.add(stream)
        begun = self._step(stream, launch_us, "launch", rank, None, before, "launch")
        ends: dict[int, LinkTransfer] = {}
        for one in workgroups:
            agent = self.network.agent(f"rank {rank} program {one.number}")
            pause, after = (self._gap, ends[one.after]) if one.after is not None else (0.0, begun)
            first = self._step(agent, pause * self._cycle, "launch", rank, one.number, (after,), "start")
            ends[one.number] = self._workgroup(number, one, _ReplayedWorkgroup(rank, one.number, agent, first))
        ended = tuple(ends.values()) or (begun,)
        self._ended[rank] = self._step(stream, 0.0, "launch", rank, None, ended, "end", behind=begun)
        return begun, self._ended[rank]

    def copy(self, one: RankCopy, launch_us: float) -> None:
        """A copy by an engine of the source's rank, behind the launches of both ranks, behind the engine's copies so far and behind
        those of other engines whose bytes it needs."""
        ranks = one.source, one.destination
        before = tuple(self._ended[rank] for rank in ranks if rank in self._ended)
        begun = self._step(self.network.agent("start of a copy"), launch_us, "launch", one.source, None, before, "start")
        way = (-1, one.source, -1, False)
        if way not in self._ways:
            self._ways[way] = self.network.agent(f"rank {one.source} copy engine")
        others = [(earlier, made) for earlier, made in self._copies if earlier.source != one.source]
        awaited = (begun, *(made for earlier, made in others if one.is_behind(earlier)))
        made = self._step(
            self._ways[way], float(one.nbytes), "transfers", one.source, None, awaited, "copy", latency=self._latency,
            ports=self._fabric.path(*ranks), peer=one.destination,
        )
        self._copies.append((one, made))
        for rank in ranks:
            self._copied[rank].append(made)

    def play(self) -> float:
        """Microseconds until every rank has ended."""
        self._join()
        return self.network.run()

    # --- a workgroup -----------------------------------------------------------------------------------------------------

    def _workgroup(self, launch: int, one: WorkgroupExecution, now: _ReplayedWorkgroup) -> LinkTransfer:
        identity = (launch, now.rank, now.number)
        for event in one.events:
            self._advance(now, event.cycle)
            if event.releases or event.words:
                self._synchronise(now, event, identity)
            self._access(now, event, identity)
        self._advance(now, one.cycles)
        self._release(now)
        return self._piece(now, 0.0)

    def _advance(self, now: _ReplayedWorkgroup, cycle: float) -> None:
        """Pieces up to a cycle, each of which ends where an answer is wanted."""
        while now.answers and now.answers[0][0] <= cycle:
            wanted, _, answer = heappop(now.answers)
            self._piece(now, wanted)
            now.awaited.append(answer)
        self._piece(now, cycle)

    def _piece(self, now: _ReplayedWorkgroup, cycle: float) -> LinkTransfer:
        """The piece that ends in a cycle, or the last one where it has ended there already."""
        if cycle > now.cycle or now.awaited:
            taken = max(cycle - now.cycle, 0.0) * self._cycle
            after = tuple(now.awaited)
            now.last = self._step(now.agent, taken, "compute", now.rank, now.number, after, "compute", behind=now.last)
            now.cycle = max(cycle, now.cycle)
            now.awaited.clear()
        return now.last

    def _synchronise(self, now: _ReplayedWorkgroup, event: CommunicationEvent, identity: _Identity) -> None:
        if event.releases:
            self._release(now)
        if event.sees:
            now.last = self._step(now.agent, 0.0, "compute", now.rank, now.number, tuple(now.awaited), "wait", behind=now.last)
            now.awaited.clear()
            self._seen.append(_Seen(now.last, identity, event))
        if event.changed and not event.writes and not event.reads:
            self._tell(event, self._piece(now, now.cycle), identity)

    def _release(self, now: _ReplayedWorkgroup) -> None:
        """The workgroup goes on when what it has written is acknowledged."""
        if now.written:
            now.awaited.append(self._acknowledged(now, tuple(now.written)))
            now.written.clear()

    def _access(self, now: _ReplayedWorkgroup, event: CommunicationEvent, identity: _Identity) -> None:
        """Transfers to and from other ranks."""
        part: Part = "signals" if event.words else "transfers"
        if event.reads or event.writes:
            self._piece(now, now.cycle)
        if event.multicast and (event.reads or event.writes):
            self._multicast(now, event, identity, part)
            return
        for peer, nbytes in event.writes.items():
            sent = self._transfer(now, now.rank, peer, nbytes, part, self._latency)
            now.written.append(sent)
            if event.changed:
                self._tell(event, sent, identity)
        for peer, nbytes in event.reads.items():
            if event.changed:  # an atomic: its word has the new value before its answer is back
                sent = self._transfer(now, now.rank, peer, nbytes, part, self._latency)
                self._tell(event, sent, identity)
                answer = self._acknowledged(now, (sent,))
            else:
                answer = self._transfer(now, peer, now.rank, nbytes, part, 2 * self._latency)
            heappush(now.answers, (event.cycle + event.remote_latency, len(self.steps), answer))

    def _multicast(self, now: _ReplayedWorkgroup, event: CommunicationEvent, identity: _Identity, part: Part) -> None:
        """What is read leaves every rank once and comes as one; what is written leaves once and comes to every rank."""
        if event.reads:
            ways = [self._fabric.path(peer, now.rank) for peer in event.reads]
            nbytes, latency = max(event.reads.values()), 2 * self._latency
        else:
            ways = [self._fabric.path(now.rank, peer) for peer in event.writes]
            nbytes, latency = max(event.writes.values()), self._latency
        ports = tuple(dict.fromkeys([*(port for way in ways for port in way), *self._switch[bool(event.reads)]]))
        way = (now.agent, now.rank, now.rank, bool(event.reads))
        if way not in self._ways:
            said = "combined" if event.reads else "to all"
            self._ways[way] = self.network.agent(f"rank {now.rank} program {now.number} {said}")
        made = self._step(
            self._ways[way], float(nbytes), part, now.rank, now.number, (now.last,), part[:-1], latency=latency, ports=ports
        )
        if event.changed:
            self._tell(event, made, identity)
        if event.reads:
            heappush(now.answers, (event.cycle + event.remote_latency, len(self.steps), made))
        else:
            now.written.append(made)

    def _acknowledged(self, now: _ReplayedWorkgroup, written: Iterable[LinkTransfer]) -> LinkTransfer:
        """When a workgroup knows that what it has written is there."""
        return self._step(
            self.network.agent("acknowledgement"), 0.0, "signals", now.rank, now.number, written, "acknowledged",
            latency=self._latency,
        )

    def _transfer(self, now: _ReplayedWorkgroup, source: int, target: int, nbytes: int, part: Part, latency: float) -> LinkTransfer:
        peer = target if source == now.rank else source
        way = (now.agent, source, target, part == "signals")
        if way not in self._ways:
            said = f"{'signals ' if part == 'signals' else ''}{f'to {peer}' if source == now.rank else f'from {peer}'}"
            self._ways[way] = self.network.agent(f"rank {now.rank} program {now.number} {said}")
        return self._step(
            self._ways[way], float(nbytes), part, now.rank, now.number, (now.last,), part[:-1], latency=latency,
            ports=self._fabric.path(source, target), peer=peer,
        )

    def _tell(self, event: CommunicationEvent, known: LinkTransfer, identity: _Identity) -> None:
        for word in event.words:
            self._changed[word][identity].append((event.moment, known))

    def _step(
        self, agent: int, size: float, part: Part, rank: int, workgroup: int | None, after: Iterable[LinkTransfer], name: str, *,
        latency: float = 0.0, ports: tuple[int, ...] = (), behind: LinkTransfer | None = None, peer: int | None = None,
    ) -> LinkTransfer:
        """One transfer of the network, and what it stands for. `behind`: the one before it of its agent."""
        after = tuple(after)
        limit = float("inf") if ports else 1.0
        made = self.network.transfer(agent, ports, size, latency, after=after, limit=limit, name=name)
        before = after if behind is None else (*after, behind)
        self.steps.append(ReplayedStep(part, rank, workgroup, before, round(size) if ports else 0, peer))
        return made

    # --- words -----------------------------------------------------------------------------------------------------------

    def _join(self) -> None:
        """Each wait behind the writes of its words that it needed."""
        seen_before: dict[tuple[_Identity, int, _Identity], int] = defaultdict(int)
        for told in self._changed.values():
            for changes in told.values():
                changes.sort(key=_moment)
        for seen in sorted(self._seen, key=lambda one: one.event.moment):
            needed = []
            for word in seen.event.words:
                told = {writer: told for writer, told in self._changed[word].items() if writer != seen.workgroup}
                needed += _needed(told, seen, word, seen_before)
            self.network.depend(seen.piece, needed)
            step = self.steps[seen.piece.number]
            self.steps[seen.piece.number] = replace(step, before=(*step.before, *needed))


def _needed(
    told: Mapping[_Identity, Sequence[_Change]], seen: _Seen, word: int, before: dict[tuple[_Identity, int, _Identity], int]
) -> list[LinkTransfer]:
    """Of each workgroup's changes of a word those that a wait for it needed: all that it had seen when they were not yet enough,
    and one of each workgroup of which it had seen none; of all, where none of these tells what was missing. What earlier waits
    have needed came before."""
    found: list[LinkTransfer] = []
    missing = False
    ranges: dict[_Identity, tuple[int, int, int]] = {}
    for writer, changes in told.items():
        first = before[seen.workgroup, word, writer]
        not_enough = max(first, bisect_left(changes, seen.event.failed, key=_moment))
        there = max(not_enough, bisect_left(changes, seen.event.moment, key=_moment))
        ranges[writer] = first, not_enough, there
        missing = missing or (first == not_enough < there)
    for writer, (first, not_enough, there) in ranges.items():
        one_more = not_enough < there and (first == not_enough or not missing)
        last = before[seen.workgroup, word, writer] = not_enough + one_more
        found += [known for _, known in told[writer][first:last]]
    return found


def _moment(change: _Change) -> int:
    return change[0]
