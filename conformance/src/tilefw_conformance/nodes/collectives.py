"""The library's collectives as programs and cases, each form over ranks, sizes, types and orders: whatever its index has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.kernels.distributed.index import COLLECTIVES, Collective
from tilefw.kernels.index import KernelInfo, ParameterInfo
from tilefw.tile.reference.accuracy import Comparison, compare
from tilefw.tile.reference.value import EvaluatedValue
from tilefw_conformance.nodes.program import MEMORY, RACES, WEAK_MEMORY, NodeProgram, Stand

NOTES: Mapping[str, Mapping[str, str]] = {
    "ranks": {
        "bugType": "DISTRIBUTION", "description": "One rank alone, odd numbers of ranks, and eight.",
        "effect": "A rank's part is left out, or sent to a rank that is not there.",
    },
    "sizes": {
        "bugType": "MASK", "description": "Fewer elements than ranks or programs, and the usual size.",
        "effect": "The last block is lost, or elements beyond it are stored to a peer.",
    },
    "types": {
        "bugType": "WIDTH", "description": "Each element type has its own loads, stores and sums.",
        "effect": "A sum is rounded at each rank, or an element is moved in another width.",
    },
    "order": {
        "bugType": "RACE", "description": "Ranks take turns in many orders, loads may be stale, and races are looked for.",
        "effect": "A rank reads what a peer has not written yet, under a load that no test meets.",
    },
}


@dataclass(frozen=True, slots=True)
class Sweep:
    """Cases of one name: a flag of `NOTES`, and what each parameter is, by what the index says of the collective."""

    name: str
    flag: str
    ranks: Sequence[int]
    seeds: Sequence[int] = (1,)
    memory: str = "coherent"

    def of(self, one: Collective, form: str) -> Sequence[int]:
        """The numbers of ranks: every one for a collective's first form, an odd one and the largest for the others."""
        return self.ranks if len(self.ranks) == 1 or form == one.forms[0] else (3, self.ranks[-1])

    def sizes(self, one: Collective, ranks: int) -> Sequence[int]:
        """Numbers of ranks between those of all forms have a third of the data: what many blocks show, these two show."""
        if self.flag == "sizes":
            return (1, 3, one.n)
        return (one.small // 3,) if 3 < ranks < self.ranks[-1] else (one.small,)

    def dtypes(self, one: Collective) -> Sequence[str]:
        return one.dtypes[1:] if self.flag == "types" else one.dtypes[:1]


SWEEPS = (
    Sweep("ranks", "ranks", (1, 2, 3, 4, 5, 6, 7, 8)), Sweep("sizes", "sizes", (3,)), Sweep("types", "types", (2,)),
    Sweep("order", "order", (2,), (1, 2), "weak"),
)


def choices(one: Collective) -> Iterator[tuple[Sweep, dict[str, Any], int]]:
    """Each case of a collective: its sweep, its parameters, and the seed."""
    for sweep in SWEEPS:
        for form in one.forms:
            for ranks in sweep.of(one, form):
                for n in sweep.sizes(one, ranks):
                    for dtype in sweep.dtypes(one):
                        for seed in sweep.seeds:
                            yield sweep, {"form": form, "ranks": ranks, "n": n, "dtype": dtype, "memory": sweep.memory}, seed


def program(name: str) -> NodeProgram | None:
    """The collective of that name, if the library has it."""
    one = COLLECTIVES.get(name)
    if one is None:
        return None
    info = KernelInfo(f"node:{name}", f"{name} of the library, on a node", (
        ParameterInfo("form", one.forms[0], "which of its forms", one.forms),
        ParameterInfo("ranks", 2, "devices of the node", least=1),
        ParameterInfo("n", one.small, f"{one.counts} of each rank", least=1),
        ParameterInfo("dtype", one.dtypes[0], "the type of elements", one.dtypes), MEMORY,
    ))
    return NodeProgram(info, lambda stand, given: _run(one, stand, given))


def _run(one: Collective, stand: Stand, given: Mapping[str, Any]) -> Mapping[str, Comparison]:
    drawn = one.draw(np.random.default_rng(stand.seed), given["ranks"], given["n"], given["dtype"])
    node = stand.node(given["ranks"])
    arrays = [node.array(list(argument)) for argument in drawn]
    with stand.checking(RACES, WEAK_MEMORY) if given["memory"] == "weak" else nullcontext():
        found = one.run(node, *arrays, given["form"], seed=stand.seed)
    compared = {}
    for rank, due in enumerate(one.expected(*drawn)):
        result = np.asarray(found[rank]).reshape(due.value.shape)
        compared[f"rank {rank}"] = compare(result, EvaluatedValue(due.value, due.bound_of(result.dtype)))
    return compared
