"""Proofs that a change of AMD's code changes nothing that can be seen, from the code alone.

A barrier is idle when what it alone orders cannot conflict. That is, on its one side, everything since the barriers before it, and
on the other everything up to the barriers behind it: at most reads of a space on both sides together, or accesses on one side
alone. For LDS a barrier before it counts only where a wait for lgkmcnt(0) stands right before that, as accesses that are still
under way pass a barrier; those of global memory are made in the order of their issue within a workgroup (AMDGPUUsage, "Memory
Model gfx942", which is gfx950's too). Atomics on memory count as writes, and so does anything that this file does not know.

A wait is idle when on no way to it more is under way than its count lets through. A write-back is idle when no store comes before
it, and so is a wait that lets that write-back alone through; an invalidation is idle when no vector load comes behind it. Atomics
need neither: they are made where all that their scope names meet.
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
# What counts in lgkmcnt besides LDS and flat accesses (CDNA3 ISA 4.4, "Manually Inserted Wait States (NOPs)", S_WAITCNT).
_SCALAR_MEMORY = ("s_load", "s_buffer", "s_store", "s_scratch", "s_atomic", "s_dcache", "s_memtime", "s_memrealtime", "s_sendmsg")
_COUNT = re.compile(r"\b(?P<counter>vmcnt|lgkmcnt)\((?P<count>\d+)\)")
_MOST = 64  # of any counter

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

    @property
    def limits(self) -> dict[str, int]:
        """By counter, how many may be under way behind it."""
        waits = self.opcode == "s_waitcnt"
        return {match["counter"]: int(match["count"]) for match in _COUNT.finditer(self.operands)} if waits else {}

    def begins(self, counter: str) -> int:
        """How much it adds to a counter at most: scalar loads of several words count twice."""
        if counter == "vmcnt":
            return int(self.opcode.startswith(("global_", "buffer_", "tbuffer_", "flat_", "scratch_")))
        return 2 if self.opcode.startswith(_SCALAR_MEMORY) else int(self.opcode.startswith(("ds_", "flat_")))


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


    def most(self, counter: str) -> list[int]:
        """Before each instruction, how many may be under way at most; below zero where nothing leads."""
        found = [0, *[-1] * (len(self.nodes) - 1)]
        work = [0]
        while work:
            index = work.pop()
            node = self.nodes[index]
            behind = min(found[index] + node.begins(counter), node.limits.get(counter, _MOST), _MOST)
            for following in self.after[index]:
                if found[following] < behind:
                    found[following] = behind
                    work.append(following)
        return found


def proof(text: str, site: Site) -> str:
    """Why the change at `site` cannot be seen; empty when this does not prove it."""
    if site.kind not in _PROOFS:
        return ""
    flow = Flow(text)
    return "" if flow.computed else _PROOFS[site.kind](flow, flow.at(site.line), site)


def _idle_wait(flow: Flow, index: int, site: Site) -> str:
    changed = Flow(site.after).nodes[0].limits
    weaker = ((name, count) for name, count in flow.nodes[index].limits.items() if changed[name] != count)
    counter, count = next(weaker, ("expcnt", 0))
    if counter == "expcnt":
        return ""
    if flow.most(counter)[index] <= count:
        return f"proved: on no way here are more than {count} of {counter} under way"
    behind = index > 0 and flow.before[index] == [index - 1] and flow.nodes[index - 1].opcode == "buffer_wbl2"
    if counter == "vmcnt" and changed[counter] == 1 and behind:
        return _idle_cache(flow, index - 1, site)
    return ""


def _idle_cache(flow: Flow, index: int, _: Site) -> str:
    if flow.nodes[index].opcode == "buffer_wbl2":
        stores = (flow.nodes[i] for i in flow.walk(index, flow.before, lambda _: False))
        idle = all("_atomic_" in node.opcode or ("global", "write") not in node.effects for node in stores)
        return "proved: on no way here is anything stored that would be written back" if idle else ""
    behind = (flow.nodes[i] for i in flow.walk(index, flow.after, lambda _: False))
    idle = all(not node.effects & {("global", "read")} and node.effects != _ANYTHING for node in behind)
    return "proved: on no way from here is anything loaded that a cache may hold" if idle else ""


def _idle_barrier(flow: Flow, index: int, _: Site) -> str:
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


_PROOFS: dict[str, Callable[[Flow, int, Site], str]] = {"barrier": _idle_barrier, "weaken": _idle_wait, "cache": _idle_cache}
