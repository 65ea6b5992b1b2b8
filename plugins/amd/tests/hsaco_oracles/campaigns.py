"""The campaigns over gfx942 code: Triton's, of every case of the corpus, and tilefw's own of the library, text and registers.

    python -m hsaco_oracles.campaigns                   # every site of every kernel of Triton's, writes bench/mutations-gfx942.md
    python -m hsaco_oracles.campaigns --of library      # the same of tilefw's own code, writes bench/mutations-own-gfx942.md
    python -m hsaco_oracles.campaigns --of registers    # of how its registers are assigned, writes bench/mutations-registers.md
    python -m hsaco_oracles.campaigns --sample 60 --seed 7 --kernels softmax matmul_f16

(with plugins/amd/tests and the root of the repository on PYTHONPATH).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence

from hsaco_oracles import equivalence
from hsaco_oracles.sites import shorter, sites
from hsaco_oracles.subject import HsacoSubject
from oracles import allocated_kernel, library_cases
from oracles.allocated_kernel import AllocatedKernel
from oracles.chips import GFX942
from oracles.corpus import Corpus
from oracles.library_subject import Judged, LibrarySubject
from oracles.mutations import Campaign, Verdict, main, score
from oracles.site import Site

TRITON = Corpus(GFX942)
KERNELS = tuple(case.name for case in TRITON.cases())
ORDERS = 3  # a survivor is tried on all launches under each


@functools.cache
def subject(name: str) -> HsacoSubject:
    return HsacoSubject(TRITON, name, _sites, equivalence.proof)


def _sites(text: str) -> list[Site]:
    return list(sites(text))


def _own_sites(text: str) -> list[Site]:
    return [*sites(text), *shorter(text)]


OURS = Judged("amd-cdna3", "library-gfx942", _own_sites, equivalence.proof)


LIBRARY = {**library_cases.LARGE, **library_cases.CONFIGURATIONS, **library_cases.OTHERS}  # what takes longest first
ALLOCATED = {**LIBRARY, **library_cases.SLOW}  # which nobody runs
# Files cut so short that values go to accumulation registers, to scratch memory, to lanes, or to all of these.
CROWDED = {
    "attention_accumulation": ("attention", {"v": 32, "a": 40}),
    "attention_lanes": ("attention", {"s": 36}),
    "matmul_scratch": ("matmul_f16", {"v": 28, "a": 0}),
    "welford_scratch": ("welford", {"v": 32, "a": 0}),
    "welford_everywhere": ("welford", {"v": 40, "a": 8, "s": 24}),
}


@functools.cache
def library(name: str) -> LibrarySubject:
    return LibrarySubject(name, LIBRARY[name], OURS)


@functools.cache
def registers(name: str) -> AllocatedKernel:
    kernel, limits = CROWDED.get(name, (name, None))
    return allocated_kernel.allocated(name, ALLOCATED[kernel], OURS.target, limits)


def accepted(results: Sequence[Verdict]) -> bool:
    """What is asked for: 98 % of all sites but equivalents are reported, of each kind too, and at most 10 % are equivalents."""
    kinds = {v.site.kind for v in results if v.outcome != "equivalent"}
    reported = [score([v for v in results if v.site.kind == kind])[0] for kind in kinds]
    return min(reported) >= 0.98 and score(results)[1] <= 0.10


CAMPAIGNS = {
    "triton": Campaign(
        KERNELS, subject, ORDERS, "mutations-gfx942.md", "Mutations of Triton's gfx942 code, and what the simulator says", accepted
    ),
    "library": Campaign(
        tuple(LIBRARY), library, ORDERS, "mutations-own-gfx942.md",
        "Mutations of tilefw's own gfx942 code, and what the simulator says", accepted,
    ),
    "registers": Campaign(
        (*ALLOCATED, *CROWDED), registers, 0, "mutations-registers.md",
        "Mutations of the registers of tilefw's own gfx942 code, and what the checker of allocations says", accepted,
        allocated_kernel.verdicts, allocated_kernel.JUDGED,
    ),
}

if __name__ == "__main__":
    sys.exit(main(CAMPAIGNS))
