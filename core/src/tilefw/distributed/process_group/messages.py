"""What processes of a group say to each other: who they are, what they wait for, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from tilefw.api.errors import InternalError, KernelError
from tilefw.distributed.node import JointResult
from tilefw.distributed.process_group.travelling_launch import Luggage, TravellingLaunch


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What all ranks of a group must say alike."""

    version: str
    num_ranks: int
    target: str
    heap_bytes: int
    resident: int | None
    domain_size: int
    trace: bool

    def difference(self, other: NodeSettings) -> str | None:
        """The first setting that differs, with both values; None where all are the same."""
        for setting in fields(self):
            mine, others = getattr(self, setting.name), getattr(other, setting.name)
            if mine != others:
                return f"{setting.name} is {mine}, and {others} on rank 0"
        return None


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a process says first."""

    rank: int
    pid: int
    settings: NodeSettings


@dataclass(frozen=True, slots=True)
class Refusal:
    """A process is not taken in; `again`: it may be if it asks again."""

    error: KernelError
    again: bool = False


@dataclass(frozen=True, slots=True)
class TakenIn:
    """A process is one of the group: where the connection ends from now on, rank 0 has."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """All are there: the shared memory's descriptor follows."""


@dataclass(frozen=True, slots=True)
class SymmetricAllocation:
    """A symmetric array that all ranks make together. Messages name it as rank 0 does."""

    shape: tuple[int, ...]
    dtype: str
    name: str | None = field(compare=False)
    unwritten: bool

    def __str__(self) -> str:
        return f"allocates {'unwritten ' * self.unwritten}{self.dtype}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class ObjectExchange:
    """Each rank is given what all of them bring, as `pickle` writes it; at a barrier that is nothing."""

    word: str

    def __str__(self) -> str:
        return f"is at {self.word}"


@dataclass(frozen=True, slots=True)
class RankRequest:
    """A rank waits: until its launches have ended, which run at once with those of all other ranks, and until all have come to the
    same `meeting` where it names one. `failure`: its launch could not be made. `freed`: with an allocation, the offsets of arrays
    that the rank has freed and whose places it has not heard to be free."""

    launches: tuple[TravellingLaunch, ...] = ()
    luggage: tuple[Luggage, ...] = ()
    seed: int = 0
    meeting: SymmetricAllocation | ObjectExchange | None = None
    brought: bytes = b""
    freed: tuple[int, ...] = ()
    failure: KernelError | None = None

    def __str__(self) -> str:
        if self.meeting is not None:
            return str(self.meeting)
        return f"launches {', '.join(launch.name for launch in self.launches) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class RankOutcome:
    """What a rank has waited for: the result of launches and the rank's own memory after them, or what all ranks brought; and the
    offsets of arrays that all ranks have `freed`, whose places are free from now on, before what they allocate together. With an
    `error` the memory is that in which kernels print; where it is `final` there is nothing more to wait for."""

    result: JointResult | None = None
    luggage: tuple[Luggage | None, ...] = ()
    brought: tuple[bytes, ...] = ()
    freed: tuple[int, ...] = ()
    error: KernelError | InternalError | None = None
    final: bool = False


@dataclass(frozen=True, slots=True)
class StillWaiting:
    """Rank 0's process is alive."""


@dataclass(frozen=True, slots=True)
class Farewell:
    """A rank leaves the group, and says why."""

    reason: str
