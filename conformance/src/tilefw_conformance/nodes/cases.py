"""The cases of the level `distributed`, made from what the library's index of collectives and the table of litmus tests hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from tilefw.kernels.distributed.index import COLLECTIVES
from tilefw_conformance.case import Case
from tilefw_conformance.nodes import OWNER, collectives
from tilefw_conformance.nodes.litmus import running as litmus
from tilefw_conformance.nodes.litmus.table import TESTS

if TYPE_CHECKING:
    from tilefw_conformance.nodes.program import NodeProgram

_SINCE = "0.1"


@cache
def cases() -> tuple[Case, ...]:
    """All of them, in the order of the index."""
    return (*_of_collectives(), *_of_litmus_tests())


def program(name: str) -> NodeProgram | None:
    """The program `node:NAME`, if there is one."""
    return collectives.program(name) or litmus.program(name)


def _of_collectives() -> Iterator[Case]:
    for name, one in COLLECTIVES.items():
        for sweep, parameters, seed in collectives.choices(one):
            words = [f"{key}={value}" for key, value in parameters.items() if key != "memory"]
            words += [f"seed={seed}"] if len(sweep.seeds) > 1 else []
            yield Case(
                id=f"{name}/{sweep.name}/{','.join(words)}", level="distributed", since=_SINCE, kernel=f"{OWNER}:{name}",
                parameters=parameters, seed=seed, requires=frozenset(), stop_after="compare", budget=None, flags=(sweep.flag,),
                notes={sweep.flag: collectives.NOTES[sweep.flag]},
            )


def _of_litmus_tests() -> Iterator[Case]:
    for name, test in TESTS.items():
        for flag, orders in (("order", test.right), ("weakened", test.wrong)):
            for order in orders:
                yield Case(
                    id=f"litmus/{name}/order={order}", level="distributed", since=_SINCE, kernel=f"{OWNER}:{name}",
                    parameters={"order": order}, seed=1, requires=frozenset(), stop_after="compare", budget=None, flags=(flag,),
                    notes={flag: litmus.NOTES[flag]},
                )
