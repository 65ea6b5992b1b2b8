"""How the devices of a node are joined, as ports: to a switch by a way out and a way in each, or pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.distributed.links.flows import Network


@dataclass(frozen=True, slots=True)
class Fabric:
    """`egress` and `ingress` of every rank; `pairs` has the link from a rank to another where devices are joined pair by pair."""

    egress: Sequence[int]
    ingress: Sequence[int]
    pairs: dict[tuple[int, int], int]

    def __len__(self) -> int:
        return len(self.egress)

    def path(self, source: int, target: int) -> tuple[int, ...]:
        """The ports of a transfer: what the two devices pass together, and the link between them where they have one."""
        pair = self.pairs.get((source, target))
        ends = self.egress[source], self.ingress[target]
        return ends if pair is None else (pair, *ends)

    def ring_path(self, rank: int) -> tuple[int, ...]:
        """The ports of a rank's transfer to the next of all rings together: a mesh of n has n - 1 rings, one for each link."""
        return self.egress[rank], self.ingress[(rank + 1) % len(self)]


def switched(network: Network, ranks: int, rate: float) -> Fabric:
    """Devices around a switch that passes whatever their ports carry."""
    egress = [network.port(f"rank {rank} out", rate) for rank in range(ranks)]
    return Fabric(egress, [network.port(f"rank {rank} in", rate) for rank in range(ranks)], {})


def mesh(network: Network, ranks: int, rate: float, most: float) -> Fabric:
    """Devices with a link of `rate` to each other one; a device's links together, which may pass `most`, are its way out and in
    for rings."""
    around = switched(network, ranks, min(rate * (ranks - 1), most))
    pairs = {
        (one, other): network.port(f"link {one} to {other}", rate) for one in range(ranks) for other in range(ranks) if one != other
    }
    return Fabric(around.egress, around.ingress, pairs)
