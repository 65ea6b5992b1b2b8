"""Which instructions touch what LDS and scalar loads have still to bring, on any way through a program, from its text alone.

Accesses of LDS end in the order of their issue, scalar loads in any (CDNA3 ISA 4.4, S_WAITCNT). Besides registers LDS itself is
touched: by a load straight to it, which is in another queue, and at a barrier, by others; reads only where it is written behind.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from hsaco_oracles.flow import Flow, Node
from hsaco_oracles.pauses import registers

_COUNTER = "lgkmcnt"
_WITHOUT_RESULT = ("ds_write", "ds_store", "ds_nop", "s_dcache", "s_sendmsg")
_MOST = 200_000  # pairs of an instruction and what is under way there, behind which nothing is said

_State = tuple[int, tuple[int, ...]]  # an instruction and what is under way there
Touch = tuple[int, int]
EVERYTHING: frozenset[Touch] = frozenset({(-1, -1)})


def touched(flow: Flow, limits: Mapping[int, int]) -> frozenset[Touch]:
    """(instruction, earlier instruction whose work it meets unfinished); `limits` are other counts of waits, by instruction.

    A set with EVERYTHING in it where this does not know.
    """
    results = [_results(node) for node in flow.nodes]
    meets = functools.cache(lambda index, earlier: _meets(flow, index, earlier, results[earlier]))
    found: set[Touch] = set()
    seen: set[_State] = {(0, ())}
    work: list[_State] = [(0, ())]
    while work:
        index, under = work.pop()
        node = flow.nodes[index]
        if node.opcode.startswith("flat_") or len(seen) > _MOST:
            return EVERYTHING
        found |= {(index, earlier) for earlier in under if meets(index, earlier)}
        behind = _behind(flow, index, under, limits.get(index, node.limits.get(_COUNTER)))
        for following in flow.after[index]:
            if (following, behind) not in seen:
                seen.add((following, behind))
                work.append((following, behind))
    return frozenset(found)


def touches_nothing_more(flow: Flow, limits: Mapping[int, int]) -> bool:
    """Whether with other counts of waits nothing is touched unfinished that is not with the program's own; False where this
    does not know."""
    own = touched(flow, {})
    return not own & EVERYTHING and touched(flow, limits) <= own


def _results(node: Node) -> frozenset[tuple[str, int]]:
    if not node.begins(_COUNTER) or node.opcode.startswith(_WITHOUT_RESULT):
        return frozenset()
    return registers(node.operands.split(",")[0])


def _meets(flow: Flow, index: int, earlier: int, results: frozenset[tuple[str, int]]) -> bool:
    node, its = flow.nodes[index], flow.nodes[earlier]
    shared = bool(its.effects) and its.opcode.startswith("ds_")
    if shared and node.to_lds:
        return True
    if shared and node.barrier and (("shared", "write") in its.effects or index in flow.before_lds_writes):
        return True
    written, _, read = node.operands.partition(",")
    if node.opcode.startswith("ds_") and its.opcode.startswith("ds_") and not node.opcode.startswith(_WITHOUT_RESULT):
        return not results.isdisjoint(registers(read))  # it ends behind the earlier one, whose result it may overwrite
    return not results.isdisjoint(registers(f"{written},{read}"))


def _behind(flow: Flow, index: int, under: tuple[int, ...], limit: int | None) -> tuple[int, ...]:
    """What is under way behind an instruction. Of what a count lets through, accesses of LDS are the newest, scalar loads any."""
    if limit is None:
        return (*under, index) if flow.nodes[index].begins(_COUNTER) else under
    if not limit:
        return ()
    shared = [place for place, earlier in enumerate(under) if flow.nodes[earlier].opcode.startswith("ds_")]
    landed = frozenset(shared[: len(shared) - min(limit, len(shared))])
    return tuple(earlier for place, earlier in enumerate(under) if place not in landed)
