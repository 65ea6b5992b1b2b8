"""The graphs of successive launches as one: a load of what an earlier launch stored becomes that launch's value, reindexed.

Parameters of the whole are storages, each from its first byte on. What a launch reads is either all outside of the chain or all of
its making, and no launch writes what an earlier one has read from outside or written: any other chain ends before such a launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tilefw.api import DTYPES, BufferPlacement, ChainLaunch, Place
from tilefw.api.ir import FuncOp, entry_of
from tilefw_spatial.arrange.access import NOWHERE, elements
from tilefw_spatial.arrange.stores import unconditional
from tilefw_spatial.graph import AccessMap, Axis, BoundsCheck, Constant, Elementwise, Graph, Load, Op, Rename, Store, Value
from tilefw_spatial.index_tables import TooLarge
from tilefw_spatial.link.fused_sums import fuse_sums
from tilefw_spatial.lower import check_grid, lower


@dataclass(frozen=True, slots=True)
class ChainStorage:
    """Memory by its number in the chain's launches."""

    number: int
    nbytes: int
    dtype: str


@dataclass(frozen=True, slots=True)
class LinkedGraph:
    """The whole chain, with all that its launches store: parameter k of the graph is storage k of `storages`."""

    graph: Graph
    storages: tuple[ChainStorage, ...]


class NotLinked(Exception):
    """The launch with this number cannot be joined to those before it."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(why)
        self.number, self.why = number, why


@dataclass(frozen=True, slots=True, eq=False)
class _LeftByLaunch:
    """What a store left: `value` at the elements of its storage, over `axes` in order; `order` sorts them."""

    value: Value
    axes: tuple[Axis, ...]
    elements: NDArray[np.int64]
    order: NDArray[np.int64]


def composed(launches: Sequence[ChainLaunch]) -> LinkedGraph:
    """The graph of all launches one after the other. Raises NotLinked, and what `lower` raises."""
    composer = _Composer()
    for number, one in enumerate(launches):
        try:
            composer.add(number, one)
        except TooLarge as error:
            raise NotLinked(number, f"an access has {error.needed} elements that are looked at one by one") from None
    return composer.finished()


class _Composer:
    """The chain so far."""

    def __init__(self) -> None:
        self._written: dict[int, list[_LeftByLaunch]] = {}
        self._stores: list[Store] = []  # to storages by their numbers
        self._checks: list[tuple[BoundsCheck, Store]] = []
        self._loaded: dict[int, int] = {}  # storages that are read as they were before the chain, with the first launch that does
        self._sizes: dict[int, int] = {}
        self._dtypes: dict[int, str] = {}

    def add(self, number: int, one: ChainLaunch) -> None:
        """The next launch."""
        entry = entry_of(next(op for op in one.module.body.block.ops if isinstance(op, FuncOp)))
        check_grid(one.module, one.launch)
        graph = lower(one.module, one.launch, fusion=False)
        placements = [one.launch.buffers.get(parameter.name) for parameter in entry.parameters]
        count = len(placements)
        stores = unconditional(graph.stores)
        if one.fusion:
            fuse_sums(stores)
        before = {storage: len(found) for storage, found in self._written.items()}
        for value in Graph(stores).values():
            if isinstance(value.op, Load):
                op = replace(value.op, access_map=self._placed(number, value.op.access_map, placements, value.dtype))
                value.op = self._content(number, value, op)
        for store in stores:
            if store.access_map.parameter >= count:
                self._checks.append((graph.checks[store.access_map.parameter - count], store))
                continue
            access_map = self._placed(number, store.access_map, placements, store.value.dtype)
            self._store(number, replace(store, access_map=access_map), before.get(access_map.parameter, 0))

    def finished(self) -> LinkedGraph:
        """The graph with its parameters numbered, and all that its launches stored."""
        stores = self._stores + [replace(store, access_map=replace(store.access_map, parameter=-1)) for _, store in self._checks]
        loads = [value for value in Graph(stores).values() if isinstance(value.op, Load)]
        used = {value.op.access_map.parameter for value in loads if isinstance(value.op, Load)} | set(self._written)
        numbers = {storage: number for number, storage in enumerate(sorted(used))}
        for value in loads:
            if isinstance(value.op, Load):
                value.op = replace(value.op, access_map=_numbered(value.op.access_map, numbers))
        made = [replace(store, access_map=_numbered(store.access_map, numbers)) for store in self._stores]
        made += [
            replace(store, access_map=replace(store.access_map, parameter=len(numbers) + number))
            for number, (_, store) in enumerate(self._checks)
        ]
        storages = tuple(ChainStorage(one, self._sizes[one], self._dtypes[one]) for one in numbers)
        return LinkedGraph(Graph(made, [check for check, _ in self._checks]), storages)

    def _placed(
        self, number: int, access_map: AccessMap, placements: Sequence[BufferPlacement | None], dtype: str
    ) -> AccessMap:
        """An access by the storage that its parameter points into."""
        placement, size = placements[access_map.parameter], DTYPES[dtype].storage_bits // 8
        if placement is None:
            raise NotLinked(number, "it accesses memory of no buffer")
        if placement.offset % size:
            raise NotLinked(number, "a buffer begins within an element")
        self._sizes[placement.storage] = placement.nbytes
        self._dtypes.setdefault(placement.storage, dtype)
        return replace(access_map, parameter=placement.storage, base=access_map.base + placement.offset // size)

    def _store(self, number: int, store: Store, before: int) -> None:
        """A store of a launch, to whose storage `before` stores of earlier launches went."""
        storage = store.access_map.parameter
        self._same_type(number, storage, store.value.dtype)
        if self._loaded.get(storage, number) < number:
            raise NotLinked(number, "it stores to a buffer that an earlier launch reads as it was before")
        axes = tuple(part.axis for part in store.access_map.along)
        found = elements(store.access_map)
        order = np.argsort(found.reshape(-1), kind="stable")
        if any(_located(earlier, found)[1].any() for earlier in self._written.get(storage, ())[:before]):
            raise NotLinked(number, "it stores elements that an earlier launch stored")
        self._written.setdefault(storage, []).append(_LeftByLaunch(_over(store.value, axes), axes, found, order))
        self._stores.append(store)

    def _same_type(self, number: int, storage: int, dtype: str) -> None:
        for earlier in self._written.get(storage, ()):
            if earlier.value.dtype != dtype:
                raise NotLinked(number, f"a buffer of {earlier.value.dtype} is taken for {dtype}")

    def _content(self, number: int, value: Value, op: Load) -> Op:
        """What a load finds: what the chain's launches left, or the buffer's own elements where none of them wrote to it."""
        earlier = self._written.get(op.access_map.parameter, [])
        if not earlier:
            self._loaded.setdefault(op.access_map.parameter, number)
            return op
        self._same_type(number, op.access_map.parameter, value.dtype)
        axes = tuple(part.axis for part in op.access_map.along)
        wanted = elements(op.access_map)
        there = missing = wanted != NOWHERE
        pieces: list[tuple[NDArray[np.bool_], Value]] = []
        for one in reversed(earlier):
            index, hit = _located(one, wanted)
            hit &= missing
            if hit.any():
                pieces.append((hit, _renamed(one, axes, _steadied(index, hit), value)))
                missing = missing & ~hit
        if missing.any():
            raise NotLinked(number, "it reads elements of a buffer of which earlier launches stored others")
        found = pieces.pop()[1] if pieces and there.all() else _fill(op.fill, value.dtype, value.place)
        for hit, piece in reversed(pieces):
            mask = Value(Constant(hit), axes, "int1", value.place)
            found = Value(Elementwise("select", (mask, piece, found), fusion=False), axes, value.dtype, value.place)
        return Rename(found, (), ())


def _numbered(access_map: AccessMap, numbers: dict[int, int]) -> AccessMap:
    return replace(access_map, parameter=numbers[access_map.parameter])


def _over(value: Value, axes: tuple[Axis, ...]) -> Value:
    """The value over all axes of its store."""
    return value if set(value.axes) == set(axes) else Value(Rename(value, (), ()), axes, value.dtype, value.place)


def _located(one: _LeftByLaunch, wanted: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each element that is wanted its flat index in a store, and whether it is there."""
    flat = one.elements.reshape(-1)
    place = np.clip(np.searchsorted(flat, wanted, sorter=one.order), 0, flat.size - 1)
    index = one.order[place]
    return index, (flat[index] == wanted) & (wanted != NOWHERE)


def _steadied(index: NDArray[np.int64], hit: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The index with what is hit nowhere along an axis taken from where it is hit: beyond the ends of a block the table goes on by
    axes, as layouts need it."""
    for axis in range(index.ndim):
        live = np.flatnonzero(hit.any(axis=tuple(n for n in range(index.ndim) if n != axis)))
        if 0 < live.size < index.shape[axis]:
            steady = steady_part(live, index.shape[axis])
            index, hit = index.take(steady, axis=axis), hit.take(steady, axis=axis)
    return np.where(hit, index, 0)


def steady_part(live: NDArray[np.int64], extent: int) -> NDArray[np.int64]:
    """For each of `extent` indices one that is live: of a block that divides them the same index of the block, so that all such
    blocks, as the halves that a rotation stores, are seen along the same lanes; else the next one."""
    first, size = int(live[0]), live.size
    if extent % size == 0 and first % size == 0 and live[-1] - first == size - 1:
        return first + np.arange(extent) % size
    return live[np.clip(np.searchsorted(live, np.arange(extent)), 0, size - 1)]


def _renamed(one: _LeftByLaunch, axes: tuple[Axis, ...], index: NDArray[np.int64], like: Value) -> Value:
    return Value(Rename(one.value, one.axes, axes, index), axes, one.value.dtype, like.place)


def _fill(code: int, dtype: str, place: Place | None) -> Value:
    """An element's bits as a constant."""
    info = DTYPES[dtype]
    bits = np.asarray(code, f"u{info.storage_bits // 8}")
    named = info.name in ("fp64", "fp32", "fp16") or not info.is_float
    data = bits.astype(np.bool_) if dtype == "int1" else bits.view(np.dtype(info.numpy)) if named else bits
    return Value(Constant(np.asarray(data)), (), dtype, place)
