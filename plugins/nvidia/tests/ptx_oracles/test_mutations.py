"""Breaking one wait, barrier, predicate or address of Triton's PTX is reported with its instruction (acceptance: 95 %)."""

from __future__ import annotations

import pytest

from oracles import mutation_report, mutations
from ptx_oracles import campaigns

SAMPLE = 40
SAMPLE_KERNELS = (
    "vector_add", "softmax", "layer_norm", "matmul_f16", "attention_causal", "transpose", "integer_mix", "atomic_histogram",
)


@pytest.fixture
def triton() -> None:
    if reason := campaigns.TRITON.available():
        pytest.skip(reason)


@pytest.mark.usefixtures("triton")
def test_a_sample_of_sites_is_reported() -> None:
    subjects = map(campaigns.subject, SAMPLE_KERNELS)
    results = [v for subject, chosen in mutations.sample(subjects, SAMPLE, seed=1) for v in mutations.verdicts(subject, chosen)]
    reported, equivalent = mutations.score(results)
    assert reported >= 0.95 and equivalent <= 0.10, mutation_report.table(results)


@pytest.mark.usefixtures("triton")
def test_every_deleted_wait_and_barrier_of_a_pipelined_matmul_is_reported() -> None:
    """All but those that are proved redundant; the campaign runs these too, under other orders."""
    subject = campaigns.subject("matmul_f16")
    chosen = [s for s in subject.sites() if s.kind in ("wait", "barrier") and not subject.proof(s)]
    assert {s.kind for s in chosen} == {"wait", "barrier"}
    missed = [v for v in mutations.verdicts(subject, chosen) if v.outcome != "reported"]
    assert not missed, "\n".join(f"{v.site}: {v.outcome} {v.detail}" for v in missed)


def test_every_deleted_wait_commit_and_fence_of_products_of_warpgroups_is_reported() -> None:
    if reason := campaigns.HOPPER.available():
        pytest.skip(reason)
    subject = campaigns.of_warpgroups("warpgroup_f16")
    kinds = ("wait", "weaken", "commit", "fence")
    chosen = [s for s in subject.sites() if (s.kind in kinds and "wgmma" in s.before) or "proxy" in s.before]
    assert {s.kind for s in chosen} == set(kinds)
    missed = [v for v in mutations.verdicts(subject, chosen) if v.outcome != "reported"]
    assert not missed, "\n".join(f"{v.site}: {v.outcome} {v.detail}" for v in missed)


@pytest.mark.campaign
def test_every_site_of_every_kernel_with_products_of_warpgroups() -> None:
    if reason := campaigns.HOPPER.available():
        pytest.skip(reason)
    assert mutations.main(campaigns.CAMPAIGNS, ["--of", "warpgroups"]) == 0


@pytest.mark.campaign
@pytest.mark.usefixtures("triton")
def test_every_site_of_every_kernel_of_tritons() -> None:
    assert mutations.main(campaigns.CAMPAIGNS, ["--of", "triton"]) == 0
