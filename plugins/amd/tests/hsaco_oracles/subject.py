"""Triton's code for a chip as the subject of a campaign: every launch of its case, and one as firmware without preloading makes it.

Such firmware begins at the entry itself, where a prologue loads the arguments that newer firmware has in SGPRs (AMDGPUUsage,
"Preloaded Kernel Arguments"). The same code under a descriptor that asks for no preloading runs that way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from oracles import execute
from oracles.corpus import Corpus
from oracles.site import Site
from oracles.subject import Run
from oracles.triton_subject import TritonSubject
from tilefw.api import Artifact

_PRELOAD = re.compile(r"(\.amdhsa_user_sgpr_kernarg_preload_length)\s+[1-9]\d*")


class Parsed(NamedTuple):
    """A file as it is, and as firmware sees it that does not preload (None where nothing is preloaded)."""

    code: Artifact
    unpreloaded: Artifact | None


class HsacoSubject:
    """A case with the launch data of its own and of its variants; the last launch is the first one again, without preloading."""

    def __init__(
        self, triton: Corpus, name: str, sites: Callable[[str], list[Site]], proof: Callable[[str, Site], str]
    ) -> None:
        self._plain = TritonSubject(triton, name, f"triton-{triton.chip.triton[1]}", sites, proof)
        self.name, self.corpus, self.text = name, self._plain.corpus, self._plain.text
        self._chip = triton.chip
        self.launches = self._plain.launches + (_PRELOAD.search(self.text) is not None)

    def sites(self) -> list[Site]:
        return self._plain.sites()

    def proof(self, site: Site) -> str:
        return self._plain.proof(site)

    def parse(self, text: str) -> Parsed:
        older = _PRELOAD.sub(r"\1 0", text)
        return Parsed(
            execute.parse(text, "mutant", self._chip), None if older == text else execute.parse(older, "mutant", self._chip)
        )

    def run(self, launch: int, code: Parsed, seed: int, budget: int | None) -> Run:
        if launch < self._plain.launches:
            return self._plain.run(launch, code.code, seed, budget)
        return self._plain.run(0, code.unpreloaded, seed, budget)
