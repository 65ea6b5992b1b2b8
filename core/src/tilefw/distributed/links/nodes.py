"""All-reduce over nodes of devices: chunks are summed within each node, along a ring or a tree of nodes, and spread within nodes.

The three stages work on different chunks at the same time. Devices of a node act alike and share the node's network cards, so a
node stands for its ranks here: its inner stage is one engine, its cards are one port in each direction.
Sources: nccl `src/graph/trees.cc` (double binary trees: each node is inner in one and a leaf in the other, so that a card
carries 2 (N - 1) / N of the array on average, as in a ring), `src/device/all_reduce.h`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.distributed.links.flows import LinkTransfer, Network
from tilefw.distributed.links.tree import tree_all_reduce

_LARGEST_RING = 64  # nodes; a ring's latency grows with them, a tree's with their logarithm

_LANES = 8  # chunks that are on their way around the ring at the same time


@dataclass(frozen=True, slots=True)
class NodesOfDevices:
    """`count` nodes; rates in bytes per us: of the array through a node's inner stages, and of a node's cards; `step` us from
    card to card; `chunk` bytes of the array."""

    count: int
    inner_rate: float
    card_rate: float
    step: float
    chunk: float


def all_reduce_of_nodes(network: Network, nodes: NodesOfDevices, size: float) -> None:
    """Add the transfers of an all-reduce of `size` bytes in every rank."""
    chunks = max(1, -int(-size // nodes.chunk))
    piece = size / chunks
    cards = [
        (network.port(f"node {n} out", nodes.card_rate), network.port(f"node {n} in", nodes.card_rate)) for n in range(nodes.count)
    ]
    inside = [network.port(f"node {n} inside", nodes.inner_rate) for n in range(nodes.count)]
    sums = [network.agent(f"node {n} sums") for n in range(nodes.count)]
    spreads = [network.agent(f"node {n} spreads") for n in range(nodes.count)]
    senders = [[network.agent(f"node {n} cards {lane}") for n in range(nodes.count)] for lane in range(_LANES)]
    for chunk in range(chunks):
        name = f"chunk {chunk}"
        summed = [network.transfer(sums[n], (inside[n],), piece / 2, name=f"{name} sum") for n in range(nodes.count)]
        if nodes.count <= _LARGEST_RING:
            arrived = _ring(network, nodes, cards, senders[chunk % _LANES], piece, summed, name)
        else:
            ready = [[one] for one in summed]
            arrived = tree_all_reduce(network, lambda one, other: (cards[one][0], cards[other][1]), piece, nodes.step, ready, name)
        for n in range(nodes.count):
            network.transfer(spreads[n], (inside[n],), piece / 2, after=arrived[n], name=f"{name} spread")


def _ring(
    network: Network, nodes: NodesOfDevices, cards: list[tuple[int, int]], senders: list[int], piece: float,
    summed: list[LinkTransfer], name: str,
) -> list[list[LinkTransfer]]:
    """2 (N - 1) steps of an N-th of the chunk."""
    count = nodes.count
    arrived = [[one] for one in summed]
    for step in range(2 * (count - 1)):
        sent = []
        for node, agent in enumerate(senders):
            path = (cards[node][0], cards[(node + 1) % count][1])
            sent.append(network.transfer(agent, path, piece / count, nodes.step, after=arrived[node], name=f"{name} step {step}"))
        arrived = [[sent[node - 1]] for node in range(count)]
    return arrived
