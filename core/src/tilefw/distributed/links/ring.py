"""Ring collectives: what every rank's channels do, chunk by chunk and slice by slice, as transfers to the next rank.

Source: nccl `src/device/all_reduce.h`, `all_gather.h`, `reduce_scatter.h` (runRing): a chunk goes once around to be reduced
and once more to be spread. A rank's channels do the same at the same time and stand here as one engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.distributed.links.fabric import Fabric
from tilefw.distributed.links.flows import LinkTransfer, Network


@dataclass(frozen=True, slots=True)
class RingProtocol:
    """How a protocol moves a chunk: `rate` of a rank's channels together (bytes per us), `step` us until the next rank has
    seen a slice, `chunk` bytes of all channels at most, `slices` of a chunk, `copy`: the time of the last step's local copy by
    that of sending as much. The first `ramp_bytes` that a rank sends move at `ramp_rate`."""

    rate: float
    step: float
    chunk: float
    slices: int
    copy: float
    ramp_bytes: float = 0.0
    ramp_rate: float = float("inf")

    def limit(self, sent: float, size: float) -> float:
        """The rate of `size` bytes after a rank has sent `sent`."""
        slow = min(max(self.ramp_bytes - sent, 0.0), size)
        return size / (slow / min(self.rate, self.ramp_rate) + (size - slow) / self.rate)


def ring_collective(network: Network, ring: Fabric, size: float, steps: int, protocol: RingProtocol) -> None:
    """Every one of as many parts of `size` bytes as there are ranks is sent `steps` times, then copied to where it belongs.
    All-gather and reduce-scatter have n - 1 sends, all-reduce has 2 (n - 1)."""
    agents = [network.agent(f"rank {rank}") for rank in range(len(ring))]
    part = size / len(ring)
    loops = max(1, -int(-part // protocol.chunk))
    piece = part / loops / protocol.slices
    sent = 0.0
    for loop in range(loops):
        arrived: list[list[LinkTransfer]] = []
        for step in range(steps):
            limit = protocol.limit(sent, piece * protocol.slices)
            arrived = _step(network, ring, agents, piece, protocol, limit, arrived, f"chunk {loop} step {step}")
            sent += piece * protocol.slices
        for rank, slices in enumerate(arrived):
            for one in slices:
                size_of_copy = piece * protocol.copy
                network.transfer(agents[rank], (), size_of_copy, after=(one,), limit=protocol.rate, name=f"chunk {loop} copy")


def _step(
    network: Network, ring: Fabric, agents: Sequence[int], piece: float, protocol: RingProtocol, limit: float,
    arrived: Sequence[Sequence[LinkTransfer]], name: str,
) -> list[list[LinkTransfer]]:
    """Every rank sends its slices to the next; returned is what arrives at each."""
    sent: list[list[LinkTransfer]] = []
    for rank, agent in enumerate(agents):
        waits, path = arrived[rank] if arrived else (), ring.ring_path(rank)
        sent.append([
            network.transfer(agent, path, piece, protocol.step, after=waits[one : one + 1], limit=limit, name=f"{name} slice {one}")
            for one in range(protocol.slices)
        ])
    return [sent[rank - 1] for rank in range(len(ring))]
