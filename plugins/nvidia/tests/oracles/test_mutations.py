"""Breaking one wait, barrier, predicate or address of compiled PTX is reported with its instruction, or gives a wrong result.

Of Triton's PTX 95 % are reported; of tilefw's own 98 % are reported or wrong by the reference's bounds.
"""

from __future__ import annotations

import pytest

from oracles import corpus, equivalence, library_cases, mutation_report, mutations, triton_subject

SAMPLE = 60
SAMPLE_KERNELS = (
    "vector_add", "softmax", "layer_norm", "matmul_f16", "attention_causal", "transpose", "integer_mix", "atomic_histogram",
)
OWN_SAMPLE = 100


@pytest.fixture
def triton() -> None:
    if reason := corpus.available():
        pytest.skip(reason)


@pytest.mark.usefixtures("triton")
def test_a_sample_of_sites_is_reported() -> None:
    subjects = map(triton_subject.subject, SAMPLE_KERNELS)
    results = [v for subject, chosen in mutations.sample(subjects, SAMPLE, seed=1) for v in mutations.verdicts(subject, chosen)]
    reported, equivalent = mutations.score(results)
    assert reported >= 0.95 and equivalent <= 0.10, mutation_report.table(results)


@pytest.mark.usefixtures("triton")
def test_every_deleted_wait_and_barrier_of_a_pipelined_matmul_is_reported() -> None:
    """All but those that are proved redundant; the campaign runs these too, under 20 orders."""
    subject = triton_subject.subject("matmul_f16")
    chosen = [s for s in subject.sites() if s.kind in ("wait", "barrier") and not equivalence.proof(subject.ptx, s)]
    assert {s.kind for s in chosen} == {"wait", "barrier"}
    missed = [v for v in mutations.verdicts(subject, chosen) if v.outcome != "reported"]
    assert not missed, "\n".join(f"{v.site}: {v.outcome} {v.detail}" for v in missed)


def test_a_sample_of_own_sites_is_reported_or_wrong() -> None:
    """What is proved equivalent is left to the campaign, which shows under 20 orders that it is."""
    results = []
    for subject, chosen in mutations.sample(map(library_cases.subject, library_cases.CONFIGURATIONS), OWN_SAMPLE, seed=1):
        results += mutations.verdicts(subject, [site for site in chosen if not equivalence.proof(subject.ptx, site)])
    assert mutations.noticed(results) >= 0.98, mutation_report.table(results)


@pytest.mark.campaign
@pytest.mark.usefixtures("triton")
def test_every_site_of_every_kernel_of_tritons() -> None:
    assert mutations.main(["--of", "triton"]) == 0


@pytest.mark.campaign
def test_every_site_of_every_own_kernel() -> None:
    assert mutations.main(["--of", "library"]) == 0
