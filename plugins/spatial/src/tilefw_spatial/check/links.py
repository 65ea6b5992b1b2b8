"""Links between chips: no vector too soon after another, and each that is sent is received in the cycle of its arrival."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tilefw_spatial.check.flow import Edge
from tilefw_spatial.check.problem import LINK, CheckedBurst, Problem, at
from tilefw_spatial.isa import OPS
from tilefw_spatial.machine import Machine


def check_links(machine: Machine, bursts: list[CheckedBurst]) -> tuple[list[Problem], list[Edge]]:
    """Problems of all links, and what each receive receives."""
    sends = sorted((b for b in bursts if OPS[b.inst.op][0].name == "SND"), key=lambda b: (b.chip, b.plane, b.time))
    problems = list(_too_soon(machine, sends))
    arriving = {(b.chip, b.plane, b.time + machine.delays["link"]): b for b in sends}
    edges: list[Edge] = []
    for burst in bursts:
        if OPS[burst.inst.op][0].name != "RCV":
            continue
        if burst.plane >= machine.local_links:
            problems.append(at(LINK, f"{burst}: link {burst.plane} leads out of the node", burst))
            continue
        peer = machine.peer(burst.chip, burst.plane)
        send = arriving.pop((peer, machine.link(peer, burst.chip), burst.time), None)
        if send is None:
            problems.append(at(LINK, f"{burst}: nothing arrives from chip {peer}", burst))
        else:
            edges.append(Edge(burst.number, "link", 0, 1, send.number, 0, 0))
    problems += [at(LINK, f"what {send} sends is not received in cycle {cycle}", send) for (_, _, cycle), send in arriving.items()]
    return problems, edges


def _too_soon(machine: Machine, sends: list[CheckedBurst]) -> Iterator[Problem]:
    for first, second in pairwise(sends):
        same = (first.chip, first.plane) == (second.chip, second.plane)
        if same and second.time - first.time < machine.link_interval:
            yield at(LINK, f"{second} follows {first}: a link takes a vector each {machine.link_interval} cycles", second)
