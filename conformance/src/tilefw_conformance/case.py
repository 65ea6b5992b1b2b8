"""A case of the suite: one run of one kernel, with everything set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LEVELS = ("core", "extended", "stress", "preview", "distributed")
ALONE = frozenset({"preview", "distributed"})
"""Levels that include no other, and that no other includes."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run: a kernel with all its parameters set. `id` is `group/case[/varying=value,…]` and never changes its meaning.

    The level is not a part of the id, so that a case that moves from preview to core keeps its name and its history. `since` and
    `until` are the first and the last edition of the suite that it belongs to. `requires` is what its file says that it is there
    to ask for (`*` stands for any words); what it needs is computed. `notes` say by flag which bug it hunts.
    """

    id: str
    level: str
    since: str
    kernel: str
    parameters: Mapping[str, Any]
    seed: int
    requires: frozenset[str]
    stop_after: str
    budget: int | None
    flags: tuple[str, ...]
    notes: Mapping[str, Mapping[str, str]]
    until: str | None = None

    @property
    def group(self) -> str:
        """The first word of its id: the file that it comes from."""
        return self.id.partition("/")[0]
