"""A weaker wait, a missing barrier or needed pause in Triton's code is reported with its instruction (acceptance: 98 %)."""

from __future__ import annotations

import pytest

from hsaco_oracles import campaigns, pauses
from oracles import corpus, mutation_report, mutations
from oracles.chips import AMD, GFX942, GFX950, Chip
from oracles.site import changed

SAMPLE = {GFX942: 16, GFX950: 8}  # the later chip has most of its rules from the older
COMMON = (
    "vector_add", "softmax", "arg_extremes", "gather_rows", "atomic_histogram", "ticket", "row_sums", "sort_rows", "column_sums",
    "matmul_f16_1_warp",
)
SAMPLE_KERNELS = {
    GFX942: (*COMMON, "matmul_f16", "matmul_f16_128"),
    GFX950: (*COMMON, "matmul_f16_stages1", "dot_scaled_e4m3_e5m2", "dot_scaled_e2m1_e2m1"),
}
# Kernels in whose code LLVM pauses without the manual's asking.
PAUSING = {
    GFX942: ("softmax_aligned", "gelu_tanh", "vector_add_wide", "linear_recurrence", "row_sums"),
    GFX950: ("softmax_aligned", "gelu_tanh", "linear_recurrence"),
}
on_each_chip = pytest.mark.parametrize("chip", AMD, ids=lambda chip: chip.triton[1])


def subject(chip: Chip, name: str) -> campaigns.HsacoSubject:
    try:
        return campaigns.subject(chip, name)
    except corpus.TritonAbsentError as absent:
        pytest.skip(str(absent))


@on_each_chip
def test_a_sample_of_sites_is_reported(chip: Chip) -> None:
    subjects = [subject(chip, name) for name in SAMPLE_KERNELS[chip]]
    drawn = mutations.sample(subjects, SAMPLE[chip], seed=1)
    results = [verdict for subject, chosen in drawn for verdict in mutations.verdicts(subject, chosen, orders=1)]
    assert campaigns.found(results), mutation_report.table(results)


@pytest.mark.parametrize(("chip", "name"), [
    pytest.param(chip, name, id=f"{chip.triton[1]}-{name}") for chip, names in PAUSING.items() for name in names
])
def test_pauses_that_are_no_sites_can_be_left_out(chip: Chip, name: str) -> None:
    """The rule that leaves them out looks at text alone; the simulator, which knows the hardware's rules, finds no fault either."""
    its = subject(chip, name)
    lines = its.text.splitlines()
    spare = [i for i, line in enumerate(lines) if line.strip().startswith("s_nop ") and not pauses.needed(lines, i)]
    verdicts = mutations.verdicts(its, [changed(lines, index, "nop", "") for index in spare], orders=0)
    assert spare and {v.outcome for v in verdicts} == {"survived"}


@pytest.mark.campaign
@on_each_chip
def test_every_site_of_every_kernel(chip: Chip) -> None:
    assert mutations.main(campaigns.CAMPAIGNS, ["--of", f"triton-{chip.triton[1]}"]) == 0
