"""Links between the chips of a node: what is sent at a cycle appears at the other end so many cycles later."""

from __future__ import annotations

from tilefw_spatial.machine import Machine
from tilefw_spatial.simulate.burst import Burst
from tilefw_spatial.simulate.chip import Request, SpatialChip
from tilefw_spatial.simulate.findings import Faults
from tilefw_spatial.simulate.line import Line, LineSegment


class Links:
    """Every link of every chip; keys are cycles of arrival. All chips count the same cycles."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lines: dict[tuple[int, int], Line] = {}
        self._last: dict[tuple[int, int], Burst] = {}

    def send(self, chip: SpatialChip, burst: Burst) -> int:
        """SND: what passes now leaves."""
        machine, end = self._machine, (chip.number, burst.queue.number)
        ((vector,), tainted, _) = chip.take(burst, [Request(burst.inst.a, 1, burst.time, 1, 1)])
        before = self._last.get(end)
        if before is not None and burst.time - before.time < machine.link_interval:
            message = f"link {burst.queue.number} takes a vector each {machine.link_interval} cycles"
            chip.findings.add(Faults.LINK, message, burst, burst.time, other=before)
        self._last[end] = burst
        line = self._lines.setdefault(end, Line())
        line.add(LineSegment(burst.time + machine.delays["link"], 1, 1, vector[0], tainted, burst))
        return 1

    def receive(self, chip: SpatialChip, burst: Burst) -> int:
        """RCV: the vector that arrives now, on a stream."""
        machine, link = self._machine, burst.queue.number
        if link >= machine.local_links:
            chip.findings.add(Faults.LINK, f"link {link} leads out of the node", burst, burst.time)
            return 1
        peer = machine.peer(chip.number, link)
        line = self._lines.get((peer, machine.link(peer, chip.number)))
        found = None if line is None else line.find(burst.time, 1, 1)
        if found is None or found.values is None:
            chip.findings.add(Faults.LINK, f"nothing arrives from chip {peer} by link {link}", burst, burst.time)
            return 1
        chip.put(burst, burst.inst.dst, burst.time, 1, found.values, found.tainted)
        return 1
