"""What collectives share: a node as they see it, the words by which programs of all ranks meet, and parts and blocks in order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.api.errors import LaunchError

WORDS = tl.constexpr(2)
"""Of int64 for each program that meets those of its number on the other ranks."""


class SymmetricNode(Protocol):
    """What is asked of a node (`tilefw.node`)."""

    num_ranks: int

    @property
    def ranks(self) -> range: ...
    def zeros(self, shape: Any, dtype: Any = ..., *, name: str | None = ...) -> Any: ...
    def temporary(self) -> AbstractContextManager[list[Any]]: ...
    def launch(self, kernel: Any, grid: Any, *args: Any, **keywords: Any) -> Any: ...
    def run(self, launches: Any, *, seed: int = ...) -> Any: ...


_Rest = ParamSpec("_Rest")


def leaves_its_result(
    collective: Callable[Concatenate[SymmetricNode, _Rest], Any],
) -> Callable[Concatenate[SymmetricNode, _Rest], Any]:
    """The collective, which gives back to the heaps all that it took for itself: words, flags and slots."""

    @wraps(collective)
    def run(node: SymmetricNode, *args: _Rest.args, **keywords: _Rest.kwargs) -> Any:
        with node.temporary() as kept:
            kept.append(collective(node, *args, **keywords))
            return kept[0]

    return run


@tilefw.jit
def meet(words_ptr):
    """All programs of this number, one a rank: what each did before is seen by all behind it."""
    tld.barrier(words_ptr + WORDS * tl.program_id(0))


@tilefw.jit
def sum_of_ranks(x_ptr, offsets, inside):
    """The elements of all ranks' copies added up from rank 0 on, in float32: the same bits on every rank."""
    total = tl.zeros(offsets.shape, tl.float32)
    for peer in range(tld.num_ranks()):
        total += tld.load(x_ptr + offsets, peer, mask=inside, other=0).to(tl.float32)
    return total


@tilefw.jit
def store_to_all(out_ptr, value, offsets, inside):
    """The same tile to every rank's copy, this rank's own last, so that not all ranks begin with rank 0."""
    ranks = tld.num_ranks()
    for step in range(ranks):
        tld.store(out_ptr + offsets, value, (tld.rank() + step + 1) % ranks, mask=inside)


def part(node: SymmetricNode, extent: int) -> int:
    """What of so many elements or rows each rank has. Raises LaunchError TFW0872."""
    if extent % node.num_ranks:
        raise LaunchError(
            f"an extent of {extent} has no {node.num_ranks} equal parts", code="TFW0872", help="pad it to a multiple of the ranks"
        )
    return extent // node.num_ranks


def words(node: SymmetricNode, programs: int) -> Any:
    """Those for a launch of so many programs a rank."""
    return node.zeros((WORDS.value * programs,), "int64", name="meeting words")


def others(programs: int) -> int:
    """How many programs of a launch do not communicate, where one does: at least one."""
    return max(programs - 1, 1)


def launch_together(
    node: SymmetricNode, *launches: tuple[Any, int, tuple[Any, ...], dict[str, Any]], seed: int = 0, **keywords: Any
) -> None:
    """Several kernels on every rank at once, as on streams of their own: each is (kernel, programs, arguments, constexprs)."""
    node.run(
        [
            (rank, kernel, (programs,), arguments, constexprs | keywords)
            for rank in node.ranks for kernel, programs, arguments, constexprs in launches
        ],
        seed=seed,
    )
