"""What the memory model is about: who takes part and where, scopes, and the label of an event (address, way, order, scope)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Literal

Order = Literal["weak", "relaxed", "acquire", "release", "acq_rel", "sc"]
GENERIC = ""


class SyncScope(IntEnum):
    """A set of agents that an event speaks to: those that share so much with its own. Wider scopes are greater."""

    SELF = 0
    WORKGROUP = 1
    DEVICE = 2
    SYSTEM = 3


@dataclass(frozen=True, slots=True)
class Participant:
    """Where an agent (a thread or a wave) runs."""

    device: int
    workgroup: int

    def meets(self, other: Participant) -> SyncScope:
        """The least scope that has both, if they are two agents."""
        if self.device != other.device:
            return SyncScope.SYSTEM
        return SyncScope.WORKGROUP if self.workgroup == other.workgroup else SyncScope.DEVICE


@dataclass(frozen=True)
class EventLabel:
    """How an access or a fence is made. `address`: the virtual address, of which several may name one location; None for a fence.
    `way`: the path to memory that it takes (caches that others do not see without a fence), "" for the generic one."""

    address: object
    order: Order = "weak"
    scope: SyncScope = SyncScope.SELF
    way: str = GENERIC

    @cached_property
    def strong(self) -> bool:
        """Whether it takes part in synchronisation at all."""
        return self.order != "weak"

    @cached_property
    def acquires(self) -> bool:
        """Whether a read with this label learns what releases carry, or a fence does so for earlier reads."""
        return self.order in ("acquire", "acq_rel", "sc")

    @cached_property
    def releases(self) -> bool:
        """Whether a store with this label carries what its agent knows, or a fence makes later stores do so."""
        return self.order in ("release", "acq_rel", "sc")
