"""Proofs that a change of AMD's code changes nothing that can be seen, from the code alone.

A barrier is idle when what it alone orders cannot conflict. That is, on its one side, everything since the barriers before it, and
on the other everything up to the barriers behind it: at most reads of a space on both sides together, or accesses on one side
alone. For LDS a barrier before it counts only where waits have left none of its accesses under way (lgkmcnt(0), and vmcnt(0) in
code that loads straight to LDS), as those pass a barrier; those of global memory are made in the order of their issue within a
workgroup (AMDGPUUsage, "Memory Model gfx942", which is gfx950's too). Atomics on memory count as writes, and so does anything that
this file does not know.

A wait is idle when on no way to it more is under way than its count lets through, or when what a weaker one lets through besides is
waited for elsewhere before anything touches it (`under_way`). A write-back is idle when no store comes before
it, and so is a wait that lets that write-back alone through; an invalidation is idle when no vector load comes behind it. Atomics
need neither: they are made where all that their scope names meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hsaco_oracles import under_way
from hsaco_oracles.flow import ANYTHING, Effect, Flow
from oracles.site import Site


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
    if counter == "lgkmcnt" and under_way.touches_nothing_more(flow, {index: changed[counter]}):
        return "proved: on every way another wait comes before anything touches what this one lets through"
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
    idle = all(not node.effects & {("global", "read")} and node.effects != ANYTHING for node in behind)
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
