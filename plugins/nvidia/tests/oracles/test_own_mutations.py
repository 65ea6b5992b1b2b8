"""Breaking one wait, barrier, predicate or swizzle of tilefw's own PTX is reported, or wrong by the reference's bounds (98 %)."""

from __future__ import annotations

import pytest

from oracles import equivalence, library_cases, mutation_report, mutations

SAMPLE = 45


def test_a_sample_of_sites_is_reported_or_wrong() -> None:
    """What is proved equivalent is left to the campaign, and many orders as well."""
    results = []
    for subject, chosen in mutations.sample(map(library_cases.subject, library_cases.CONFIGURATIONS), SAMPLE, seed=1):
        results += mutations.verdicts(subject, [site for site in chosen if not equivalence.proof(subject.ptx, site)], orders=2)
    assert mutations.noticed(results) >= 0.98, mutation_report.table(results)


@pytest.mark.campaign
def test_every_site_of_every_kernel() -> None:
    assert mutations.main(["--of", "library"]) == 0
