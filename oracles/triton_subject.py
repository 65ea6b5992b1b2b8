"""Triton's code of a case of the corpus as the subject of a mutation campaign."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oracles import execute
from oracles.corpus import Corpus
from oracles.site import Site
from oracles.subject import Run


class TritonSubject:
    """A case with the launch data of its own and of its variants; `sites` and `proof` are its instruction set's."""

    def __init__(
        self, triton: Corpus, name: str, corpus: str, sites: Callable[[str], list[Site]], proof: Callable[[str, Site], str]
    ) -> None:
        case = triton.case(name)
        self.items = tuple(triton.item(case, seed=1, variant=index) for index in range(1 + len(case.variants)))
        self.name, self.corpus, self.text, self.launches = name, corpus, self.items[0].text, len(self.items)
        self._sites, self._proof = sites, proof

    def sites(self) -> list[Site]:
        return self._sites(self.text)

    def proof(self, site: Site) -> str:
        return self._proof(self.text, site)

    def parse(self, text: str) -> Any:
        return execute.parse(text, "mutant", self.items[0].chip)

    def run(self, launch: int, code: Any, seed: int, budget: int | None) -> Run:
        item = self.items[launch]
        options = {} if budget is None else {"budget": budget}
        outcome = execute.run(item, code, seed=seed, **options)
        found = item.check(outcome.outputs)
        return Run(outcome.report.findings, str(found[0]) if found else "", outcome.report.counters["instructions"])
