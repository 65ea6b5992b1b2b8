"""Which instruction of a text follows which, for proofs about all ways through it: each plugin's tests read their own text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar


class InstructionOnLine(Protocol):
    """An instruction of a text; `line` counts from 1."""

    @property
    def line(self) -> int: ...


Node = TypeVar("Node", bound=InstructionOnLine)


class ControlFlowGraph(Generic[Node]):
    """The instructions of a text with one entry, and which follow which: `after` and `before` by their places in `nodes`."""

    def __init__(self, nodes: Sequence[Node], targets: Callable[[int], Iterable[int]]) -> None:
        """`targets` gives the places that follow a place; one behind the last instruction is where the program ends."""
        self.nodes = nodes
        self.after = [[target for target in targets(place) if target < len(nodes)] for place in range(len(nodes))]
        self.before: list[list[int]] = [[] for _ in nodes]
        for place, following in enumerate(self.after):
            for target in following:
                self.before[target].append(place)

    def at(self, line: int) -> int:
        """The place of the instruction on a line."""
        return next(place for place, node in enumerate(self.nodes) if node.line == line)

    def walk(self, start: int, edges: Sequence[Sequence[int]], stop: Callable[[int], bool]) -> Iterator[int]:
        """Every place met from `start` (left out) along `edges`, up to and with those where `stop` holds."""
        seen: set[int] = set()
        open_ends = list(edges[start])
        while open_ends:
            place = open_ends.pop()
            if place in seen:
                continue
            seen.add(place)
            yield place
            if not stop(place):
                open_ends += edges[place]

    def reaches_end(self, start: int, edges: Sequence[Sequence[int]], stop: Callable[[int], bool]) -> bool:
        """Whether a way from `start` along `edges` comes to an end of the program, which nothing follows, with no stop before."""
        return not edges[start] or any(not edges[place] and not stop(place) for place in self.walk(start, edges, stop))
