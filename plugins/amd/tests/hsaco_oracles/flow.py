"""AMD's machine code as text: its instructions, which follow which, and what each does to memory and to the counters of waits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tilefw.testing.control_flow import ControlFlowGraph

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


class Flow(ControlFlowGraph[Node]):
    """The instructions of a file with one entry, and which follow which."""

    def __init__(self, text: str) -> None:
        nodes: list[Node] = []
        labels: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if label := _LABEL.match(line):
                labels[label["name"]] = len(nodes)
            elif match := _LINE.match(line):
                nodes.append(Node(number, match["opcode"], match["operands"]))
        self.computed = any(node.opcode.startswith(_COMPUTED) for node in nodes)
        super().__init__(nodes, lambda place: _following(nodes[place], place, labels))

    def orders(self, index: int, space: str) -> bool:
        """Whether it is a barrier that orders all earlier accesses to the space: of LDS, with waits for them before it."""
        barrier = self.nodes[index].barrier
        return barrier and (space == "global" or all(most[index] <= 0 for most in self._under_way_in_lds))

    @cached_property
    def _under_way_in_lds(self) -> tuple[list[int], ...]:
        """`most` of the counters of accesses of LDS: loads straight to it are in that of global memory."""
        loads = any(node.to_lds for node in self.nodes)
        return tuple(self.most(counter) for counter in ("lgkmcnt", "vmcnt")[: 1 + loads])

    @cached_property
    def before_lds_writes(self) -> frozenset[int]:
        """The instructions from which on some way LDS is written."""
        writes = [i for i, node in enumerate(self.nodes) if ("shared", "write") in node.effects]
        return frozenset(i for write in writes for i in self.walk(write, self.before, lambda _: False))

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


def _following(node: Node, place: int, labels: dict[str, int]) -> Iterator[int]:
    if node.opcode.startswith(("s_branch", "s_cbranch")):
        yield labels[node.operands]
    if node.opcode not in (*_ENDS, "s_branch"):
        yield place + 1
