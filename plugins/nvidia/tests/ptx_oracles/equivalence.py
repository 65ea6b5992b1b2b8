"""Proofs that a change of PTX changes nothing that can be seen, from the code alone.

A wait is redundant when every path to it has met a wait that is at least as strict since the last commit, or when every path
from it meets one before anything could see the difference. A barrier is idle when what stands between the barriers before it and
the barriers behind it cannot conflict: at most reads of a space on both sides of it together, or accesses on one side alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from oracles.site import Site
from ptx_oracles.known_bits import same_value
from ptx_oracles.thread_bits import repeated_store
from tilefw.testing.control_flow import ControlFlowGraph

_LINE = re.compile(r"^\s*(?:@(?P<guard>!?%\w+)\s+)?(?P<opcode>[a-z][\w.:]*)\s*(?P<operands>[^;]*);\s*$")
_LABEL = re.compile(r"^\s*(?P<name>\$?\w+):\s*$")


@dataclass(frozen=True, slots=True)
class _Node:
    line: int
    guard: bool
    opcode: str
    operands: str

    @property
    def wait(self) -> int | None:
        """How many groups a wait leaves in flight; None for any other instruction."""
        return int(self.operands) if self.opcode == "cp.async.wait_group" else None

    @property
    def barrier(self) -> bool:
        return self.opcode.startswith(("bar.sync", "barrier.sync"))


Flow = ControlFlowGraph[_Node]


def flow_of(ptx: str) -> Flow:
    """The instructions of a file with one entry, and which follow which."""
    nodes: list[_Node] = []
    labels: dict[str, int] = {}
    for number, text in enumerate(ptx.splitlines(), 1):
        line = text.split("//")[0]
        if label := _LABEL.match(line):
            labels[label["name"]] = len(nodes)
        elif (match := _LINE.match(line)) and not match["opcode"].startswith("ld.param"):
            nodes.append(_Node(number, match["guard"] is not None, match["opcode"], match["operands"].strip()))
    return ControlFlowGraph(nodes, lambda place: _following(nodes[place], place, labels))


def _following(node: _Node, place: int, labels: dict[str, int]) -> Iterator[int]:
    if node.opcode.startswith("bra"):
        yield labels[node.operands]
    if node.guard or node.opcode.split(".")[0] not in ("bra", "ret", "exit"):
        yield place + 1


def proof(ptx: str, site: Site) -> str:
    """Why the change at `site` cannot be seen; empty when this does not prove it."""
    if site.kind == "constant":
        return same_value(ptx, site)
    if site.kind in ("predicate", "condition"):
        return repeated_store(ptx, site)
    if site.kind not in ("wait", "weaken", "barrier"):
        return ""
    flow = flow_of(ptx)
    index = flow.at(site.line)
    if site.kind == "barrier":
        return _idle_barrier(flow, index)
    if flow.nodes[index].wait is None:
        return ""  # of a queue that these rules do not know
    if _covered_before(flow, index):
        return "proved: on every path a wait at least as strict precedes it, and nothing was committed since"
    if _covered_after(flow, index):
        return "proved: on every path a wait at least as strict follows it before any access, commit or barrier"
    return ""


def _covered_before(flow: Flow, index: int) -> bool:
    return _covered(flow, index, flow.before, lambda node: node.opcode == "cp.async.commit_group")


def _covered_after(flow: Flow, index: int) -> bool:
    return _covered(
        flow, index, flow.after,
        lambda node: node.barrier or _effect(node) is not None or node.opcode.startswith("cp.async.commit"),
    )


def _covered(flow: Flow, index: int, edges: Sequence[Sequence[int]], ends: Callable[[_Node], bool]) -> bool:
    """Whether every way from a wait along `edges` meets one at least as strict, with nothing before it that `ends` the search."""
    count = flow.nodes[index].wait
    assert count is not None

    def strict(i: int) -> bool:
        node = flow.nodes[i]
        return node.wait is not None and not node.guard and node.wait <= count

    def stops(i: int) -> bool:
        return strict(i) or ends(flow.nodes[i])

    met = flow.walk(index, edges, stops)
    return not flow.reaches_end(index, edges, stops) and all(strict(i) or not stops(i) for i in met)


def _idle_barrier(flow: Flow, index: int) -> str:
    sides = []
    for edges in (flow.before, flow.after):
        effects = set()
        for i in flow.walk(index, edges, lambda i: flow.nodes[i].barrier):
            effects |= _effects(flow, i)
        sides.append(effects)
    earlier, later = sides
    for space in ("shared", "global"):
        kinds = [{kind for where, kind in side if where == space} for side in (earlier, later)]
        if kinds[0] and kinds[1] and "write" in kinds[0] | kinds[1]:
            return ""
    return ("proved: between the barriers around it no space is touched on both sides of it with a write among the accesses "
            f"(before: {_words(earlier)}; behind: {_words(later)})")


def _words(effects: set[tuple[str, str]]) -> str:
    return ", ".join(f"{kind}s of {space} memory" for space, kind in sorted(effects)) or "none"


def _effects(flow: Flow, index: int) -> set[tuple[str, str]]:
    node = flow.nodes[index]
    if node.wait is not None:
        return set() if _covered_before(flow, index) else {("shared", "write")}
    effect = _effect(node)
    if effect == ("copy", "both"):
        return {("shared", "write"), ("global", "read")}
    return set() if effect is None else {effect}


def _effect(node: _Node) -> tuple[str, str] | None:
    """(space, read or write) of a memory instruction; a generic access counts as global."""
    opcode = node.opcode
    if opcode.startswith(("ldmatrix", "wgmma.mma_async", "wgmma.wait_group")):  # products read until the wait
        return "shared", "read"
    if opcode.startswith("stmatrix"):
        return "shared", "write"
    if opcode.startswith("cp.async."):
        return ("copy", "both") if ".shared" in opcode else None
    first = opcode.split(".")[0]
    if first not in ("ld", "st", "atom", "red"):
        return None
    return ("shared" if ".shared" in opcode else "global"), ("read" if first == "ld" else "write")
