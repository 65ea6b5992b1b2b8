"""The campaigns over PTX: Triton's of the corpus, and tilefw's own of the library.

    python -m ptx_oracles.campaigns                     # every site of every kernel of Triton's, writes bench/mutations.md
    python -m ptx_oracles.campaigns --of library        # the same of tilefw's own PTX, writes bench/mutations-own.md
    python -m ptx_oracles.campaigns --of warpgroups     # Triton's for sm_90a, writes bench/mutations-warpgroups.md
    python -m ptx_oracles.campaigns --of own_warpgroups # tilefw's own for sm_90a, writes bench/mutations-own-warpgroups.md
    python -m ptx_oracles.campaigns --of nodes          # of the collectives of a node, writes bench/mutations-nodes-sm80.md
    python -m ptx_oracles.campaigns --sample 60 --seed 7 --kernels softmax matmul_f16

(with plugins/nvidia/tests and the root of the repository on PYTHONPATH).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence

from oracles import library_cases
from oracles.chips import SM80, SM90A
from oracles.corpus import Corpus
from oracles.library_subject import Judged, LibrarySubject
from oracles.mutations import ORDERS, Campaign, main, noticed, score
from oracles.node_cases import FORMS
from oracles.node_subject import JudgedNode, NodeSubject, node_verdicts
from oracles.site import Site
from oracles.triton_subject import TritonSubject
from oracles.verdict_log import Verdict
from ptx_oracles import equivalence
from ptx_oracles.conditions import conditions
from ptx_oracles.constants import constants
from ptx_oracles.sites import ENGINE_KINDS, LINE_KINDS, NODE_KINDS, OWN_ENGINE_KINDS, WARPGROUP_KINDS, polls, sites

TRITON = Corpus(SM80)
KERNELS = (
    "vector_add", "gelu_erf", "softmax", "layer_norm", "welford", "matmul_f16", "matmul_bf16", "matmul_tf32", "matmul_i8",
    "attention_causal", "collatz_steps", "integer_mix", "atomic_histogram", "transpose",
)


@functools.cache
def subject(name: str) -> TritonSubject:
    return TritonSubject(TRITON, name, "triton", _sites, equivalence.proof)


def _sites(text: str) -> list[Site]:
    return list(sites(text))


def _own_sites(text: str) -> list[Site]:
    return [*sites(text, LINE_KINDS), *constants(text), *conditions(text)]


HOPPER = Corpus(SM90A)
WARPGROUP_KERNELS = (
    "warpgroup_f16_128", "warpgroup_bf16", "warpgroup_tf32", "warpgroup_i8", "warpgroup_fp8e4nv", "warpgroup_attention_f16_causal",
    "warpgroup_two_products_64_32", "descriptor_doubled_f16", "descriptor_host_doubled_fp16", "descriptor_added_fp16",
    "descriptor_product_64", "descriptor_columns_f16", "softmax_cluster_2",
)


@functools.cache
def of_warpgroups(name: str) -> TritonSubject:
    return TritonSubject(HOPPER, name, "warpgroups", _warpgroup_sites, equivalence.proof)


def _warpgroup_sites(text: str) -> list[Site]:
    return list(sites(text, ENGINE_KINDS if "mbarrier" in text or "cp.async.bulk" in text else WARPGROUP_KINDS))


OURS = Judged("nvidia-sm80", "library", _own_sites, equivalence.proof)


@functools.cache
def library(name: str) -> LibrarySubject:
    return LibrarySubject(name, library_cases.CONFIGURATIONS[name], OURS)


def _own_warpgroup_sites(text: str) -> list[Site]:
    return list(sites(text, OWN_ENGINE_KINDS))


OURS_FOR_WARPGROUPS = Judged("nvidia-sm90a", "own_warpgroups", _own_warpgroup_sites, equivalence.proof)


@functools.cache
def own_warpgroups(name: str) -> LibrarySubject:
    return LibrarySubject(name, library_cases.WARPGROUPS[name], OURS_FOR_WARPGROUPS)


def _node_sites(text: str) -> list[Site]:
    return [*sites(text, NODE_KINDS), *polls(text)]


OURS_ON_NODES = JudgedNode("nvidia-sm80", "nodes-sm80", _node_sites, equivalence.proof)


@functools.cache
def on_nodes(name: str) -> NodeSubject:
    return NodeSubject(name, OURS_ON_NODES)


def _reported(results: Sequence[Verdict]) -> bool:
    return score(results)[0] >= 0.95 and score(results)[1] <= 0.10


def _noticed(results: Sequence[Verdict]) -> bool:
    return noticed(results) >= 0.98


def _noticed_on_nodes(results: Sequence[Verdict]) -> bool:
    return noticed(results) >= 0.99


CAMPAIGNS = {
    "triton": Campaign(
        KERNELS, subject, ORDERS, "mutations.md", "Mutations of Triton's PTX, and what the simulator says", _reported
    ),
    "warpgroups": Campaign(
        WARPGROUP_KERNELS, of_warpgroups, 4, "mutations-warpgroups.md",
        "Mutations of Triton's PTX for sm_90a, and what the simulator says", _noticed,
    ),
    "own_warpgroups": Campaign(
        tuple(library_cases.WARPGROUPS), own_warpgroups, 4, "mutations-own-warpgroups.md",
        "Mutations of tilefw's own PTX for sm_90a, and what the simulator and the reference's bounds say", _noticed,
    ),
    "nodes": Campaign(
        FORMS, on_nodes, 4, "mutations-nodes-sm80.md",
        "Mutations of what ranks say to each other in tilefw's own PTX, and what the simulator and NumPy say", _noticed_on_nodes,
        node_verdicts,
    ),
    "library": Campaign(
        tuple(library_cases.CONFIGURATIONS), library, 6, "mutations-own.md",
        "Mutations of tilefw's own PTX, and what the simulator and the reference's bounds say", _noticed,
    ),
}

if __name__ == "__main__":
    sys.exit(main(CAMPAIGNS))
