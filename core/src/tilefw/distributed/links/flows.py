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
    rate: float = 0.0
    left: float = 0.0
    since: float = 0.0
    version: int = 0


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
        if size < 0 or latency < 0 or (size > 0 and not ports and limit == float("inf")):
            raise CodeError(f"transfer {name or len(self.transfers)} has {size} bytes and no rate", code=_CODE)
        new = LinkTransfer(len(self.transfers), agent, ports, size, limit, latency, name)
        self.transfers.append(new)
        before = self._last[agent]
        if before is not None:
            before.on_sent.append(new)
            new.waits += 1
        self._last[agent] = new
        for one in after:
            one.on_arrived.append(new)
            new.waits += 1
        return new

    def gate(self, after: Iterable[LinkTransfer]) -> LinkTransfer:
        """What is there when all of `after` have arrived."""
        return self.transfer(self.agent("gate"), (), 0.0, after=after, name="gate")

    def run(self) -> float:
        """Microseconds until the last transfer has arrived; raises CodeError TFW0669 if some wait for each other."""
        return _Playback(self.ports, self.transfers).until_the_end()

    def bytes_through(self) -> list[float]:
        """What each port carried."""
        carried = [0.0] * len(self.ports)
        for one in self.transfers:
            for port in one.ports:
                carried[port] += one.size
        return carried


class _Playback:
    """Time moves from event to event; events of one moment are taken together, then rates are shared anew where flows changed."""

    def __init__(self, ports: Sequence[Port], transfers: Sequence[LinkTransfer]) -> None:
        self.rates = [port.rate for port in ports]
        self.active: list[set[int]] = [set() for _ in ports]
        self.transfers = transfers
        self.heap: list[tuple[float, int, int]] = []  # time, number, version; version -1: the transfer has arrived
        self.changed: set[int] = set()
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
                one = self.transfers[number]
                if version == -1:
                    self._release(one.on_arrived)
                elif version == one.version:
                    self._sent(one)
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
        now = self.now
        one.begin = one.since = now
        one.left = one.size
        if not one.size:
            self._sent(one)
            return
        alone = True
        for port in one.ports:
            users = self.active[port]
            users.add(one.number)
            alone = alone and len(users) == 1
        if not alone:
            self.changed.update(one.ports)
            return
        rate = one.limit
        for port in one.ports:
            rate = min(rate, self.rates[port])
        one.rate = rate
        one.version += 1
        heappush(self.heap, (now + one.size / rate, one.number, one.version))

    def _sent(self, one: LinkTransfer) -> None:
        one.sent = self.now
        one.rate = 0.0
        one.version += 1
        self.done += 1
        if one.size:
            for port in one.ports:
                users = self.active[port]
                users.discard(one.number)
                if users:
                    self.changed.add(port)
        arrived = self.now + one.latency
        self.end = max(self.end, arrived)
        if one.latency and one.on_arrived:
            heappush(self.heap, (arrived, one.number, -1))
        else:
            self._release(one.on_arrived)
        self._release(one.on_sent)

    def _share(self) -> None:
        while self.changed:
            flows = self._flows_that_meet(self.changed.pop())
            if flows:
                self._fill(flows)

    def _flows_that_meet(self, port: int) -> set[int]:
        """All flows that share a port with one that shares a port … with a flow of this one."""
        flows: set[int] = set()
        ports, seen = [port], {port}
        while ports:
            for number in self.active[ports.pop()] - flows:
                flows.add(number)
                new = [p for p in self.transfers[number].ports if p not in seen]
                seen.update(new)
                ports += new
        self.changed -= seen
        return flows

    def _fill(self, flows: set[int]) -> None:
        """Max-min: the tightest port or limit decides for its flows, then the rest share what is left."""
        open_flows = {number: self.transfers[number] for number in flows}
        left: dict[int, float] = {}
        count: dict[int, int] = {}
        for one in open_flows.values():
            for port in one.ports:
                left[port] = self.rates[port]
                count[port] = count.get(port, 0) + 1
        while open_flows:
            fair = {port: left[port] / count[port] for port in left if count[port]}
            bounds = {n: min(one.limit, *(fair[p] for p in one.ports)) for n, one in open_flows.items()}
            rate = min(bounds.values())
            for number, bound in bounds.items():
                if bound > rate * (1 + _SAME):
                    continue
                one = open_flows.pop(number)
                self._set_rate(one, rate)
                for port in one.ports:
                    left[port] = max(left[port] - rate, 0.0)
                    count[port] -= 1

    def _set_rate(self, one: LinkTransfer, rate: float) -> None:
        if abs(rate - one.rate) <= _SAME * rate:
            return
        one.left = max(one.left - one.rate * (self.now - one.since), 0.0)
        one.since, one.rate = self.now, rate
        one.version += 1
        heappush(self.heap, (self.now + one.left / rate, one.number, one.version))
