"""What passes between core and a backend that makes one artifact of successive launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilefw.api.artifact import Artifact
from tilefw.api.launch import LaunchArguments

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp


@dataclass(frozen=True, slots=True)
class ChainLaunch:
    """One of successive launches: simplified tile IR with the arguments that it is bound to. Buffers with one `storage` number are
    the same memory in all of them. `fusion` lets sums take products unrounded; `needed` are the storages that a later launch or the
    caller uses."""

    module: ModuleOp
    launch: LaunchArguments
    fusion: bool
    needed: frozenset[int]


@dataclass(frozen=True, slots=True)
class LinkedArtifact:
    """The first `count` of successive launches as one artifact, whose entry takes a pointer to the begin of each of `storages`, in
    this order, and nothing else; its grid is (1, 1, 1). `ended` says why no more of them are in it, where some are not.

    No launch of it stores to what another one has stored to or read from outside. `observed` computes the same, bit by bit, and
    also stores all that passes between the launches: by it each of them is judged. Its pointers are `observed_storages`."""

    artifact: Artifact
    count: int
    storages: tuple[int, ...]
    observed: Artifact
    observed_storages: tuple[int, ...]
    ended: str = ""
