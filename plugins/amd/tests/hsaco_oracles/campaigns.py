"""The campaigns over gfx942 code: Triton's, of every case of the corpus, and tilefw's own of the library.

    python -m hsaco_oracles.campaigns                   # every site of every kernel of Triton's, writes bench/mutations-gfx942.md
    python -m hsaco_oracles.campaigns --of library      # the same of tilefw's own code, writes bench/mutations-own-gfx942.md
    python -m hsaco_oracles.campaigns --sample 60 --seed 7 --kernels softmax matmul_f16

(with plugins/amd/tests and the root of the repository on PYTHONPATH).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence

from hsaco_oracles import equivalence
from hsaco_oracles.sites import sites
from hsaco_oracles.subject import HsacoSubject
from oracles import library_cases
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


OURS = Judged("amd-cdna3", "library-gfx942", _sites, equivalence.proof)


@functools.cache
def library(name: str) -> LibrarySubject:
    return LibrarySubject(name, library_cases.CONFIGURATIONS[name], OURS)


def accepted(results: Sequence[Verdict]) -> bool:
    """What is asked for: 98 % of all sites but equivalents are reported, and at most 10 % are equivalents."""
    reported, equivalent = score(results)
    return reported >= 0.98 and equivalent <= 0.10


CAMPAIGNS = {
    "triton": Campaign(
        KERNELS, subject, ORDERS, "mutations-gfx942.md", "Mutations of Triton's gfx942 code, and what the simulator says", accepted
    ),
    "library": Campaign(
        tuple(library_cases.CONFIGURATIONS), library, ORDERS, "mutations-own-gfx942.md",
        "Mutations of tilefw's own gfx942 code, and what the simulator and the reference's bounds say", accepted,
    ),
}

if __name__ == "__main__":
    sys.exit(main(CAMPAIGNS))
