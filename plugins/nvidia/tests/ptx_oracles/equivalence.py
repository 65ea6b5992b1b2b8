"""Proofs that a change of PTX changes nothing that can be seen, from the code alone.

A wait is redundant when every path to it has met a wait that is at least as strict since the last commit, or when every path
from it meets one before anything could see the difference. A barrier is idle when what stands between the barriers before it and
the barriers behind it cannot conflict: at most reads of a space on both sides, or accesses on one side, or polls behind it. What
products of a warpgroup read needs no barrier where the workgroup is one warpgroup: the unit makes a product of four warps as one,
so that each warp's own wait, which its own writes follow, has waited for all that the product reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from oracles.site import Site
from ptx_oracles.known_bits import same_number, same_value
from ptx_oracles.thread_bits import repeated_store
from tilefw.testing.control_flow import ControlFlowGraph

_LINE = re.compile(r"^\s*(?:@(?P<guard>!?%\w+)\s+)?(?P<opcode>[a-z][\w.:]*)\s*(?P<operands>[^;]*);\s*$")
_LABEL = re.compile(r"^\s*(?P<name>\$?\w+):\s*$")
_COMMIT = "cp.async.commit_group"
_ENGINE_FENCE = "fence.proxy.async"
_MADE_FENCE = "fence.mbarrier_init"
_OF_CLUSTERS = ("barrier.cluster", "mapa", "getctarank", "st.async", "red.async")
_BULK_GROUPS = ("cp.async.bulk.commit_group", "cp.async.bulk.wait_group")
_USES = ("mbarrier.", "cp.async.mbarrier", "cp.async.bulk")
_POLL = re.compile(r"atom\.(?:relaxed|acquire)\.\w+\.global\.or\.b(?:32|64)$")
_OWN_ADDRESS = re.compile(r"\[\s*(?P<register>%\w+)\s*\]")
_ONE_WARPGROUP = re.compile(r"^\s*\.reqntid\s+128(?:\s*,\s*1)*\s*$", re.MULTILINE)
_PRODUCTS = ("wgmma.mma_async", "wgmma.wait_group")
_RESULTS = re.compile(r"\{[^}]*\}|[^,\[]*")
_OWN_ACCESS = re.compile(r"(?:ld|st)\.shared(?P<size>\S*)$")
# What engines do may come at any moment from their start to the wait for it; the words of barriers are a space of their own.
_IN = (("shared", "write"), ("global", "read"), ("barriers", "read"))
_OUT = (("shared", "read"), ("global", "write"))
_ENGINE_EFFECTS: Sequence[tuple[tuple[str, ...], Sequence[tuple[str, str]]]] = (
    (("mbarrier.init", "mbarrier.inval"), (("barriers", "write"),)),
    (("mbarrier.try_wait", "mbarrier.test_wait"), (("shared", "write"), ("global", "read"), ("barriers", "read"))),
    (("mbarrier.",), (("barriers", "read"),)),
    (("cp.async.bulk.wait_group", "cp.reduce.async.bulk"), _OUT),
    (tuple(f"cp.async.bulk.tensor.{n}d.global.shared" for n in range(1, 6)), _OUT),
    (("cp.async.bulk.global.shared",), _OUT),
    (("cp.async.bulk.tensor", "cp.async.bulk.shared"), _IN),
    (("tensormap.cp_fenceproxy",), _OUT),
    (("tensormap.replace",), (("shared", "write"),)),
    (("fence.proxy.tensormap",), (("global", "read"),)),
)


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
    if site.kind == "phase":
        return same_number(ptx, site)
    if site.kind == "predicate" and (more := _more_order(ptx, site)):
        return more
    if site.kind not in ("wait", "weaken", "barrier", "commit", "predicate", "condition", "fence"):
        return ""
    flow = flow_of(ptx)
    index = flow.at(site.line)
    if site.kind == "fence":
        return _idle_fence(flow, index)
    if flow.nodes[index].opcode.startswith(_BULK_GROUPS):
        return _without_copies(flow, index)
    if site.kind in ("predicate", "condition"):
        return repeated_store(ptx, site)
    if site.kind == "commit":
        return _joined_group(flow, index)
    if site.kind == "barrier":
        return _idle_barrier(flow, index, _PRODUCTS if _ONE_WARPGROUP.search(ptx) else ())
    if flow.nodes[index].wait is None:
        return ""  # of a queue that these rules do not know
    if _covered_before(flow, index):
        return "proved: on every path a wait at least as strict precedes it, and nothing was committed since"
    if _covered_after(flow, index):
        return "proved: on every path a wait at least as strict follows it before any access, commit or barrier"
    return ""


def _more_order(ptx: str, site: Site) -> str:
    """A fence, a wait or a commit of more threads."""
    guarded = _LINE.match(site.before)
    if guarded is not None and guarded["opcode"].startswith("cp.async.bulk.commit_group"):
        starts = [found for line in ptx.splitlines() if (found := _LINE.match(line)) and ".bulk_group" in found["opcode"]]
        alike = starts and all(found["guard"] == guarded["guard"] for found in starts)
        return "proved: the other threads start no copy, and commit a group without any" if alike else ""
    if guarded is None or not guarded["opcode"].startswith(("fence", "cp.async.bulk.wait_group", "cp.async.wait_group")):
        return ""
    return "proved: it orders what it ordered, and more"


def _joined_group(flow: Flow, index: int) -> str:
    """A group of copies that joins the next one: the same, where exactly n commits lie between it and no wait that leaves n."""
    if flow.nodes[index].opcode != _COMMIT or flow.nodes[index].guard:
        return ""
    most = max((node.wait for node in flow.nodes if node.wait is not None), default=0)
    seen: set[tuple[int, int]] = set()
    open_ends = [(place, 0) for place in flow.after[index]]
    while open_ends:
        place, commits = open_ends.pop()
        node = flow.nodes[place]
        if node.wait == commits or (commits == 0 and not flow.after[place]):
            return ""
        commits += node.opcode == _COMMIT and not node.guard
        if commits <= most and (place, commits) not in seen:
            seen.add((place, commits))
            open_ends += [(following, commits) for following in flow.after[place]]
    return "proved: its copies join the next group, which every wait covers that covers this one"


def _idle_fence(flow: Flow, index: int) -> str:
    """A fence for engines behind which stands what one before it has fenced already."""
    if flow.nodes[index].opcode.startswith(_MADE_FENCE):
        return _met_by_all(flow, index)
    if not flow.nodes[index].opcode.startswith(_ENGINE_FENCE):
        return ""

    def fences(i: int) -> bool:
        return flow.nodes[i].opcode.startswith(_ENGINE_FENCE) and not flow.nodes[i].guard

    met = [i for i in flow.walk(index, flow.before, fences) if not fences(i)]
    if flow.reaches_end(index, flow.before, fences) or any(_written_by_threads(flow.nodes[i]) for i in met):
        return ""
    return "proved: on every path to it another one precedes it, and no thread has written shared memory since"


def _met_by_all(flow: Flow, index: int) -> str:
    """A fence of barriers that were made: it orders their making before what other workgroups of a cluster do with them (PTX ISA,
    fence: `.mbarrier_init`). Where a workgroup is alone, its own barrier does that for all who arrive, wait, or start a copy. That
    an engine completes on one asks for no more there: Triton's `init_barrier` for one workgroup has no fence either."""
    if any(node.opcode.startswith(_OF_CLUSTERS) or "multicast" in node.opcode for node in flow.nodes):
        return ""
    met = flow.walk(index, flow.after, lambda i: flow.nodes[i].barrier)
    if any(flow.nodes[i].opcode.startswith(_USES) and not flow.nodes[i].opcode.startswith("mbarrier.init") for i in met):
        return ""
    return "proved: a workgroup alone uses the barriers, behind its own barrier"


def _written_by_threads(node: _Node) -> bool:
    """Whether a thread writes shared memory, or may by a generic address."""
    written = ("st", "atom", "red", "cp.async.c", "mbarrier.init", "mbarrier.inval", "tensormap.replace", "call")
    return node.opcode.startswith(written) and not node.opcode.startswith(("st.global", "atom.global", "red.global", "st.local"))


def _without_copies(flow: Flow, index: int) -> str:
    """Before a commit or a wait of bulk groups, no thread can have started a copy that completes with one."""
    copies = [i for i in flow.walk(index, flow.before, lambda _: False) if _in_bulk_group(flow.nodes[i])]
    return "" if copies else "proved: on no path to it a copy is started that completes with a group"


def _in_bulk_group(node: _Node) -> bool:
    return "bulk_group" in node.opcode


def _covered_before(flow: Flow, index: int) -> bool:
    return _covered(flow, index, flow.before, lambda node: node.opcode == _COMMIT)


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


def _idle_barrier(flow: Flow, index: int, waited_for: tuple[str, ...]) -> str:
    """`waited_for`: what begins opcodes whose effects need no barrier before what stands behind it."""
    earlier, later = set[tuple[str, str]](), set[tuple[str, str]]()
    for i in flow.walk(index, flow.before, lambda i: flow.nodes[i].barrier):
        if not waited_for or not flow.nodes[i].opcode.startswith(waited_for):
            earlier |= _effects(flow, i)
    for i in flow.walk(index, flow.after, lambda i: flow.nodes[i].barrier):
        later |= set() if _polls(flow, i) else _effects(flow, i)
    if _of_own_place(flow, index):
        return "proved: between the barriers around it each thread touches one place of shared memory alone, the same on both sides"
    for space in ("shared", "global", "barriers"):
        kinds = [{kind for where, kind in side if where == space} for side in (earlier, later)]
        if kinds[0] and kinds[1] and "write" in kinds[0] | kinds[1]:
            return ""
    return ("proved: between the barriers around it no space is touched on both sides of it with a write among the accesses "
            f"(before: {_words(earlier)}; behind: {_words(later)})")


def _polls(flow: Flow, index: int) -> bool:
    """Whether it is an atomic that publishes nothing and leaves its word as it was (`or` with 0): atomics do not conflict."""
    node, before = flow.nodes[index], flow.nodes[index - 1]
    _, _, added = node.operands.rpartition(",")
    return bool(_POLL.match(node.opcode)) and before.opcode.startswith("mov.b") and before.operands == f"{added.strip()}, 0"


def _of_own_place(flow: Flow, index: int) -> bool:
    """Whether all accesses to memory between the barriers around it are to shared memory, of one size at the address in one
    register, which one instruction alone writes, not behind it."""
    earlier, later = (set(flow.walk(index, edges, lambda i: flow.nodes[i].barrier)) for edges in (flow.before, flow.after))
    places = set()
    for node in (flow.nodes[i] for i in earlier | later if {space for space, _ in _effects(flow, i)} - {"barriers"}):
        access, address = _OWN_ACCESS.match(node.opcode), _OWN_ADDRESS.search(node.operands)
        if access is None or address is None:
            return False
        places.add((access["size"], address["register"]))
    if len(places) != 1:
        return False
    [(_, register)] = places
    written = [i for i, node in enumerate(flow.nodes) if register in _RESULTS.match(node.operands)[0] and node.opcode[:2] != "st"]
    return len(written) == 1 and not later.intersection(written)


def _words(effects: set[tuple[str, str]]) -> str:
    return ", ".join(f"{kind}s of {space} memory" for space, kind in sorted(effects)) or "none"


def _effects(flow: Flow, index: int) -> set[tuple[str, str]]:
    node = flow.nodes[index]
    if node.wait is not None:
        return set() if _covered_before(flow, index) else {("shared", "write")}
    for opcodes, effects in _ENGINE_EFFECTS:
        if node.opcode.startswith(opcodes):
            return set(effects)
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
