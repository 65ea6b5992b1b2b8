"""What may have happened on the way to an op: the accesses and copies that barriers are asked about."""

from __future__ import annotations

from dataclasses import dataclass, field

BufferAccess = tuple[int, int | None]  # a buffer and the phase, None where it may be any
Dealt = tuple[int, int | None]  # an argument and the deal of an access through it, None where several waves have each element


@dataclass(slots=True)
class PathState:
    """What may have happened on the way here.

    `reads` and `writes` of shared memory since the last barrier, what was `loaded` from global memory and `stored` to it since
    then; `started` copies that no commit covers yet; the `groups` that may not have landed, oldest first; what the
    `products` under way may still read, oldest first. Whether global memory was `accessed` at all since the last barrier, and
    whether an atomic `acquired` what others released, or waited.
    """

    reads: set[BufferAccess] = field(default_factory=set)
    writes: set[BufferAccess] = field(default_factory=set)
    loaded: set[Dealt] = field(default_factory=set)
    stored: set[Dealt] = field(default_factory=set)
    started: set[BufferAccess] = field(default_factory=set)
    groups: tuple[frozenset[BufferAccess], ...] = ()
    products: tuple[frozenset[BufferAccess], ...] = ()
    accessed: bool = False
    acquired: bool = False

    def copy(self) -> PathState:
        sets = (set(self.reads), set(self.writes), set(self.loaded), set(self.stored), set(self.started))
        return PathState(*sets, self.groups, self.products, self.accessed, self.acquired)

    def barrier(self) -> None:
        self.reads.clear()
        self.writes.clear()
        self.loaded.clear()
        self.stored.clear()
        self.accessed = self.acquired = False

    def join(self, other: PathState) -> PathState:
        """What one way or the other may have done. The last groups are each other's counterparts: waits count from the end."""
        groups, products = _aligned(self.groups, other.groups), _aligned(self.products, other.products)
        return PathState(
            self.reads | other.reads, self.writes | other.writes, self.loaded | other.loaded, self.stored | other.stored,
            self.started | other.started, groups, products, self.accessed or other.accessed, self.acquired or other.acquired,
        )


def _aligned(
    a: tuple[frozenset[BufferAccess], ...], b: tuple[frozenset[BufferAccess], ...]
) -> tuple[frozenset[BufferAccess], ...]:
    """Groups joined from the youngest on."""
    short, long = sorted((a, b), key=len)
    short = (frozenset[BufferAccess](),) * (len(long) - len(short)) + short
    return tuple(one | other for one, other in zip(short, long, strict=True))
