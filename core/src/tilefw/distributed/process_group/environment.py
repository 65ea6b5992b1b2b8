"""Which rank of which group a process is: by arguments, by PyTorch's own group, or by the environment as torchrun sets it."""

from __future__ import annotations

import hashlib
import os
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilefw.api.errors import UnsupportedError, UsageError
from tilefw.distributed.symmetric_heap import MOST_RANKS

_TCP = "tcp://"
_VARIABLES = ("MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, slots=True)
class Membership:
    """A process as one of a group: its rank, how many there are, and by which `place` they find each other."""

    rank: int
    num_ranks: int
    place: str

    @property
    def address(self) -> str:
        """Of the socket at which rank 0 waits for the others: in Linux's abstract namespace, where nothing is left behind when a
        process is killed (unix(7)), and beside the port itself, which PyTorch's own store has."""
        return "\0tilefw-" + hashlib.sha256(f"{os.getuid()} {self.place}".encode()).hexdigest()[:32]


def membership(rank: int | None, world_size: int | None, init_method: str | None) -> Membership:
    """The arguments, and for those that are None PyTorch's group where the process has one, else the environment. Raises UsageError
    TFW0880 where nothing says it, UnsupportedError TFW0880 for ranks on several machines."""
    if not sys.platform.startswith("linux"):
        raise UnsupportedError(
            f"ranks in processes of their own are served on Linux alone, and this is {sys.platform}", code="TFW0880",
            help="run the ranks in one process: tilefw.node(target, ranks)",
        )
    torch_group = sys.modules.get("torch.distributed")
    torch_has_one = torch_group is not None and torch_group.is_available() and torch_group.is_initialized()
    if torch_has_one and rank is None and init_method is None:
        return _of_torch(torch_group, world_size)
    found = os.environ
    number = _number("RANK", rank, found)
    ranks = _number("WORLD_SIZE", world_size, found)
    if rank is None:
        _check_machine(ranks)
    if not 1 <= ranks <= MOST_RANKS:
        raise UsageError(f"a group has from 1 to {MOST_RANKS} ranks, not {ranks}", code="TFW0880")
    if not 0 <= number < ranks:
        raise UsageError(f"rank {number} is none of a group of {ranks}: they are 0 to {ranks - 1}", code="TFW0880")
    return Membership(number, ranks, _place(init_method, found))


def _check_machine(ranks: int) -> None:
    """Whether as many as there are were started on this machine, where torchrun says how many were."""
    local = os.environ.get("LOCAL_WORLD_SIZE", str(ranks))
    if local != str(ranks):
        raise UnsupportedError(
            f"{local} of {ranks} ranks are on this machine: the heaps of a group are in one machine's memory", code="TFW0880",
            help="start all ranks on one machine: torchrun --nproc-per-node=N",
        )


def _of_torch(group: Any, world_size: int | None) -> Membership:
    """As PyTorch's group has it, which also carries a name to all ranks that no other program has."""
    ranks = group.get_world_size()
    if world_size not in (None, ranks):
        raise UsageError(f"world_size is {world_size}, and PyTorch's group has {ranks} ranks", code="TFW0880")
    _check_machine(ranks)
    name = [uuid.uuid4().hex]
    group.broadcast_object_list(name, src=0)
    return Membership(group.get_rank(), ranks, f"PyTorch's group {name[0]}")


def _number(name: str, given: int | None, found: Mapping[str, str]) -> int:
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    word = found.get(name)
    if given is not None or (word is not None and not word.isdecimal()):
        raise UsageError(f"{name} is a whole number, not {word if given is None else given!r}", code="TFW0880")
    if word is None:
        raise UsageError(
            f"nothing says which rank this process is: {name} is not set", code="TFW0880",
            help="start the program with torchrun, or say rank, world_size and init_method='tcp://127.0.0.1:PORT'",
        )
    return int(word)


def _place(init_method: Any, found: Mapping[str, str]) -> str:
    if init_method not in (None, "env://"):
        if not isinstance(init_method, str) or not init_method.startswith(_TCP) or not init_method.rpartition(":")[2].isdecimal():
            raise UsageError(f"init_method is 'env://' or 'tcp://ADDRESS:PORT', not {init_method!r}", code="TFW0880")
        return init_method.removeprefix(_TCP)
    words = [found.get(name) for name in _VARIABLES]
    if None in words:
        raise UsageError(
            f"nothing says where the ranks meet: {_VARIABLES[words.index(None)]} is not set", code="TFW0880",
            help="start the program with torchrun, or say init_method='tcp://127.0.0.1:PORT'",
        )
    run = found.get("TORCHELASTIC_RUN_ID", "none")  # what torchrun says where nobody names a run
    return ":".join(map(str, words)) + ("" if run == "none" else f" (run {run})")
