"""The scheduling order of divergent paths: a path runs before those that its threads may still reach.

Blocks are numbered by a weak topological order of the control-flow graph (Bourdoncle, "Efficient chaotic iteration strategies with
widenings", 1993): an edge leads to a later block, or back to the head of a loop that the block is in, and the blocks of a
loop come before what follows it. So the path with the lowest number runs, and threads that leave a loop early wait behind it for
the others, wherever the code has these blocks (thread frontiers: Diamos et al., "SIMD re-convergence at thread frontiers", 2011).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Successors = Sequence[Sequence[int]]


def block_order(successors: Successors, roots: Iterable[int]) -> list[int]:
    """The number of each block, by block.

    `successors` are edges within a function, `roots` the entries of functions; blocks that no root reaches come last, in their own
    order.
    """
    everything = range(len(successors))
    placed: list[int] = []
    work: list[list[int]] = []
    seen: set[int] = set()
    for root in (*roots, *everything):
        if root not in seen:
            nodes = _reached(successors, root, seen)
            seen |= nodes
            work += reversed(_components(successors, nodes, [root]))
            while work:
                head, *rest = work.pop()
                placed.append(head)
                if rest:  # a loop: what is left of it without its head
                    starts = [*(t for t in successors[head] if t in rest), *rest]
                    work += reversed(_components(successors, set(rest), starts))
    order = [0] * len(successors)
    for number, block in enumerate(placed):
        order[block] = number
    return order


def _reached(successors: Successors, root: int, without: set[int]) -> set[int]:
    reached, unvisited = {root}, [root]
    while unvisited:
        for target in successors[unvisited.pop()]:
            if target not in reached and target not in without:
                reached.add(target)
                unvisited.append(target)
    return reached


def _components(successors: Successors, nodes: set[int], starts: Iterable[int]) -> list[list[int]]:
    """The strongly connected components of `nodes` in topological order, each with the block first by which it is entered (Tarjan,
    "Depth-first search and linear graph algorithms", 1972). Of blocks without an order the first in the code is first."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    pending: set[int] = set()
    found: list[list[int]] = []
    for start in starts:
        if start in index:
            continue
        visits: list[tuple[int, Iterator[int]]] = [(start, iter(()))]
        while visits:
            node, targets = visits[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                pending.add(node)
                targets = iter(sorted((t for t in successors[node] if t in nodes), reverse=True))
                visits[-1] = node, targets
            target = next((t for t in targets if t not in index or t in pending), None)
            if target is not None and target not in index:
                visits.append((target, iter(())))
                continue
            if target is not None:
                low[node] = min(low[node], index[target])
                continue
            visits.pop()
            if visits:
                low[visits[-1][0]] = min(low[visits[-1][0]], low[node])
            if low[node] == index[node]:
                place = stack.index(node)
                found.append(stack[place:])
                pending.difference_update(stack[place:])
                del stack[place:]
    return found[::-1]
