"""AMD's machine code as text: its instructions, which follow which, and what each does to memory and to the counters of waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
ANYTHING: frozenset[Effect] = frozenset({("shared", "write"), ("global", "write")})


@dataclass(frozen=True, slots=True)
class Node:
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
        if family == "flat" or self.to_lds:
            return ANYTHING
        reads = rest.startswith(("load", "read"))
        return frozenset({("shared" if family == "ds" else "global", "read" if reads else "write")})

    @property
    def to_lds(self) -> bool:
        """Whether it loads from global memory straight to LDS."""
        return not self.opcode.startswith("ds_") and (self.operands.split()[-1:] == ["lds"] or "_lds" in self.opcode)

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
        self.nodes: list[Node] = []
        labels: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if label := _LABEL.match(line):
                labels[label["name"]] = len(self.nodes)
            elif match := _LINE.match(line):
                self.nodes.append(Node(number, match["opcode"], match["operands"]))
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
