"""What may have happened on the way to an op: the accesses and copies that barriers are asked about."""

from __future__ import annotations

from dataclasses import dataclass, field

BufferAccess = tuple[int, int | None]  # a buffer and the phase, None where it may be any
Dealt = tuple[int, int | None]  # an argument and the deal of an access through it, None where several waves have each element


@dataclass(slots=True)
class PathState:
    """What may have happened on the way here.

    `reads` and `writes` of shared memory since the last barrier, what was `loaded` from global memory and `stored` to it since
    then; `started` copies that no commit covers yet; the `groups` that may not have landed, oldest first. Whether global memory was
    `accessed` at all since the last barrier, and whether an atomic `acquired` what others released, or waited.
    """

    reads: set[BufferAccess] = field(default_factory=set)
    writes: set[BufferAccess] = field(default_factory=set)
    loaded: set[Dealt] = field(default_factory=set)
    stored: set[Dealt] = field(default_factory=set)
    started: set[BufferAccess] = field(default_factory=set)
    groups: tuple[frozenset[BufferAccess], ...] = ()
    accessed: bool = False
    acquired: bool = False

    def copy(self) -> PathState:
        sets = (set(self.reads), set(self.writes), set(self.loaded), set(self.stored), set(self.started))
        return PathState(*sets, self.groups, self.accessed, self.acquired)

    def barrier(self) -> None:
        self.reads.clear()
        self.writes.clear()
        self.loaded.clear()
        self.stored.clear()
        self.accessed = self.acquired = False

    def join(self, other: PathState) -> PathState:
        """What one way or the other may have done. The last groups are each other's counterparts: waits count from the end."""
        short, long = sorted((self.groups, other.groups), key=len)
        short = (frozenset(),) * (len(long) - len(short)) + short
        groups = tuple(a | b for a, b in zip(short, long, strict=True))
        return PathState(
            self.reads | other.reads, self.writes | other.writes, self.loaded | other.loaded, self.stored | other.stored,
            self.started | other.started, groups, self.accessed or other.accessed, self.acquired or other.acquired,
        )
