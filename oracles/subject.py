"""What a mutation campaign breaks: a kernel's code with its launches, and what comes of running a changed copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from oracles.site import Site
from tilefw.api.device import Finding


@dataclass(frozen=True, slots=True)
class Run:
    """One launch: what the checks found, how the outputs differ from what they must be (empty: they do not), how long it was."""

    findings: tuple[Finding, ...] = ()
    mismatch: str = ""
    instructions: int = 0


class Sited(Protocol):
    """A kernel whose code has places to break."""

    @property
    def name(self) -> str: ...

    def sites(self) -> Sequence[Site]:
        """Every mutant that is tried."""
        ...


class Subject(Protocol):
    """A kernel that can be broken. `corpus` and `name` are what written arguments about it go by."""

    corpus: str
    name: str
    text: str
    launches: int  # how many sets of launch data there are

    def sites(self) -> list[Site]:
        """Every mutant that is tried."""
        ...

    def proof(self, site: Site) -> str:
        """Why a mutant does the same as the code itself, as rules show it; empty where they do not."""
        ...

    def parse(self, text: str) -> Any:
        """A changed copy of the text, ready to be run many times; raises KernelError where the parser refuses it."""
        ...

    def run(self, launch: int, code: Any, seed: int, budget: int | None) -> Run:
        """One launch of parsed code in a fresh memory with all checks; raises KernelError where it ends without a report."""
        ...
