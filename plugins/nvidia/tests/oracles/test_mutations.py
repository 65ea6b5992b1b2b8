"""Breaking one wait, barrier, predicate or address of Triton's PTX is reported with its instruction (acceptance: 95 %)."""

from __future__ import annotations

import pytest

from oracles import corpus, equivalence, mutations

SAMPLE = 60
SAMPLE_KERNELS = (
    "vector_add", "softmax", "layer_norm", "matmul_f16", "attention_causal", "transpose", "integer_mix", "atomic_histogram",
)


@pytest.fixture(autouse=True)
def _triton() -> None:
    if reason := corpus.available():
        pytest.skip(reason)


def test_a_sample_of_sites_is_reported() -> None:
    results = [v for kernel, chosen in mutations.sample(SAMPLE_KERNELS, SAMPLE, seed=1) for v in mutations.verdicts(kernel, chosen)]
    reported, equivalent = mutations.score(results)
    assert reported >= 0.95 and equivalent <= 0.10, mutations.report(results, 0)


def test_every_deleted_wait_and_barrier_of_a_pipelined_matmul_is_reported() -> None:
    """All but those that are proved redundant; the campaign runs these too, under 20 orders."""
    ptx = mutations.launches("matmul_f16")[0].ptx
    chosen = [s for s in mutations.sites(ptx) if s.kind in ("wait", "barrier") and not equivalence.proof(ptx, s)]
    assert {s.kind for s in chosen} == {"wait", "barrier"}
    missed = [v for v in mutations.verdicts("matmul_f16", chosen) if v.outcome != "reported"]
    assert not missed, "\n".join(f"{v.site}: {v.outcome} {v.detail}" for v in missed)


@pytest.mark.campaign
def test_every_site_of_every_kernel() -> None:
    assert mutations.main([]) == 0
