"""Triton's PTX of a case of the corpus as the subject of a mutation campaign."""

from __future__ import annotations

import functools
from typing import Any

from oracles import corpus, execute
from oracles.sites import Site, sites
from oracles.subject import Run

KERNELS = (
    "vector_add",
    "gelu_erf",
    "softmax",
    "layer_norm",
    "welford",
    "matmul_f16",
    "matmul_bf16",
    "matmul_tf32",
    "matmul_i8",
    "attention_causal",
    "collatz_steps",
    "integer_mix",
    "atomic_histogram",
    "transpose",
)


class TritonSubject:
    """A case of the corpus with the launch data of its own and of its variants."""

    corpus = "triton"

    def __init__(self, name: str) -> None:
        case = next(case for case in corpus.cases() if case.name == name)
        self.items = tuple(corpus.item(case, seed=1, variant=index) for index in range(1 + len(case.variants)))
        self.name, self.ptx, self.launches = name, self.items[0].ptx, len(self.items)

    def sites(self) -> list[Site]:
        return list(sites(self.ptx))

    def parse(self, ptx: str) -> Any:
        return execute.parse(ptx, "mutant")

    def run(self, launch: int, code: Any, seed: int, budget: int | None) -> Run:
        item = self.items[launch]
        options = {} if budget is None else {"budget": budget}
        outcome = execute.run(item, code, seed=seed, **options)
        found = item.check(outcome.outputs)
        return Run(outcome.report.findings, str(found[0]) if found else "", outcome.report.counters["instructions"])


@functools.cache
def subject(name: str) -> TritonSubject:
    return TritonSubject(name)
