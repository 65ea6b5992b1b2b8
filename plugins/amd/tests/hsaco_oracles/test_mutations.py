"""A weaker wait, a missing barrier or needed pause in Triton's gfx942 code is reported with its instruction (acceptance: 98 %)."""

from __future__ import annotations

import pytest

from hsaco_oracles import campaigns, pauses
from oracles import mutation_report, mutations
from oracles.site import changed

SAMPLE = 60
SAMPLE_KERNELS = (
    "vector_add", "softmax", "arg_extremes", "gather_rows", "atomic_histogram", "ticket", "row_sums", "sort_rows", "column_sums",
    "matmul_f16", "matmul_f16_1_warp", "matmul_f16_128",
)


@pytest.fixture
def triton() -> None:
    if reason := campaigns.TRITON.available():
        pytest.skip(reason)


@pytest.mark.usefixtures("triton")
def test_a_sample_of_sites_is_reported() -> None:
    subjects = map(campaigns.subject, SAMPLE_KERNELS)
    results = [
        v for subject, chosen in mutations.sample(subjects, SAMPLE, seed=1) for v in mutations.verdicts(subject, chosen, orders=1)
    ]
    assert campaigns.accepted(results), mutation_report.table(results)


@pytest.mark.usefixtures("triton")
@pytest.mark.parametrize("name", ["softmax_aligned", "gelu_tanh", "vector_add_wide", "linear_recurrence", "row_sums"])
def test_pauses_that_are_no_sites_can_be_left_out(name: str) -> None:
    """The rule that leaves them out looks at text alone; the simulator, which knows the hardware's rules, finds no fault either."""
    subject = campaigns.subject(name)
    lines = subject.text.splitlines()
    spare = [i for i, line in enumerate(lines) if line.strip().startswith("s_nop ") and not pauses.needed(lines, i)]
    verdicts = mutations.verdicts(subject, [changed(lines, index, "nop", "") for index in spare], orders=0)
    assert spare and {v.outcome for v in verdicts} == {"survived"}


@pytest.mark.campaign
@pytest.mark.usefixtures("triton")
def test_every_site_of_every_kernel() -> None:
    assert mutations.main(campaigns.CAMPAIGNS, []) == 0
