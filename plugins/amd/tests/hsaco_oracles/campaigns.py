"""The campaigns over each chip's code: Triton's, of every case of the corpus, and tilefw's own of the library, text and registers.

    python -m hsaco_oracles.campaigns                             # every site of Triton's kernels, writes bench/mutations-gfx942.md
    python -m hsaco_oracles.campaigns --of library-gfx942         # of tilefw's own code, writes bench/mutations-own-gfx942.md
    python -m hsaco_oracles.campaigns --of registers-gfx942       # of its registers, writes bench/mutations-registers-gfx942.md
    python -m hsaco_oracles.campaigns --of triton-gfx950          # and so on for each chip
    python -m hsaco_oracles.campaigns --of nodes-gfx942              # of collectives, writes bench/mutations-nodes-gfx942.md
    python -m hsaco_oracles.campaigns --sample 60 --seed 7 --kernels softmax matmul_f16

(with plugins/amd/tests and the root of the repository on PYTHONPATH).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence

from hsaco_oracles import equivalence
from hsaco_oracles.sites import between_ranks, shorter, sites
from hsaco_oracles.subject import HsacoSubject
from oracles import allocated_kernel, library_cases
from oracles.allocated_kernel import AllocatedKernel
from oracles.chips import AMD, GFX942, Chip
from oracles.corpus import Corpus
from oracles.library_subject import Judged, LibrarySubject
from oracles.mutations import Campaign, main, noticed, score
from oracles.node_cases import FORMS
from oracles.node_subject import JudgedNode, NodeSubject, node_verdicts
from oracles.site import Site
from oracles.verdict_log import Verdict

TRITON = {chip: Corpus(chip) for chip in AMD}
ORDERS = 3  # a survivor is tried on all launches under each


def _sites(text: str) -> list[Site]:
    return list(sites(text))


def _own_sites(text: str) -> list[Site]:
    return [*sites(text), *shorter(text)]


OURS = {chip: Judged(chip.target, f"library-{chip.triton[1]}", _own_sites, equivalence.proof) for chip in AMD}


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
def subject(chip: Chip, name: str) -> HsacoSubject:
    return HsacoSubject(TRITON[chip], name, _sites, equivalence.proof)


@functools.cache
def library(chip: Chip, name: str) -> LibrarySubject:
    return LibrarySubject(name, LIBRARY[name], OURS[chip])


@functools.cache
def registers(chip: Chip, name: str) -> AllocatedKernel:
    kernel, limits = CROWDED.get(name, (name, None))
    return allocated_kernel.allocated(name, ALLOCATED[kernel], chip.target, limits)


def _node_sites(text: str) -> list[Site]:
    return list(between_ranks(text))


OURS_ON_NODES = JudgedNode(GFX942.target, "nodes-gfx942", _node_sites, equivalence.proof)


@functools.cache
def on_nodes(name: str) -> NodeSubject:
    return NodeSubject(name, OURS_ON_NODES)


def noticed_on_nodes(results: Sequence[Verdict]) -> bool:
    """Whether 99 % of all sites but equivalents are reported, or make results wrong."""
    return noticed(results) >= 0.99


def found(results: Sequence[Verdict]) -> bool:
    """Whether 98 % of all sites but equivalents are reported, of each kind too."""
    kinds = {v.site.kind for v in results if v.outcome != "equivalent"}
    return min(score([v for v in results if v.site.kind == kind])[0] for kind in kinds) >= 0.98


def accepted(results: Sequence[Verdict]) -> bool:
    """What is asked for of a whole campaign: that, and that 10 % at most are equivalents."""
    return found(results) and score(results)[1] <= 0.10


def _campaigns(chip: Chip) -> Iterator[tuple[str, Campaign]]:
    """By whose code and what of it is broken."""
    name = chip.triton[1]
    yield f"triton-{name}", Campaign(
        tuple(case.name for case in TRITON[chip].cases()), functools.partial(subject, chip), ORDERS, f"mutations-{name}.md",
        f"Mutations of Triton's {name} code, and what the simulator says", accepted,
    )
    yield f"library-{name}", Campaign(
        tuple(LIBRARY), functools.partial(library, chip), ORDERS, f"mutations-own-{name}.md",
        f"Mutations of tilefw's own {name} code, and what the simulator says", accepted,
    )
    yield f"registers-{name}", Campaign(
        (*ALLOCATED, *CROWDED), functools.partial(registers, chip), 0, f"mutations-registers-{name}.md",
        f"Mutations of the registers of tilefw's own {name} code, and what the checker of allocations says", accepted,
        allocated_kernel.verdicts, allocated_kernel.JUDGED,
    )


NODES = Campaign(
    FORMS, on_nodes, 4, "mutations-nodes-gfx942.md",
    "Mutations of what ranks say to each other in tilefw's own gfx942 code, and what the simulator and NumPy say", noticed_on_nodes,
    node_verdicts,
)
CAMPAIGNS = {**{name: campaign for chip in AMD for name, campaign in _campaigns(chip)}, "nodes-gfx942": NODES}

if __name__ == "__main__":
    sys.exit(main(CAMPAIGNS))
