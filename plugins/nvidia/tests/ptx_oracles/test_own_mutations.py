"""Breaking one wait, barrier, predicate or swizzle of tilefw's own PTX is reported, or wrong by the reference's bounds (98 %)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oracles import library_cases, mutation_report, mutations
from oracles.library_subject import Configuration, LibrarySubject, Variant
from oracles.node_cases import node_case
from oracles.node_subject import NodeSubject
from ptx_oracles import campaigns

SAMPLE = 45


def test_a_sample_of_sites_is_reported_or_wrong() -> None:
    """What is proved equivalent is left to the campaign, and many orders as well."""
    results = []
    for subject, chosen in mutations.sample(map(campaigns.library, library_cases.CONFIGURATIONS), SAMPLE, seed=1):
        results += mutations.verdicts(subject, [site for site in chosen if not subject.proof(site)], orders=2)
    assert mutations.noticed(results) >= 0.98, mutation_report.table(results)


def test_each_kind_of_copy_arrival_and_wait_of_engines_and_units_is_noticed() -> None:
    """Of a product of boxes for sm_90a: what is deleted, weakened, announced or described wrongly; the last of each instruction."""
    subject = campaigns.own_warpgroups("warpgroup_descriptors")
    kinds = ("engine", "arrival", "bytes", "wait", "weaken", "commit", "descriptor")
    every = [site for site in subject.sites() if site.kind in kinds and not subject.proof(site)]
    chosen = list({(site.kind, site.before.partition("[")[0]): site for site in every}.values())
    assert {site.kind for site in chosen} == set(kinds)
    missed = [v for v in mutations.verdicts(subject, chosen, orders=1) if v.outcome == "survived"]
    assert not missed, "\n".join(f"{v.site.kind} at line {v.site.line}: `{v.site.before}` -> `{v.site.after}`" for v in missed)


ONE_WAVE = {"num_warps": 1, "programs": 1, "block": 128}  # of each rank: half the time of the campaign's launches


def test_what_ranks_say_to_each_other_is_noticed_where_it_is_weaker() -> None:
    """Of a collective's forwarding rank: the last site of each kind and change, but where all ranks meet at its ends."""
    subject = _in_one_wave("all_reduce", "ring")
    every = [site for site in subject.sites() if site.kind != "signal" and not subject.proof(site)]
    chosen = {site.kind: site for site in every if ".release" in site.before or site.kind in ("fence", "poll")}
    assert set(chosen) == {"order", "scope", "fence", "poll"}
    results = list(mutations.verdicts(subject, list(chosen.values()), orders=4))
    assert mutations.noticed(results) == 1, mutation_report.table(results)


def test_a_weaker_meeting_is_noticed_where_something_is_read_behind_it() -> None:
    """Which at the ends of a collective is none: the orders of its signal and of its wait, a wait that does not wait, a signal that
    counts twice."""
    subject = _in_one_wave("meeting", "middle")
    orders, polls, signals = ([site for site in subject.sites() if site.kind == kind] for kind in ("order", "poll", "signal"))
    chosen = [*orders, polls[1], signals[-1]]
    assert [site.kind for site in chosen] == ["order", "order", "poll", "signal"] and not any(map(subject.proof, chosen))
    results = list(mutations.verdicts(subject, chosen, orders=1))
    assert mutations.noticed(results) == 1, mutation_report.table(results)


def _in_one_wave(kernel: str, form: str) -> NodeSubject:
    return NodeSubject(f"{kernel}.{form}", campaigns.OURS_ON_NODES, replace(node_case(kernel, form), launch=ONE_WAVE))


def test_a_subject_tells_right_outputs_from_wrong_ones() -> None:
    subject = campaigns.library("column_sum")
    right = [subject.run(launch, subject.parse(subject.text), 0, None) for launch in range(subject.launches)]
    assert [(run.findings, run.mismatch) for run in right] == [((), "")] * subject.launches
    wrong = subject.run(0, subject.parse(subject.text.replace("add.f32", "sub.f32")), 0, None)
    assert wrong.findings == () and wrong.mismatch.startswith("out_ptr: ")


def test_a_variant_that_asks_for_other_code_is_refused() -> None:
    with pytest.raises(AssertionError, match="a variant asks for other code"):
        LibrarySubject("transpose", Configuration("transpose", {"rows": 37}, (Variant({"rows": 32}),)), campaigns.OURS)


@pytest.mark.campaign
def test_every_site_of_every_kernel() -> None:
    assert mutations.main(campaigns.CAMPAIGNS, ["--of", "library"]) == 0


@pytest.mark.campaign
def test_every_site_of_every_collective() -> None:
    assert mutations.main(campaigns.CAMPAIGNS, ["--of", "nodes"]) == 0
