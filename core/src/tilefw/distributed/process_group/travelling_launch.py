"""Launches on their way to the process that simulates: machine code and arguments as values, memory as places in heaps or bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilefw.api.artifact import Entry, encode
from tilefw.api.dtypes import DType, dtype
from tilefw.api.errors import LaunchError, Place
from tilefw.distributed.node import DeviceNode
from tilefw.distributed.process_group.shared_heaps import SharedHeaps
from tilefw.distributed.rank_launch import RankLaunch
from tilefw.runtime import config
from tilefw.runtime.arguments.arrays import HostArray, Storage, storages
from tilefw.runtime.arguments.device_arrays import DeviceArray
from tilefw.runtime.arguments.unwritten import mark_again, unwritten
from tilefw.runtime.compilation.compiler import CompiledArtifact
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.plugins.loader import registry

HEAPS, CONTEXT = -1, -2  # in place of the number of a piece of luggage


@dataclass(frozen=True, slots=True)
class Luggage:
    """Memory of a rank that is in no heap: its bytes, of which the bits of `unwritten` tell those that nobody has written. On the
    way back: those bytes that have changed, of which the bits of `changed` tell where they are."""

    data: bytes
    unwritten: bytes | None = None
    changed: bytes | None = None


@dataclass(frozen=True, slots=True)
class TravellingArray:
    """An argument in memory: which (a piece of luggage, the heaps, the rank's node context), and where in it."""

    memory: int
    element: str
    offset: int
    start: int
    nbytes: int
    readonly: bool


@dataclass(frozen=True, slots=True)
class TravellingLaunch:
    """A launch of a rank. `compiled` has the machine code."""

    rank: int
    name: str
    target: str
    resolved: config.Resolved
    compiled: CompiledArtifact
    entry: Entry
    grid: tuple[int, int, int]
    args: tuple[Any, ...]
    block: tuple[int, int, int] | None
    dynamic_shared: int | None
    place: Place | None
    cooperative: bool


class Packed:
    """The launches of a rank, ready to travel: `launches` and their `luggage`; `unpack` takes what has come back."""

    def __init__(self, ready: Sequence[RankLaunch], memory: SharedHeaps) -> None:
        contexts = {one.context.start for one in ready}
        own = [
            ("", array) for one in ready for array in one.made.args
            if isinstance(array, HostArray) and not memory.has(array.start) and array.start not in contexts
        ]
        self._storages = storages(own)
        self.luggage = tuple(_luggage(storage) for storage in self._storages)
        self.launches = tuple(self._launch(one, memory) for one in ready)

    def _launch(self, one: RankLaunch, memory: SharedHeaps) -> TravellingLaunch:
        made = one.made
        args = tuple(self._argument(value, one, memory) for value in made.args)
        return TravellingLaunch(
            one.rank, made.name, made.target.name, made.resolved, replace(made.compiled, times={}), made.entry, made.grid, args,
            made.block, made.dynamic_shared, one.place, one.cooperative,
        )

    def _argument(self, value: Any, one: RankLaunch, memory: SharedHeaps) -> Any:
        if isinstance(value, DeviceArray):
            raise LaunchError(f"{value.what} is in a card's memory; a simulated node has memory of its own", code="TFW0333")
        if not isinstance(value, HostArray):
            return value
        if memory.has(value.start):
            number, base = HEAPS, memory.start
        elif value.start == one.context.start:
            number, base = CONTEXT, value.start
        else:
            number = next(i for i, storage in enumerate(self._storages) if storage.holds(value))
            base = self._storages[number].start
        offset, start = value.address - base, value.start - base
        return TravellingArray(number, value.dtype.name, offset, start, value.nbytes, value.readonly)

    def unpack(self, luggage: Sequence[Luggage | None]) -> None:
        """Write what launches have changed: nothing where none has run."""
        for storage, piece in zip(self._storages, luggage, strict=bool(luggage)):
            if piece is not None and piece.changed is not None:
                view = storage.view()
                view[_flags(piece.changed, view.size)] = np.frombuffer(piece.data, np.uint8)


class Unpacked:
    """The launches of a rank in the process that simulates: `launches` over copies of the luggage; `changes` go back."""

    def __init__(
        self, launches: Sequence[TravellingLaunch], luggage: Sequence[Luggage], node: DeviceNode, memory: SharedHeaps,
        known: dict[bytes, CompiledArtifact],
    ) -> None:
        self._before = luggage
        self._copies = [np.frombuffer(piece.data, np.uint8).copy() for piece in luggage]
        for piece, copy in zip(luggage, self._copies, strict=True):
            if piece.unwritten is not None:
                mark_again(copy, _flags(piece.unwritten, copy.size))
        self.launches = [self._launch(one, node, memory, known) for one in launches]

    def _launch(
        self, one: TravellingLaunch, node: DeviceNode, memory: SharedHeaps, known: dict[bytes, CompiledArtifact]
    ) -> RankLaunch:
        # One artifact for all launches of the same code: the simulator keeps what it has decoded of each.
        compiled = known.setdefault(hashlib.sha256(encode(one.compiled.artifact)).digest(), one.compiled)
        context = node.context_of(one.rank)
        starts = {HEAPS: memory.start, CONTEXT: context.start}
        args = [self._argument(value, starts) for value in one.args]
        made = Launchable(
            one.name, registry().find(one.target), one.resolved, compiled, one.entry, one.grid, args, one.block, one.dynamic_shared
        )
        return RankLaunch(one.rank, made, context, one.place, one.cooperative, prints=False)

    def _argument(self, value: Any, starts: dict[int, int]) -> Any:
        if not isinstance(value, TravellingArray):
            return value
        kept = None if value.memory < 0 else self._copies[value.memory]
        base = starts[value.memory] if kept is None else kept.ctypes.data
        element: DType = dtype(value.element)
        return HostArray(element, base + value.offset, base + value.start, value.nbytes, value.readonly, (kept, kept))

    def changes(self) -> tuple[Luggage | None, ...]:
        """What launches have written, for `Packed.unpack`."""
        return tuple(_changes(piece, copy) for piece, copy in zip(self._before, self._copies, strict=True))


def _luggage(storage: Storage) -> Luggage:
    view = storage.view()
    left = unwritten(view)
    return Luggage(view.tobytes(), None if left is None else np.packbits(left).tobytes())


def _changes(piece: Luggage, now: np.ndarray) -> Luggage | None:
    before = np.frombuffer(piece.data, np.uint8).copy()
    if piece.unwritten is not None:
        mark_again(before, _flags(piece.unwritten, before.size))
    changed = before != now
    return Luggage(now[changed].tobytes(), changed=np.packbits(changed).tobytes()) if changed.any() else None


def _flags(bits: bytes, count: int) -> np.ndarray:
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=count).astype(np.bool_)
