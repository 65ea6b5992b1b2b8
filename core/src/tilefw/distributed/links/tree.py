"""A tree of ranks: sums go up it, the result goes down. Two trees of which one mirrors the other share the work of inner ranks.

Source: nccl `src/graph/trees.cc`, double binary trees: every rank is inner in one and a leaf in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilefw.distributed.links.flows import LinkTransfer, Network

_Path = Callable[[int, int], tuple[int, ...]]
_Arriving = Sequence[LinkTransfer]


def tree_all_reduce(
    network: Network, path: _Path, size: float, step: float, ready: Sequence[_Arriving],
    name: str = "", limit: float = float("inf"),
) -> list[list[LinkTransfer]]:
    """Half of `size` bytes by each of two trees of as many ranks as `ready` has, each of which begins when those transfers have
    arrived. Returned is what has to arrive at each rank."""
    halves = [_tree(network, path, size / 2, step, ready, mirrored, name, limit) for mirrored in (False, True)]
    return [one + other for one, other in zip(*halves, strict=True)]


def _tree(
    network: Network, path: _Path, size: float, step: float, ready: Sequence[_Arriving],
    mirrored: bool, name: str, limit: float,
) -> list[list[LinkTransfer]]:
    count = len(ready)
    rank_at = [count - 1 - place if mirrored else place for place in range(count)]
    waits = [list(ones) for ones in ready]
    for place in range(count - 1, 0, -1):
        rank, parent = rank_at[place], rank_at[(place - 1) // 2]
        agent = network.agent(f"rank {rank} up")
        up = network.transfer(agent, path(rank, parent), size, step, after=waits[rank], limit=limit, name=f"{name} up")
        waits[parent].append(up)
    arrived: list[list[LinkTransfer]] = [[] for _ in range(count)]
    arrived[rank_at[0]] = waits[rank_at[0]]
    for place in range(1, count):
        rank, parent = rank_at[place], rank_at[(place - 1) // 2]
        agent = network.agent(f"rank {parent} down to {rank}")
        down = network.transfer(agent, path(parent, rank), size, step, after=arrived[parent], limit=limit, name=f"{name} down")
        arrived[rank] = [down]
    return arrived
