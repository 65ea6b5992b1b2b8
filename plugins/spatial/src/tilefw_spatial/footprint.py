"""The bytes that a launch's buffers need on the chip whatever their layout, counted in closed form before anything is laid out.

It is a bound from below, so that nothing is refused that might fit: different elements that loads access, and those that stores do.
What is there more than once, what passes between stream operations and lanes that nobody uses come on top: `schedule.placement`
counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tilefw.api import DTYPES, CapacityError, Place
from tilefw_spatial.graph import AccessMap, Graph, Load, Rename, Value, operands_of
from tilefw_spatial.index_tables import AffineTable, Offsets, TooLarge
from tilefw_spatial.limits import SMALLER
from tilefw_spatial.lower.access_maps import accessed, independent, reach_of
from tilefw_spatial.machine import Machine
from tilefw_spatial.postorder import postorder

_SORTED = 1 << 22  # elements that are sorted to tell which differ


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes that what is `loaded` from or `stored` to a parameter takes at least."""

    parameter: int
    verb: str
    nbytes: int


def check(graph: Graph, machine: Machine, names: Sequence[str], chips: int = 1, place: Place | None = None) -> None:
    """Raises CapacityError (TFW0690) where the buffers need more bytes than the chips have."""
    found, there = needs(graph), machine.capacity * chips
    total = sum(need.nbytes for need in found)
    if total <= there:
        return
    chip = machine.name if chips == 1 else f"{chips} chips {machine.name}"
    parts = ", ".join(f"{need.nbytes} of '{names[need.parameter]}' {need.verb}" for need in found)
    raise CapacityError(
        f"the buffers of this launch need at least {total} bytes of memory, of which {chip} has {there}", "TFW0690", place,
        note=f"bytes: {parts}", help=SMALLER, resource="memory", needed=total, available=there, unit="bytes",
    )


def needs(graph: Graph) -> list[Need]:
    """What each parameter needs, by the parameter's number, loads before stores."""
    loads: dict[int, list[tuple[int, int, int]]] = {}
    for value in _needed_whole(graph):
        if isinstance(value.op, Load):
            loads.setdefault(value.op.access_map.parameter, []).append(_bytes(value.op.access_map, value.dtype))
    found = [Need(parameter, "loaded", _apart(accesses)) for parameter, accesses in loads.items()]
    found += [Need(parameter, "stored", nbytes) for parameter, nbytes in _stored(graph).items()]
    return sorted((need for need in found if need.nbytes), key=lambda need: (need.parameter, need.verb))


def _stored(graph: Graph) -> dict[int, int]:
    """The bytes of each parameter's results. A value that is stored twice is one array: it counts where most of it is stored."""
    largest: dict[Value, tuple[int, int]] = {}
    for store in graph.stores:
        _, _, nbytes = _bytes(store.access_map, store.value.dtype)
        largest[store.value] = max(largest.get(store.value, (0, 0)), (nbytes, -store.access_map.parameter))
    found: dict[int, int] = {}
    for nbytes, parameter in largest.values():
        found[-parameter] = found.get(-parameter, 0) + nbytes
    return found


def _needed_whole(graph: Graph) -> list[Value]:
    """Values of which every element is needed: a reindexing may select some."""
    roots = (root for store in graph.stores for root in (store.value, store.mask) if root is not None)
    return postorder(roots, lambda value: () if _reindexes(value) else operands_of(value.op))


def _reindexes(value: Value) -> bool:
    return isinstance(value.op, Rename) and value.op.index is not None


def _bytes(access_map: AccessMap, dtype: str) -> tuple[int, int, int]:
    """The range of bytes that an access accesses, and how many of them at least."""
    size = DTYPES[dtype].storage_bits // 8
    try:
        low, high = reach_of(access_map)
        return low * size, (high + 1) * size, distinct(access_map) * size
    except TooLarge:
        return 0, 0, 0


def _apart(accesses: Iterable[tuple[int, int, int]]) -> int:
    """The bytes of accesses whose ranges do not overlap, the larger ones first."""
    kept: list[tuple[int, int, int]] = []
    for low, high, nbytes in sorted(accesses, key=lambda access: -access[2]):
        if all(high <= begin or end <= low for begin, end, _ in kept):
            kept.append((low, high, nbytes))
    return sum(nbytes for _, _, nbytes in kept)


def distinct(access_map: AccessMap) -> int:
    """How many different elements an access accesses, at least: those of independent parts that step over all that finer ones
    reach, or together have all numbers of a range."""
    parts = [_steps(accessed(part)) for part in independent(access_map)]
    if any(count == 0 for _, _, count in parts):
        return 0
    found, reach, dense = 1, 0, True
    for step, span, count in sorted(part for part in parts if part[2] > 1):
        even = span == step * (count - 1)
        if step > reach:
            dense = dense and even and step == reach + 1
            found, reach = found * count, reach + span
        elif dense and even:
            reach += span
            found = reach + 1
        elif count > found:
            found, reach, dense = count, span, even and step == 1
    return found


def _steps(elements: Offsets) -> tuple[int, int, int]:
    """The least distance between different elements, that of the outermost, and how many there are, at least."""
    if isinstance(elements, AffineTable):
        step = abs(elements.step)
        return (step, step * (elements.count - 1), elements.count) if step else (0, 0, min(1, elements.count))
    if not elements.size or elements.size > _SORTED:
        return 0, 0, min(1, elements.size)
    found = np.unique(elements)
    return int(np.diff(found).min()) if found.size > 1 else 0, int(found[-1] - found[0]), found.size
