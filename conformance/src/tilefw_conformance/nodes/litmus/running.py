"""A litmus test as a program: a number of seeds under what the target checks; right orders show nothing, wrong ones are found."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

import numpy as np

from tilefw.api.errors import CheckError
from tilefw.kernels.index import KernelInfo, ParameterInfo
from tilefw.tile.reference.accuracy import Comparison, compare
from tilefw.tile.reference.value import EvaluatedValue
from tilefw_conformance.nodes.litmus.table import NEEDED, ORDERS, TESTS, KernelLitmusTest
from tilefw_conformance.nodes.program import RACES, WEAK_MEMORY, NodeProgram, Stand

SEEDS = 6
"""From the case's seed on, in which no forbidden outcome may come."""
LONGEST_SEARCH = 48
"""Seeds within which a program that races by nature has to show its outcome once an order is missing; the first ends the search."""
_N = 64  # elements of a tile, each of which may show the outcome
_ROWS = 6
_RACE = "TFW0804"
NOTES: Mapping[str, Mapping[str, str]] = {
    "order": {
        "bugType": "MEMORY_ORDER",
        "description": "Programs on several devices publish and read, with the order and scope that it takes.",
        "effect": "A kernel sees the flag and old data behind it, on some cards and some days.",
    },
    "weakened": {
        "bugType": "MEMORY_ORDER", "description": "An order or a scope that the program needs is missing.",
        "effect": "The simulator shows a wrong program as right: its memory is stronger than the chip's.",
    },
}


def program(name: str) -> NodeProgram | None:
    """The litmus test of that name, if there is one."""
    test = TESTS.get(name)
    if test is None:
        return None
    order = ParameterInfo("order", NEEDED, "the orders of what publishes and of what waits", test.right + test.wrong)
    return NodeProgram(KernelInfo(f"node:{name}", test.summary, (order,)), lambda stand, given: _run(test, stand, given["order"]))


def _run(test: KernelLitmusTest, stand: Stand, order: str) -> Mapping[str, Comparison]:
    if order in test.right:
        checks = [check for check in (RACES, WEAK_MEMORY) if stand.makes(check) and (test.ordered or check != RACES)]
        shown = 0
        for seed in range(stand.seed, stand.seed + SEEDS):
            with stand.checking(*checks) if checks else nullcontext():
                shown += _outcomes(test, stand, order, seed)
        return {"forbidden outcomes": _is(shown, 0)}
    with stand.checking(WEAK_MEMORY):  # and no other target is asked
        search = SEEDS if test.ordered else LONGEST_SEARCH  # a race is reported under any seed
        found = any(_outcomes(test, stand, order, seed) for seed in range(stand.seed, stand.seed + search))
        found = found or (test.ordered and _reported(test, stand, order))
    return {"reported or shown": _is(int(found), 1)}


def _reported(test: KernelLitmusTest, stand: Stand, order: str) -> bool:
    """Whether the check of races finds the program."""
    if not stand.makes(RACES):
        return False
    try:
        with stand.checking(RACES):
            _outcomes(test, stand, order, stand.seed)
    except CheckError as error:
        if any(finding.code == _RACE for finding in error.findings):
            return True
        raise
    return False


def _outcomes(test: KernelLitmusTest, stand: Stand, order: str, seed: int) -> int:
    """Run the test once; how many elements have the outcome."""
    node, orders = stand.node(max(rank for rank, _ in test.programs) + 1), ORDERS[order]
    x, y = node.zeros((_N,), "int32", name="x"), node.zeros((_N,), "int32", name="y")
    flag, turn = node.zeros((1,), "int32", name="flag"), node.zeros((1,), "int32", name="turn")
    out = node.full((_ROWS, _N), -1, "int32", name="out")
    words = (_N, orders.release, orders.release_scope, orders.acquire, orders.acquire_scope)
    node.run(
        [(rank, role, (1,), (x, y, flag, turn, out, 0, me, *words)) for me, (rank, role) in enumerate(test.programs)], seed=seed
    )
    saw = np.max([out[rank] for rank in node.ranks], axis=0)  # each row has one writer
    return int(test.forbidden(saw, x[0], y[0]).sum())


def _is(found: int, due: int) -> Comparison:
    return compare(np.array([found]), EvaluatedValue(np.array([due])))
