"""Transfers a second of processor time that the model of links plays: a ring, all pairs through a switch, and nodes of nodes."""

from __future__ import annotations

import time
from collections.abc import Callable

from tilefw.distributed.links import Network, read_system
from tilefw.distributed.links.exchange import Exchange, all_to_all
from tilefw.distributed.links.nodes import NodesOfDevices, all_reduce_of_nodes
from tilefw.distributed.links.ring import ring_collective

_ROUNDS = 3


def speed_lines() -> list[str]:
    """A table, the best of some rounds; making the transfers is not counted."""
    system = read_system("tilefw_nvidia.systems", "h100_sxm")

    def ring(network: Network) -> None:
        ring_collective(network, system.fabric(network, 8), 64 << 30, 14, system.ring("simple", 8))

    def pairs(network: Network) -> None:
        all_to_all(network, system.fabric(network, 64), 1 << 28, Exchange(system["exchange_rate"], system["exchange_copy_rate"]))

    def nodes(count: int) -> Callable[[Network], None]:
        joined = NodesOfDevices(count, 262e3, 360e3, 10.0, 192e6)
        return lambda network: all_reduce_of_nodes(network, joined, 1 << 30)

    cases = {
        "all-reduce of 64 GiB, 8 ranks, a ring": ring,
        "all-to-all, 64 ranks": pairs,
        "all-reduce of 1 GiB, 64 nodes (512 ranks), a ring": nodes(64),
        "all-reduce of 1 GiB, 1,250 nodes (10,000 ranks), trees": nodes(1250),
    }
    lines = ["| what is played | transfers | transfers a processor second | processor seconds |", "|---|---|---|---|"]
    for name, add in cases.items():
        count, seconds = min((_played(add) for _ in range(_ROUNDS)), key=lambda one: one[1])
        lines.append(f"| {name} | {count:,} | {count / seconds:,.0f} | {seconds:.2f} |")
    return lines


def _played(add: Callable[[Network], None]) -> tuple[int, float]:
    network = Network()
    add(network)
    start = time.process_time()
    network.run()
    return len(network.transfers), time.process_time() - start
