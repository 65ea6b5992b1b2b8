"""All-to-all: every rank copies its own part, then sends a part to each other rank, all at once through its port.

Source: nccl `src/device/sendrecv.h`: the blocks of a rank serve several peers each, the rank itself as one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.distributed.links.fabric import Fabric
from tilefw.distributed.links.flows import Network


@dataclass(frozen=True, slots=True)
class Exchange:
    """`rate`: bytes per us of a rank's blocks together, `copy_rate` those of its copy to itself; the first `ramp_bytes` that a
    rank sends move at `ramp_rate`."""

    rate: float
    copy_rate: float
    ramp_bytes: float = 0.0
    ramp_rate: float = float("inf")


def all_to_all(network: Network, fabric: Fabric, size: float, exchange: Exchange) -> None:
    """`size` bytes of each rank, in as many parts as there are ranks."""
    ranks = len(fabric)
    part = size / ranks
    warm = min(part * (ranks - 1), exchange.ramp_bytes) / (ranks - 1) if exchange.ramp_rate < exchange.rate else 0.0
    blocks = [network.port(f"rank {rank} blocks", exchange.rate) for rank in range(ranks)]
    slow = [network.port(f"rank {rank} first blocks", exchange.ramp_rate) for rank in range(ranks)] if warm else []
    for rank in range(ranks):
        copy = network.transfer(network.agent(f"rank {rank} copy"), (), part, limit=exchange.copy_rate, name="copy to itself")
        for distance in range(1, ranks):
            peer = (rank + distance) % ranks
            ports = fabric.path(rank, peer)
            agent = network.agent(f"rank {rank} to {peer}")
            if warm:
                network.transfer(agent, (*ports, slow[rank]), warm, after=(copy,), name=f"first to {peer}")
            if part > warm:
                network.transfer(agent, (*ports, blocks[rank]), part - warm, after=(copy,), name=f"to {peer}")
