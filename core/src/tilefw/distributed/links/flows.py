"""Transfers over shared ports, event by event: each runs at the rate that max-min fairness gives it on the ports it crosses.

A transfer begins when the ones it waits for have arrived and its agent (an engine that does one thing after the other) is
free. It holds its agent until its last byte has left, and has arrived `latency` later. Rates are bytes per microsecond.
Source of the sharing rule: Bertsekas and Gallager, "Data Networks", 6.5.2, max-min flow control.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from tilefw.api.errors import CodeError

_CODE = "TFW0669"
_SAME = 1e-9  # rates and times nearer than this share of themselves are one


@dataclass(slots=True)
class LinkTransfer:
    """`size` bytes over `ports`, at most at `limit`; without ports it is work of the agent itself."""

    number: int
    agent: int
    ports: tuple[int, ...]
    size: float
    limit: float
    latency: float
    name: str
    waits: int = 0
    on_sent: list[LinkTransfer] = field(default_factory=list)
    on_arrived: list[LinkTransfer] = field(default_factory=list)
    begin: float = -1.0
    sent: float = -1.0


@dataclass(frozen=True, slots=True)
class Port:
    """A direction of a link, or a unit that transfers share."""

    name: str
    rate: float


class Network:
    """Ports and the transfers that are to cross them. `run` once, when all are there."""

    def __init__(self) -> None:
        self.ports: list[Port] = []
        self.agents: list[str] = []
        self.transfers: list[LinkTransfer] = []
        self._last: list[LinkTransfer | None] = []

    def port(self, name: str, rate: float) -> int:
        """A new port of `rate` bytes per microsecond; raises CodeError TFW0669."""
        if not 0 < rate < float("inf"):
            raise CodeError(f"the rate of port {name} is {rate}: it is finite and above 0", code=_CODE)
        self.ports.append(Port(name, rate))
        return len(self.ports) - 1

    def agent(self, name: str) -> int:
        """A new engine that does its transfers in the order in which they are added."""
        self.agents.append(name)
        self._last.append(None)
        return len(self.agents) - 1

    def transfer(
        self, agent: int, ports: tuple[int, ...], size: float, latency: float = 0.0, *,
        after: Iterable[LinkTransfer] = (), limit: float = float("inf"), name: str = "",
    ) -> LinkTransfer:
        """A new transfer behind the agent's others; raises CodeError TFW0669 for bytes that would never arrive."""
        if not (size >= 0 and latency >= 0 and limit > 0) or (size > 0 and not ports and limit == float("inf")):
            said = f"transfer {name or len(self.transfers)} of {size} bytes, latency {latency}, at most at {limit}, never arrives"
            raise CodeError(said, code=_CODE)
        new = LinkTransfer(len(self.transfers), agent, ports, size, limit, latency, name)
        self.transfers.append(new)
        before = self._last[agent]
        if before is not None:
            before.on_sent.append(new)
            new.waits += 1
        self._last[agent] = new
        self.depend(new, after)
        return new

    def depend(self, new: LinkTransfer, after: Iterable[LinkTransfer]) -> None:
        """A transfer begins no sooner than these have arrived."""
        for one in after:
            one.on_arrived.append(new)
            new.waits += 1

    def gate(self, after: Iterable[LinkTransfer]) -> LinkTransfer:
        """What is there when all of `after` have arrived."""
        return self.transfer(self.agent("gate"), (), 0.0, after=after, name="gate")

    def run(self) -> float:
        """Microseconds until the last transfer has arrived. Raises CodeError TFW0669 if some wait for each other, and the second
        time."""
        if any(one.begin >= 0 for one in self.transfers):
            raise CodeError("these transfers have been played", code=_CODE, help="make a new Network of them")
        return _Playback(self.ports, self.transfers).until_the_end()

    def bytes_through(self) -> list[float]:
        """What each port carried."""
        carried = [0.0] * len(self.ports)
        for one in self.transfers:
            for port in one.ports:
                carried[port] += one.size
        return carried


@dataclass(slots=True)
class _Bundle:
    """Transfers over the same ports under the same limit, which always have the same rate: when `served` bytes have gone to each,
    those end that `ends` has with as many."""

    number: int
    ports: tuple[int, ...]
    limit: float
    ends: list[tuple[float, int]] = field(default_factory=list)
    served: float = 0.0
    since: float = 0.0
    rate: float = 0.0
    version: int = 0


class _Playback:
    """Time moves from event to event; events of one moment are taken together, then rates are shared anew where flows changed."""

    def __init__(self, ports: Sequence[Port], transfers: Sequence[LinkTransfer]) -> None:
        self.rates = [port.rate for port in ports]
        self.active: list[set[int]] = [set() for _ in ports]  # bundles with transfers, by port
        self.transfers = transfers
        self.bundles: list[_Bundle] = []
        self.by_way: dict[tuple[tuple[int, ...], float], _Bundle] = {}
        self.heap: list[tuple[float, int, int]] = []  # time, bundle, its version; ~number and -1: the transfer has arrived
        self.changed: dict[int, None] = {}  # ports, in an order that is the same in every run
        self.now = self.end = 0.0
        self.done = 0

    def until_the_end(self) -> float:
        for one in [one for one in self.transfers if not one.waits]:  # beginning some may free others
            self._begin(one)
        self._share()
        heap = self.heap
        while heap:
            self.now = heap[0][0]
            limit = self.now * (1 + _SAME)
            while heap and heap[0][0] <= limit:
                _, number, version = heappop(heap)
                if version == -1:
                    self._release(self.transfers[~number].on_arrived)
                elif version == self.bundles[number].version:
                    self._end_first(self.bundles[number])
            if self.changed:
                self._share()
        if self.done < len(self.transfers):
            stuck = next(one for one in self.transfers if one.sent < 0)
            raise CodeError(f"transfer {stuck.name or stuck.number} never begins: it waits for itself", code=_CODE)
        return self.end

    def _release(self, waiting: list[LinkTransfer]) -> None:
        for one in waiting:
            one.waits -= 1
            if not one.waits:
                self._begin(one)

    def _begin(self, one: LinkTransfer) -> None:
        one.begin = self.now
        if not one.size:
            self._sent(one)
            return
        bundle = self.by_way.get((one.ports, one.limit))
        if bundle is None:
            bundle = _Bundle(len(self.bundles), one.ports, one.limit)
            self.bundles.append(bundle)
            self.by_way[one.ports, one.limit] = bundle
        if bundle.ends:
            self._serve(bundle)
        else:
            bundle.served, bundle.since, bundle.rate = 0.0, self.now, 0.0
            for port in one.ports:
                self.active[port].add(bundle.number)
        heappush(bundle.ends, (bundle.served + one.size, one.number))
        self._mark(bundle)

    def _mark(self, bundle: _Bundle) -> None:
        if bundle.ports:
            for port in bundle.ports:
                self.changed[port] = None
        elif bundle.ends:  # work of agents alone, which nothing else slows
            self._set_rate(bundle, bundle.limit)

    def _serve(self, bundle: _Bundle) -> None:
        bundle.served += bundle.rate * (self.now - bundle.since)
        bundle.since = self.now

    def _end_first(self, bundle: _Bundle) -> None:
        """The transfer with the fewest bytes left has ended, and all that have as few."""
        ends = bundle.ends
        bundle.served, bundle.since = ends[0][0], self.now
        bundle.version += 1
        most = bundle.served * (1 + _SAME)
        ended = []
        while ends and ends[0][0] <= most:
            ended.append(self.transfers[heappop(ends)[1]])
        if not ends:
            for port in bundle.ports:
                self.active[port].discard(bundle.number)
        self._mark(bundle)
        for one in ended:
            self._sent(one)

    def _sent(self, one: LinkTransfer) -> None:
        one.sent = self.now
        self.done += 1
        arrived = self.now + one.latency
        self.end = max(self.end, arrived)
        if one.latency and one.on_arrived:
            heappush(self.heap, (arrived, ~one.number, -1))
        else:
            self._release(one.on_arrived)
        self._release(one.on_sent)

    def _share(self) -> None:
        active, changed = self.active, self.changed
        while changed:
            users = active[changed.popitem()[0]]
            if not users:
                continue
            bundle = self.bundles[next(iter(users))]
            rate, count = bundle.limit, len(bundle.ends)
            for port in bundle.ports:
                if len(active[port]) != 1:
                    self._fill(self._bundles_that_meet(bundle))
                    break
                rate = min(rate, self.rates[port] / count)
            else:
                for port in bundle.ports:
                    changed.pop(port, None)
                self._set_rate(bundle, rate)

    def _bundles_that_meet(self, first: _Bundle) -> dict[int, _Bundle]:
        """All bundles that share a port with one that shares a port … with the first."""
        found = {first.number: first}
        ports = list(first.ports)
        seen = set(ports)
        while ports:
            port = ports.pop()
            self.changed.pop(port, None)
            for number in self.active[port]:
                if number not in found:
                    found[number] = bundle = self.bundles[number]
                    new = [p for p in bundle.ports if p not in seen]
                    seen.update(new)
                    ports += new
        return found

    def _fill(self, waiting: dict[int, _Bundle]) -> None:
        """Max-min: the tightest port or limit decides for its transfers, then the rest share what is left."""
        left: dict[int, float] = {}
        count: dict[int, int] = {}
        for one in waiting.values():
            for port in one.ports:
                left[port] = self.rates[port]
                count[port] = count.get(port, 0) + len(one.ends)
        while waiting:
            fair = {port: left[port] / count[port] for port in left if count[port]}
            bounds = {number: min(one.limit, *(fair[port] for port in one.ports)) for number, one in waiting.items()}
            rate = min(bounds.values())
            for number, bound in bounds.items():
                if bound > rate * (1 + _SAME):
                    continue
                one = waiting.pop(number)
                self._set_rate(one, rate)
                for port in one.ports:
                    left[port] = max(left[port] - rate * len(one.ends), 0.0)
                    count[port] -= len(one.ends)

    def _set_rate(self, bundle: _Bundle, rate: float) -> None:
        self._serve(bundle)
        bundle.rate = rate
        bundle.version += 1
        heappush(self.heap, (self.now + (bundle.ends[0][0] - bundle.served) / rate, bundle.number, bundle.version))
