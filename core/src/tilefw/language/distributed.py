"""Communication that kernels start themselves: `import tilefw.language.distributed as tld`, for launches on a node of devices.

A node has ranks, one a device. Each has a symmetric heap, and an array of it has a copy at every rank, as far from the beginning
of each heap. A kernel gets its own rank's copy as an argument, and reaches the same place of another rank's by `tld.at(pointer,
rank)`, or by the functions below that take a rank. Plain accesses of a peer's copy are ordered as others are: not at all, until
one program releases and another one acquires. So data are published by a signal, and read behind a wait:

```python
@tilefw.jit
def to_the_right(source, destination, flag, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    right = (tld.rank() + 1) % tld.num_ranks()
    tld.put_signal(source + offsets, destination + offsets, flag, right)
    tld.wait(flag)
```

`sem` is as in `tl.atomic_add`. `scope` says who may take part: "workgroup" ("cta") the same program, "device" ("gpu") every
program of the rank, "system" ("node", "sys") every rank. It is "system" here unless said otherwise; a narrower one at a peer's
copy orders nothing for the peer.
"""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import distributed
from tilefw.language.tensor import tensor

ATOMICS = (
    "atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor", "atomic_xchg", "atomic_cas", "atomic_load",
    "atomic_store",
)


class Team:
    """Some ranks of a node, whose numbers in the team count from 0: what `team` and `team_of` make, and kernels hand on. `size` is
    how many they are."""

    __slots__ = ()

    size: tensor


@distributed
def rank(team: Team | None = None) -> tensor:
    """The number of the rank that runs the program, int32, from 0; with a team its number there, -1 where it is not of it."""
    ...


@distributed
def num_ranks(team: Team | None = None) -> tensor:
    """How many ranks the node has, or the team, int32."""
    ...


@distributed
def team(first: Any = 0, stride: Any = 1, size: Any = None, parent: Team | None = None) -> Team:
    """The team of `size` ranks: `first`, `first + stride`, …; without a size all that there are in that direction.

    With a `parent`, which is strided itself, `first` and `stride` count its members. Nothing is sent to make a team; all its
    ranks make it alike.
    """
    ...


@distributed
def team_of(ranks: Any) -> Team:
    """The team of the ranks of a tuple, in its order: `tld.team_of((0, 2, 3))`. Each is a different one."""
    ...


@distributed
def world_rank(team: Team, rank: Any) -> tensor:
    """The node's number of a team's member; -1, which is no rank, where the team has none of that number."""
    ...


@distributed
def team_rank(team: Team, rank: Any) -> tensor:
    """The number in a team of a rank of the node, -1 where it is not of it: the other way round as `world_rank`."""
    ...


@distributed
def at(pointer: Any, rank: Any) -> Any:
    """Where `pointer`, a pointer or a tile of pointers into this rank's heap, points to in the heap of another one. Of a block
    pointer or a tensor descriptor it is the same block, or the same array, there.

    `rank` is one integer. It is checked in a debug build alone, but a rank that is none is an address that is none, as is a peer
    that this rank does not reach: simulated nodes say so where it is accessed.
    """
    ...


@distributed
def load(
    pointer: Any, rank: Any, mask: Any = None, other: Any = None, cache_modifier: str = "", eviction_policy: str = ""
) -> tensor:
    """The elements of a peer's copy: `tl.load(tld.at(pointer, rank), …)`."""
    ...


@distributed
def store(
    pointer: Any, value: Any, rank: Any, mask: Any = None, cache_modifier: str = "", eviction_policy: str = ""
) -> None:
    """Write `value` to a peer's copy: `tl.store(tld.at(pointer, rank), value, …)`."""
    ...


@distributed
def atomic_add(pointer: Any, val: Any, rank: Any, mask: Any = None, sem: str | None = None, scope: str = "system") -> tensor:
    """`tl.atomic_add` on a peer's copy."""
    ...


@distributed
def atomic_max(pointer: Any, val: Any, rank: Any, mask: Any = None, sem: str | None = None, scope: str = "system") -> tensor:
    """`tl.atomic_max` on a peer's copy."""
    ...


@distributed
def atomic_min(pointer: Any, val: Any, rank: Any, mask: Any = None, sem: str | None = None, scope: str = "system") -> tensor:
    """`tl.atomic_min` on a peer's copy."""
    ...


@distributed
def atomic_and(pointer: Any, val: Any, rank: Any, mask: Any = None, sem: str | None = None, scope: str = "system") -> tensor:
    """`tl.atomic_and` on a peer's copy."""
    ...


@distributed
def atomic_or(pointer: Any, val: Any, rank: Any, mask: Any = None, sem: str | None = None, scope: str = "system") -> tensor:
    """`tl.atomic_or` on a peer's copy."""
    ...


@distributed
def atomic_xor(pointer: Any, val: Any, rank: Any, mask: Any = None, sem: str | None = None, scope: str = "system") -> tensor:
    """`tl.atomic_xor` on a peer's copy."""
    ...


@distributed
def atomic_xchg(pointer: Any, val: Any, rank: Any, mask: Any = None, sem: str | None = None, scope: str = "system") -> tensor:
    """`tl.atomic_xchg` on a peer's copy."""
    ...


@distributed
def atomic_cas(pointer: Any, cmp: Any, val: Any, rank: Any, sem: str | None = None, scope: str = "system") -> tensor:
    """`tl.atomic_cas` on a peer's copy."""
    ...


@distributed
def atomic_load(pointer: Any, rank: Any, mask: Any = None, sem: str | None = None, scope: str = "system") -> tensor:
    """`tl.atomic_load` of a peer's copy."""
    ...


@distributed
def atomic_store(pointer: Any, val: Any, rank: Any, mask: Any = None, sem: str | None = None, scope: str = "system") -> None:
    """`tl.atomic_store` to a peer's copy."""
    ...


@distributed
def multicast_load_reduce(pointer: Any, op: str = "add", mask: Any = None, other: Any = None) -> tensor:
    """What all ranks' copies of `pointer` hold, combined by `op`: "add", "max", "min", and of integers "and", "or", "xor".

    Each copy is read as by a plain load, so that what ranks wrote is there behind a barrier or a wait. The order of the ranks is
    not promised: sums of floats are within the bounds of every order. Those of 16 bits are made in fp32 and rounded once. Targets
    with multicast addresses let the fabric add up; on others the program loads rank after rank, from 0 on.
    """
    ...


@distributed
def multicast_store(pointer: Any, value: Any, mask: Any = None) -> None:
    """Write `value` to every rank's copy of `pointer`, this rank's too: plain stores, which a signal or a barrier publishes."""
    ...


@distributed
def multicast_reduce(
    pointer: Any, value: Any, op: str = "add", mask: Any = None, sem: str = "relaxed", scope: str = "system"
) -> None:
    """Combine `value` with every rank's copy of `pointer`, as one atomic access a rank, whose old value nobody gets; `sem` is
    "relaxed" or "release". With `sem="release"` it signals all ranks: `tld.wait` sees it."""
    ...


@distributed
def put(
    source: Any, destination: Any, rank: Any, mask: Any = None, wait: bool = True, boundary_check: tuple[int, ...] = ()
) -> None:
    """Copy a tile of this rank's memory at `source` to a peer's copy of `destination`: a plain store, which a signal publishes.

    With `wait=False` the copy may be made at any time until this program's next `quiet` (or a fence that releases to the system):
    before that a signal does not publish it, and the source may not be changed. Windows of arrays are given as block pointers
    of one shape; what lies out of bounds along the axes of `boundary_check` is not written.
    """
    ...


@distributed
def get(
    source: Any, destination: Any, rank: Any, mask: Any = None, wait: bool = True, boundary_check: tuple[int, ...] = ()
) -> None:
    """Copy a tile of a peer's copy of `source` to this rank's memory at `destination`: a plain load, for behind a wait.

    With `wait=False` the copy may be made at any time until this program's next `quiet`, behind which the tile is there. Windows
    are as in `put`.
    """
    ...


@distributed
def signal(
    pointer: Any, rank: Any, value: Any = 1, op: str = "set", sem: str = "release", scope: str = "system"
) -> None:
    """Set a peer's copy of a word of int32 or int64 to `value`, or add it (`op="add"`): whoever waits for it there sees all that
    this program has accessed before. A debug build stops where a sum wraps."""
    ...


@distributed
def put_signal(
    source: Any, destination: Any, pointer: Any, rank: Any, value: Any = 1, op: str = "set", mask: Any = None,
    strong: bool = False,
) -> None:
    """`put`, then `signal` at `pointer`: whoever waits for it sees the tile, and all that this program has put before and waited
    for; with `strong=True` what it put with `wait=False` as well, which `quiet` completes first."""
    ...


@distributed
def wait(
    pointer: Any, count: Any = 1, value: Any = 1, comparison: str = "==", sem: str = "acquire", scope: str = "system"
) -> tensor:
    """Wait until each of `count` words of this rank's own memory compares so with `value`; int32 or int64.

    `comparison` is one of "==", "!=", "<", "<=", ">", ">=". Everything that the program does behind it, by any lane, comes after
    what was released at the words. The result is a token for `consume`.
    """
    ...


@distributed
def consume(value: Any, token: tensor) -> Any:
    """`value` as it is: says in the text of a kernel which wait it needs. The wait orders all that follows it by itself."""
    ...


@distributed
def fence(sem: str = "acq_rel", scope: str = "system") -> None:
    """An order without an access: "release" before relaxed atomics that publish, "acquire" behind those that found it out."""
    ...


@distributed
def quiet() -> None:
    """What the program has put so far is complete and in order before all that it does from here on."""
    ...


@distributed
def barrier(pointer: Any = None, team: Team | None = None) -> None:
    """Meet the other ranks: what each did before is seen behind it by all.

    `pointer` is two words of the symmetric heap, int32 or int64, zero at first and of this barrier alone: how many have arrived
    so far, and how often this rank did. One program of each rank takes part, with words of its own. With a `team` its ranks meet,
    and no other may take part, which a debug build checks; words are of one team. Arrivals are counted on from one barrier and
    launch to the next, beyond the largest number too.

    Without words the barrier is the node's own, of all ranks, by words that each node keeps beside its heaps: for one program of
    each rank at a time.
    """
    ...


@distributed
def barrier_arrive(pointer: Any, team: Team | None = None) -> tensor:
    """The first half of `barrier`: say to all that this rank is here. The result is for `barrier_wait`."""
    ...


@distributed
def barrier_wait(pointer: Any, token: tensor) -> None:
    """The second half of `barrier`: wait for the others."""
    ...
