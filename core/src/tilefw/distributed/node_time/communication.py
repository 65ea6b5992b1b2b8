"""Where a wave speaks to other ranks: accesses to their memory, words that synchronise, and what makes its writes known before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilefw.api.execution_trace import CHUNK
from tilefw.sim.program import MULTICAST, Sink
from tilefw.timing.streams import WaveAccess, WaveStream

RELEASES = frozenset({"release", "acq_rel", "seq_cst"})


@dataclass(slots=True)
class CommunicationEvent:
    """An instruction of a wave (its place among the processor's, and the instruction's in its stream) that issues `cycle` cycles
    after its processor began. `reads`, `writes`: bytes of each other rank's memory. `words` synchronise; `moment`: their place in
    the simulator's order, `changed`: they have other values since, `sees`: the wave learns what they held,
    and `failed` is the last moment at which that was not enough. `releases`: what its workgroup wrote before is there before it.
    `remote_latency`: cycles until what it asks of others is there, if nobody else is on the way. `multicast`: the fabric combines
    what it reads of all, or spreads what it writes to all."""

    wave: int
    place: int
    reads: Mapping[int, int]
    writes: Mapping[int, int]
    words: tuple[int, ...] = ()
    moment: int = 0
    changed: bool = False
    sees: bool = False
    failed: int = 0
    releases: bool = False
    remote_latency: float = 0.0
    cycle: float = 0.0
    multicast: bool = False


@dataclass(frozen=True, slots=True)
class RankAddresses:
    """What tells whose memory an address is in: `rank_of` (None: no heap's), this `rank`, and for a peer and bytes the cycles until
    they are there."""

    rank: int
    rank_of: Callable[[int], int | None]
    answer: Callable[[int, int], float]
    known: dict[int, int | None] = field(default_factory=dict)

    def owners_of(self, chunks: Sequence[int]) -> Mapping[int, int]:
        """How many of the chunks, which are in order, each rank has; what is in no heap is the rank's own."""
        if not chunks:
            return {}
        first, last = self._owner(chunks[0]), self._owner(chunks[-1])
        if first == last:  # so are those between them: a heap is one stretch, and what is in none lies below all
            return {self.rank if first is None else first: len(chunks)}
        return Counter(self.rank if (owner := self._owner(chunk)) is None else owner for chunk in chunks)

    def _owner(self, chunk: int) -> int | None:
        if chunk not in self.known:
            self.known[chunk] = self.rank_of(chunk * CHUNK)
        return self.known[chunk]


def communication(
    streams: Sequence[WaveStream], instructions: Sequence[Any], addresses: RankAddresses
) -> list[CommunicationEvent]:
    """The events of waves of one rank. Their accesses are marked, so that the processor's model says when they issue, and it no
    longer sees in its own memory those that go to other ranks."""
    found = []
    for wave, stream in enumerate(streams):
        for place in sorted(stream.accesses):
            event = _event(wave, place, stream.accesses[place], instructions[stream.instructions[place]], addresses)
            if event is not None:
                stream.accesses[place][0].marked = True
                found.append(event)
    return found


def _event(
    wave: int, place: int, accesses: Sequence[WaveAccess], instruction: Any, addresses: RankAddresses
) -> CommunicationEvent | None:
    reads, writes = defaultdict[int, int](int), defaultdict[int, int](int)
    answered = any(not isinstance(operand, Sink) for operand in instruction.destinations)
    latency = 0.0
    for access in accesses:
        peers = dict(addresses.owners_of(access.chunks))
        peers.pop(addresses.rank, None)
        if not peers:
            continue
        asks = access.kind == "read" or (access.kind == "atomic" and answered)
        for peer, chunks in peers.items():
            (reads if asks else writes)[peer] += chunks * CHUNK
            latency = max(latency, addresses.answer(peer, chunks * CHUNK)) if asks else latency
        access.remote_latency = latency if asks else 0.0  # nobody waits for what is written
    words = tuple(word for access in accesses for word in access.words)
    releases = any(access.order in RELEASES for access in accesses)
    if not (reads or writes or words or releases):
        return None
    kinds = {access.kind for access in accesses if access.words}
    return CommunicationEvent(
        wave, place, reads, writes, words, max(access.moment for access in accesses), any(access.changed for access in accesses),
        "read" in kinds or ("atomic" in kinds and answered), max(access.failed for access in accesses), releases, latency,
        multicast=instruction.unit == MULTICAST,
    )
