"""The litmus tests: which programs run on which ranks, the outcome that is forbidden, and the orders that are too weak for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tilefw_conformance.nodes.litmus import roles


@dataclass(frozen=True, slots=True)
class Orders:
    """Of what publishes and of what waits: order and scope."""

    release: str = "release"
    release_scope: str = "system"
    acquire: str = "acquire"
    acquire_scope: str = "system"


NEEDED = "needed"
ORDERS: Mapping[str, Orders] = MappingProxyType({
    NEEDED: Orders(), "relaxed_release": Orders(release="relaxed"), "relaxed_acquire": Orders(acquire="relaxed"),
    "device_release": Orders(release_scope="device"), "device_acquire": Orders(acquire_scope="device"),
    "both_device": Orders(release_scope="device", acquire_scope="device"),
})
_RELEASES = ("relaxed_release", "device_release")
_ACQUIRES = ("relaxed_acquire", "device_acquire")

Outcome = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""From what the programs saw (a row each), and what x and y hold in the end: the elements with the forbidden outcome."""


@dataclass(frozen=True, slots=True)
class KernelLitmusTest:
    """`programs` are (rank, role). `right` are the orders under which the outcome is forbidden, `wrong` those under which the
    program has to be reported or to show it. `ordered`: no two accesses of the data race under the right orders."""

    summary: str
    programs: tuple[tuple[int, Any], ...]
    forbidden: Outcome
    right: tuple[str, ...] = (NEEDED,)
    wrong: tuple[str, ...] = ()
    ordered: bool = True


def _stale(row: int) -> Outcome:
    return lambda out, x, y: out[row] != 1


_STALE = _stale(1)
TESTS: Mapping[str, KernelLitmusTest] = MappingProxyType({
    "message_passing": KernelLitmusTest(
        "a tile is stored and a flag released; who acquires it has the tile", ((0, roles.publish), (1, roles.read)), _STALE,
        wrong=(*_RELEASES, *_ACQUIRES),
    ),
    "message_passing_on_device": KernelLitmusTest(
        "the same between programs of one rank, for which the device's scope suffices", ((0, roles.publish), (0, roles.read)),
        _STALE, right=(NEEDED, "both_device"), wrong=("relaxed_release", "relaxed_acquire"),
    ),
    "fences": KernelLitmusTest(
        "the same by fences around relaxed atomics", ((0, roles.publish_by_fence), (1, roles.read_by_fence)), _STALE,
        wrong=(*_RELEASES, *_ACQUIRES),
    ),
    "put_signal": KernelLitmusTest(
        "a put and a signal; who waits for it has the tile", ((1, roles.put), (0, roles.wait)), _STALE,
        wrong=(*_RELEASES, *_ACQUIRES),
    ),
    "release_sequence": KernelLitmusTest(
        "another rank counts the flag on, relaxed: the release goes on",
        ((0, roles.publish), (1, roles.count_on), (2, roles.read_behind_two)), _stale(2), wrong=(*_RELEASES, *_ACQUIRES),
    ),
    "transitivity": KernelLitmusTest(
        "who acquired passes on by a release of its own",
        ((0, roles.publish), (1, roles.pass_on), (2, roles.read_behind_turn)), _stale(2), wrong=(*_RELEASES, *_ACQUIRES),
    ),
    "recipe_release": KernelLitmusTest(
        "Iris's recipe: stores, a barrier, a counter, the gate released", ((0, roles.count_in), (1, roles.read)), _STALE,
        wrong=_RELEASES,
    ),
    "recipe_plain_store": KernelLitmusTest(
        "the gate by a plain store, which releases nothing", ((0, roles.open_gate_plainly), (1, roles.read)), _STALE,
        right=(), wrong=(NEEDED,),
    ),
    "recipe_write_through": KernelLitmusTest(
        "the gate by a store that writes through, which releases nothing",
        ((0, roles.open_gate_write_through), (1, roles.read)), _STALE, right=(), wrong=(NEEDED,),
    ),
    "store_buffering": KernelLitmusTest(
        "each stores, takes its turn and loads what the other one stored: one of them has it",
        ((0, roles.store_x_load_y), (1, roles.store_y_load_x)), lambda out, x, y: (out[0] == 0) & (out[1] == 0),
        wrong=_RELEASES, ordered=False,
    ),
    "load_buffering": KernelLitmusTest(
        "each loads before it stores: not both have what the other one stored later",
        ((0, roles.load_x_store_y), (1, roles.load_y_store_x)), lambda out, x, y: (out[0] == 1) & (out[1] == 1),
        ordered=False,  # where turns are relaxed, a later store may pass a load (docs/memory-model.md): nothing is forbidden
    ),
    "independent_reads": KernelLitmusTest(
        "two writers, two readers, who take turns between their reads: they agree which write was first",
        ((0, roles.write_x), (1, roles.write_y), (2, roles.read_x_read_y), (3, roles.read_y_read_x)),
        lambda out, x, y: (out[2] == 1) & (out[4] == 0) & (out[3] == 1) & (out[5] == 0), wrong=_RELEASES, ordered=False,
    ),
    "two_writes": KernelLitmusTest(
        "each stores to both, taking its turn between: not both first stores are the last",
        ((0, roles.store_x_store_y), (1, roles.store_y_store_x)), lambda out, x, y: (x == 1) & (y == 1), ordered=False,
    ),
})
