"""Symmetric heaps: on every rank the same arrays at the same offsets, in one address space in which each rank's heap has its base.

An array of a rank is an array of the host, which launches copy to its address and back. Between arrays are gaps, so that who walks
out of one walks into nothing; a pointer that was never translated names an array of another rank, or nobody's memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.api.errors import LaunchError, UsageError
from tilefw.api.integers import round_up
from tilefw.multicast_window import MulticastWindow
from tilefw.node_context import BARRIER, HEAP_BASES, IN_FRONT, MULTICAST_BASE, WORD_BYTES

FIRST_BASE = 1 << 46  # above what devices allocate by themselves, below the top of an address of 48 bits
BASE_STEP = 1 << 38
ALIGNMENT = 1024  # of an array's offset, in bytes
GAP = 1024  # behind each array, at least
DEFAULT_BYTES = 1 << 32  # of each rank's heap; arrays take memory of the host, the rest of a heap takes none
MOST_RANKS = 64
# From the addresses of a rank's heap to those by which ranks that do not reach it know it: nothing is there.
_UNREACHED = BASE_STEP * MOST_RANKS
KEPT_BASE = FIRST_BASE + 2 * _UNREACHED
"""From here on are heaps that stay from launch to launch, each where no other one is."""
LAST_BASE = 1 << 48
_CONTEXT = BASE_STEP // 2  # from a rank's heap to its node context: a rank that is none is an address behind that
# From rank 0's heap to where addresses begin that stand for all ranks' heaps: beyond any number of a rank that is none.
_MULTICAST = BASE_STEP // 4 * 3
_MOST_MULTICAST = BASE_STEP // 4 - (1 << 20)  # bytes


@dataclass(frozen=True, slots=True, eq=False)
class SymmetricArray:
    """An array that every rank has, at one offset of its heap; `[rank]` is that rank's, a NumPy array. `name` is the user's for
    it."""

    name: str | None
    offset: int
    arrays: tuple[np.ndarray, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of each rank's array."""
        return self.arrays[0].shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its elements."""
        return self.arrays[0].dtype

    @property
    def nbytes(self) -> int:
        """Of each rank's array."""
        return self.arrays[0].nbytes

    def __getitem__(self, rank: int) -> np.ndarray:
        return self.arrays[rank]

    def __len__(self) -> int:
        return len(self.arrays)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.arrays)


class SymmetricHeap:
    """The heaps of so many ranks, of `nbytes` each, the first at `first`: every allocation is of all ranks, one behind the other.
    Ranks reach those of their own `domain` by loads and stores: of as many, from a multiple of it on."""

    def __init__(
        self, ranks: int, nbytes: int, domain: int | None = None, reuses: bool = True, first: int = FIRST_BASE
    ) -> None:
        self.domain = domain or ranks
        self.reuses = reuses  # whether the place of an array that was freed is given to another one
        if not 0 < nbytes <= BASE_STEP // 2:
            raise UsageError(f"a symmetric heap has from 1 to {BASE_STEP // 2} bytes, not {nbytes}", code="TFW0902")
        self.nbytes = nbytes
        self.bases = tuple(first + BASE_STEP * rank for rank in range(ranks))
        self.arrays: list[SymmetricArray] = []  # by their offsets
        self.barrier = SymmetricArray("words of the node's barrier", BARRIER, tuple(np.zeros(2, np.int64) for _ in range(ranks)))
        self._next = 0
        self._parameters: dict[int, str] = {}  # by offset: as which one an array without a name was last given to a kernel

    @property
    def end(self) -> int:
        """All addresses of all heaps are below it."""
        return self.bases[-1] + BASE_STEP

    @property
    def multicast(self) -> MulticastWindow:
        """The addresses that stand for all ranks' heaps at once."""
        return MulticastWindow(self.bases[0] + _MULTICAST, min(self.nbytes, _MOST_MULTICAST), self.bases)

    @property
    def known_multicast(self) -> int:
        """Where kernels take them to begin: where ranks do not reach all others, at an address at which nothing is."""
        return self.bases[0] + _MULTICAST + (0 if self.domain >= len(self.bases) else _UNREACHED)

    def context_address(self, rank: int) -> int:
        """The address of a rank's node context."""
        return self.bases[rank] + _CONTEXT

    def context_words(self, rank: int) -> np.ndarray:
        """A rank's node context behind the words that stand in front of it, int64."""
        whole = np.array([*[0] * IN_FRONT, rank, len(self.bases), *self.bases_of(rank)], np.int64)
        whole[IN_FRONT + MULTICAST_BASE] = self.known_multicast
        return whole

    def bases_of(self, rank: int) -> list[int]:
        """The bases as a rank knows them: of those that it does not reach, an address at which nothing is."""
        return [
            base + (0 if peer // self.domain == rank // self.domain else _UNREACHED) for peer, base in enumerate(self.bases)
        ]

    def unknown_rank(self, address: int) -> int | None:
        """The rank that a program asked for, where the address lies behind a node context; None elsewhere."""
        words, rest = divmod((address - self.bases[0]) % BASE_STEP - _CONTEXT, WORD_BYTES)
        asked = words - HEAP_BASES
        if rest or not len(self.bases) <= asked < 1 << 32 or not self.bases[0] <= address < self.end:
            return None
        return asked if asked < 1 << 31 else asked - (1 << 32)

    def unreached(self, address: int) -> int | None:
        """The address in a peer's heap that is meant by one that a rank which does not reach it made; None elsewhere."""
        meant = address - _UNREACHED
        return meant if self.bases[0] <= meant < self.end else None

    def add(self, name: str | None, arrays: Sequence[np.ndarray]) -> SymmetricArray:
        """A new array: `arrays` are the ranks', which it keeps. Raises LaunchError TFW0872 where they differ in shape or type, or
        where the heaps are full."""
        first = arrays[0]
        for rank, array in enumerate(arrays):
            if (array.shape, array.dtype) != (first.shape, first.dtype):
                raise LaunchError(
                    f"a symmetric array is of one shape and type: rank {rank} has {_kind(array)}, rank 0 {_kind(first)}",
                    code="TFW0872", help="pad the arrays to one shape",
                )
        index, offset = self.check_room(first.shape, first.dtype)
        made = SymmetricArray(name, offset, tuple(arrays))
        self.arrays.insert(index, made)
        self._next = max(self._next, place_behind(made.offset, made.nbytes))
        return made

    def free(self, array: SymmetricArray) -> None:
        """The place of an array is there for others, who may get its words as they were. Raises LaunchError TFW0872 where it is
        none of these heaps, or no more."""
        if array not in self.arrays:
            raise LaunchError(f"{array.name or 'an array'} is no array of this node, or was freed before", code="TFW0872")
        self.arrays.remove(array)
        self._parameters.pop(array.offset, None)

    def free_places(self, offsets: Iterable[int]) -> None:
        """The same of arrays of this heap that begin there."""
        wanted = set(offsets)
        for array in [array for array in self.arrays if array.offset in wanted]:
            self.free(array)

    def check_room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, int]:
        """Where an array of that shape and type goes: its index among the arrays, and its offset. Raises LaunchError TFW0872 where
        it does not fit any more, or the shape is none: better before its memory is asked for."""
        _check_extents(shape)
        nbytes, begin = math.prod(shape) * dtype.itemsize, 0
        for index, array in enumerate(self.arrays if self.reuses else ()):
            if begin + nbytes + GAP <= array.offset:
                return index, begin
            begin = place_behind(array.offset, array.nbytes)
        begin = begin if self.reuses else self._next
        if begin + nbytes > self.nbytes:
            left = max(0, self.nbytes - begin)
            raise LaunchError(
                f"the symmetric heaps are full, on rank 0 as on every rank: {dtype}{list(shape)} takes {nbytes} bytes, and {left} "
                f"of {self.nbytes} are left", code="TFW0872",
                help="make the node with a larger `heap_bytes`, or give back what is not needed any more: `node.free(array)`",
            )
        return len(self.arrays), begin

    def given(self, arguments: Iterable[tuple[str, int]]) -> None:
        """Kernels are given, as parameters of these names, what is at these addresses of the host."""
        known = {host.ctypes.data: array for array in self.arrays for host in array.arrays}
        for parameter, start in arguments:
            if start in known:
                self._parameters[known[start].offset] = parameter

    def called(self, array: SymmetricArray) -> str:
        """The name of an array in messages: its own, or that of the parameter for which it was given."""
        return array.name or self._parameters.get(array.offset) or f"array {self.arrays.index(array)}"

    def multicast_place(self, address: int) -> str:
        """What is at a multicast address, of every rank."""
        return self.place(address + self.multicast.distances[0]).replace(" on rank 0", " on every rank")

    def place(self, address: int) -> str:
        """What is at an address, as messages say it."""
        for rank, base in enumerate(self.bases):
            if not base + BARRIER <= address < base + BASE_STEP + BARRIER:
                continue
            offset = address - base
            of_heap = f"heap {'-' if offset < 0 else '+'} {abs(offset):#x}"
            before = [array for array in (self.barrier, *self.arrays) if array.offset <= offset]
            array, beyond = before[-1], offset - before[-1].offset - before[-1].nbytes
            if beyond >= 0:
                return f"{beyond} bytes behind the end of {self.called(array)} on rank {rank} ({of_heap})"
            element = (offset - array.offset) // array.dtype.itemsize
            return f"element {element} of {self.called(array)} on rank {rank} ({of_heap})"
        return f"{address:#x}"


def place_behind(offset: int, nbytes: int) -> int:
    """The first offset at which another array may be, behind one of so many bytes."""
    return round_up(offset + nbytes + GAP, ALIGNMENT)


def _check_extents(shape: tuple[Any, ...]) -> None:
    """Raises LaunchError TFW0872 for what is no shape."""
    for extent in shape:
        if isinstance(extent, bool) or not isinstance(extent, int | np.integer) or extent < 0:
            raise LaunchError(f"{extent!r} in the shape {list(shape)} is no extent", code="TFW0872", help="give integers from 0 on")


def _kind(array: np.ndarray) -> str:
    return f"{array.dtype}{list(array.shape)}"
