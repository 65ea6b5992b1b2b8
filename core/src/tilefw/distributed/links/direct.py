"""All-reduces that a kernel does by itself, by loads and stores to its peers: one shot, two shots, and in the switch.

One shot: every rank reads all others' arrays. Two shots: every rank reduces its part, then all read the parts. Both begin and
end with a barrier of flags. Sources: vllm-project/vllm `csrc/custom_all_reduce.cuh`, microsoft/mscclpp `apps/nccl`, PyTorch's
`symm_mem` kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.distributed.links.fabric import Fabric
from tilefw.distributed.links.flows import LinkTransfer, Network


@dataclass(frozen=True, slots=True)
class ShotPhase:
    """What every rank moves from each of its peers, all peers at once, before all go on: `size` bytes of each, or through the
    switch `size` bytes by its port alone."""

    name: str
    size: float
    through_switch: bool = False


def one_shot(size: float, _: int) -> tuple[ShotPhase, ...]:
    """Every rank reads the whole arrays of all others."""
    return (ShotPhase("read all", size),)


def two_shot(size: float, ranks: int) -> tuple[ShotPhase, ...]:
    """Every rank reads a part of all arrays, then the sums of the other parts."""
    return ShotPhase("read parts", size / ranks), ShotPhase("read sums", size / ranks)


def switch_shot(size: float, ranks: int) -> tuple[ShotPhase, ...]:
    """A rank's port carries the whole array to the switch for its peers' sums, and a part of the sums from it to all."""
    return (ShotPhase("reduce in the switch", size * (1 + 1 / ranks), through_switch=True),)


ALGORITHMS = {"one_shot": one_shot, "two_shot": two_shot, "switch_shot": switch_shot}


def play_phases(network: Network, fabric: Fabric, phases: Sequence[ShotPhase], rate: float) -> None:
    """Ranks go through the phases together; a rank's lanes load at most at `rate` bytes per us, from all peers together."""
    ranks = range(len(fabric))
    lanes = [network.port(f"rank {rank} lanes", rate) for rank in ranks]
    gate: tuple[LinkTransfer, ...] = ()
    for phase in phases:
        moved = []
        for rank in ranks:
            peers = [rank] if phase.through_switch else [peer for peer in ranks if peer != rank]
            for peer in peers:
                agent = network.agent(f"rank {rank} from {peer}")
                way = (fabric.egress[rank],) if phase.through_switch else fabric.path(peer, rank)
                ports = (*way, lanes[rank])
                moved.append(network.transfer(agent, ports, phase.size, after=gate, name=phase.name))
        gate = (network.gate(moved),)
