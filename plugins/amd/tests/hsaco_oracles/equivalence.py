"""Proofs that a change of gfx942 code changes nothing that can be seen, from the code alone.

A barrier is idle when what it alone orders cannot conflict. That is, on its one side, everything since the barriers before it, and
on the other everything up to the barriers behind it: at most reads of a space on both sides together, or accesses on one side
alone. For LDS a barrier before it counts only where a wait for lgkmcnt(0) stands right before that, as accesses that are still
under way pass a barrier; those of global memory are made in the order of their issue within a workgroup (AMDGPUUsage, "Memory
Model gfx942"). Atomics on memory count as writes, and so does anything that this file does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from oracles.site import Site

_LINE = re.compile(r"^\s*(?P<opcode>(?:s|v|ds|global|t?buffer|flat|scratch)_\w+)\s*(?P<operands>[^;]*?)\s*(?:;.*)?$")
_LABEL = re.compile(r"^(?P<name>[.\w$]+):")
_ENDS = frozenset({"s_endpgm"})
_COMPUTED = ("s_setpc", "s_swappc", "s_call", "s_cbranch_g_fork", "s_cbranch_i_fork", "s_cbranch_join")
# LDS instructions that move lanes through the LDS unit without touching its memory (CDNA3 ISA 12.1, "LDS lane permute").
_LANES_ONLY = ("ds_bpermute", "ds_permute", "ds_swizzle", "ds_nop")
_NO_ACCESS = ("buffer_wbl2", "buffer_inv")

Effect = tuple[str, str]
_ANYTHING: frozenset[Effect] = frozenset({("shared", "write"), ("global", "write")})


@dataclass(frozen=True, slots=True)
class _Node:
    line: int
    opcode: str
    operands: str

    @property
    def barrier(self) -> bool:
        return self.opcode == "s_barrier"

    @property
    def drains(self) -> bool:
        """Whether it waits for all LDS accesses of the wave."""
        return self.opcode == "s_waitcnt" and "lgkmcnt(0)" in self.operands

    @property
    def effects(self) -> frozenset[Effect]:
        """(space, read or write) of a memory instruction."""
        family, _, rest = self.opcode.partition("_")
        if family in ("s", "v", "scratch") or self.opcode.startswith((*_LANES_ONLY, *_NO_ACCESS)):
            return frozenset()
        if family == "flat" or self.operands.split()[-1:] == ["lds"] or "_lds" in rest:
            return _ANYTHING
        reads = rest.startswith(("load", "read"))
        return frozenset({("shared" if family == "ds" else "global", "read" if reads else "write")})


class Flow:
    """The instructions of a file with one entry, and which follow which."""

    def __init__(self, text: str) -> None:
        self.nodes: list[_Node] = []
        labels: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if label := _LABEL.match(line):
                labels[label["name"]] = len(self.nodes)
            elif match := _LINE.match(line):
                self.nodes.append(_Node(number, match["opcode"], match["operands"]))
        self.computed = any(node.opcode.startswith(_COMPUTED) for node in self.nodes)
        self.after = [self._following(i, labels) for i in range(len(self.nodes))]
        self.before: list[list[int]] = [[] for _ in self.nodes]
        for i, following in enumerate(self.after):
            for j in following:
                self.before[j].append(i)

    def _following(self, index: int, labels: dict[str, int]) -> list[int]:
        node = self.nodes[index]
        targets = [labels[node.operands]] if node.opcode.startswith(("s_branch", "s_cbranch")) else []
        if node.opcode not in (*_ENDS, "s_branch") and index + 1 < len(self.nodes):
            targets.append(index + 1)
        return [t for t in targets if t < len(self.nodes)]

    def at(self, line: int) -> int:
        return next(i for i, node in enumerate(self.nodes) if node.line == line)

    def orders(self, index: int, space: str) -> bool:
        """Whether it is a barrier that orders all earlier accesses to the space: of LDS, with a wait for them right before it."""
        if not self.nodes[index].barrier or space == "global":
            return self.nodes[index].barrier
        return index > 0 and self.before[index] == [index - 1] and self.nodes[index - 1].drains

    def walk(self, start: int, edges: list[list[int]], stop: Callable[[int], bool]) -> Iterator[int]:
        """Every instruction met from `start` (left out) along `edges`, up to and with those where `stop` holds."""
        seen: set[int] = set()
        open_ends = list(edges[start])
        while open_ends:
            index = open_ends.pop()
            if index in seen:
                continue
            seen.add(index)
            yield index
            if not stop(index):
                open_ends += edges[index]


def proof(text: str, site: Site) -> str:
    """Why the change at `site` cannot be seen; empty when this does not prove it."""
    if site.kind != "barrier":
        return ""
    flow = Flow(text)
    return "" if flow.computed else _idle(flow, flow.at(site.line))


def _idle(flow: Flow, index: int) -> str:
    earlier, later = set[Effect](), set[Effect]()
    for space in ("shared", "global"):
        sides = _sides(flow, index, space)
        if all(sides) and (space, "write") in sides[0] | sides[1]:
            return ""
        earlier |= sides[0]
        later |= sides[1]
    return ("proved: between the barriers around it no space is touched on both sides of it with a write among the accesses "
            f"(before: {_words(earlier)}; behind: {_words(later)})")


def _sides(flow: Flow, index: int, space: str) -> tuple[set[Effect], set[Effect]]:
    """What is done to the space before and behind a barrier, with no other barrier between that would order it."""
    before = flow.walk(index, flow.before, lambda i: flow.orders(i, space))
    return _effects(flow, space, before), _effects(flow, space, flow.walk(index, flow.after, lambda i: flow.nodes[i].barrier))


def _effects(flow: Flow, space: str, met: Iterator[int]) -> set[Effect]:
    return {effect for index in met for effect in flow.nodes[index].effects if effect[0] == space}


def _words(effects: set[Effect]) -> str:
    return ", ".join(f"{kind}s of {space} memory" for space, kind in sorted(effects)) or "none"
