"""A weaker wait, a missing barrier or pause, or a wrong register in tilefw's own code for a chip is reported (acceptance: 98 %)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hsaco_oracles import campaigns
from oracles import allocated_kernel, mutation_report, mutations
from oracles.allocated_kernel import AllocatedKernel
from oracles.chips import AMD, GFX942, GFX950, Chip
from oracles.node_cases import node_case
from oracles.node_subject import NodeSubject
from oracles.register_sites import RegisterSite
from oracles.verdict_log import Verdict

# The later chip has most of its rules from the older.
SAMPLE = {GFX942: 10, GFX950: 5}
SAMPLE_KERNELS = (
    "vector_add", "softmax", "layernorm_backward", "reduce_tile", "matmul_f16", "int8_matmul", "attention_causal", "transpose",
    "cross_entropy",
)
REGISTERS = {GFX942: 60, GFX950: 50}
REGISTER_KERNELS = ("softmax", "matmul_f16", "attention_lanes", "matmul_scratch")
ONE_WAVE = {"num_warps": 1, "programs": 1, "block": 128}  # of each rank: half the time of the campaign's launches
on_each_chip = pytest.mark.parametrize("chip", AMD, ids=lambda chip: chip.triton[1])


@on_each_chip
def test_a_sample_of_waits_barriers_and_pauses_is_reported(chip: Chip) -> None:
    results = []
    subjects = [campaigns.library(chip, name) for name in SAMPLE_KERNELS]
    for subject, chosen in mutations.sample(subjects, SAMPLE[chip], seed=1):
        results += mutations.verdicts(subject, chosen, orders=1)
    assert campaigns.found(results), mutation_report.table(results)


def test_what_ranks_say_to_each_other_is_noticed_where_it_is_weaker() -> None:
    """Of a collective's forwarding rank: the last site of each kind, but where all ranks meet at its ends."""
    subject = _in_one_wave("all_reduce", "ring")
    every = [site for site in subject.sites() if site.kind in ("cache", "scope", "poll") and not subject.proof(site)]
    chosen = {site.kind: site for site in every}
    assert set(chosen) == {"cache", "scope", "poll"}
    results = list(mutations.verdicts(subject, list(chosen.values()), orders=4))
    assert mutations.noticed(results) == 1, mutation_report.table(results)


def test_a_weaker_meeting_is_noticed_where_something_is_read_behind_it() -> None:
    """Which at the ends of a collective is none: without what its caches write back, without what they forget, without a signal."""
    subject = _in_one_wave("meeting", "middle")
    chosen = [site for site in subject.sites() if site.kind == "cache" or (site.kind == "signal" and not site.after)]
    opcodes = [site.before.split()[0] for site in chosen]
    assert opcodes == ["buffer_wbl2", "global_atomic_add_x2", "buffer_inv"] and not any(map(subject.proof, chosen))
    results = list(mutations.verdicts(subject, chosen, orders=1))
    assert mutations.noticed(results) == 1, mutation_report.table(results)


def _in_one_wave(kernel: str, form: str) -> NodeSubject:
    return NodeSubject(f"{kernel}.{form}", campaigns.OURS_ON_NODES, replace(node_case(kernel, form), launch=ONE_WAVE))


def _sample(subjects: list[AllocatedKernel], count: int) -> list[Verdict]:
    drawn = mutations.sample(subjects, count, seed=1)
    return [verdict for subject, chosen in drawn for verdict in allocated_kernel.verdicts(subject, chosen)]


@on_each_chip
def test_a_sample_of_wrong_registers_is_reported(chip: Chip) -> None:
    results = _sample([campaigns.registers(chip, name) for name in REGISTER_KERNELS], REGISTERS[chip])
    assert {v.site.kind for v in results} == {"read", "written", "shifted", "exchanged", "swapped", "lost", "early", "slot"}
    assert campaigns.found(results), mutation_report.table(results)


def test_a_checker_that_sees_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Execution shows by itself what is wrong: else what a blind checker accepts would count as equivalent."""
    subject = campaigns.registers(GFX942, "matmul_scratch")
    reported = [v.site for v in allocated_kernel.verdicts(subject, _every_tenth(subject)) if v.detail.startswith("values")]
    monkeypatch.setattr(allocated_kernel, "check_allocation", lambda *_: None)
    results = list(allocated_kernel.verdicts(subject, _every_tenth(subject)))
    assert reported and {v.outcome for v in results if v.site in reported} == {"survived"}


def _every_tenth(subject: AllocatedKernel) -> list[RegisterSite]:
    return subject.sites()[::10]


def test_a_change_of_registers_is_undone() -> None:
    subject = campaigns.registers(GFX942, "matmul_scratch")
    before = [str(inst) for inst in subject.after.insts()]
    for site in _every_tenth(subject):
        changed, _ = site.on(lambda: (" ".join(map(str, subject.after.insts())), ""))
        assert changed != " ".join(before)
    assert [str(inst) for inst in subject.after.insts()] == before


@pytest.mark.campaign
@pytest.mark.parametrize("of", ["library", "registers"])
@on_each_chip
def test_every_site_of_every_kernel(chip: Chip, of: str) -> None:
    assert mutations.main(campaigns.CAMPAIGNS, ["--of", f"{of}-{chip.triton[1]}"]) == 0


@pytest.mark.campaign
def test_every_site_of_every_collective() -> None:
    assert mutations.main(campaigns.CAMPAIGNS, ["--of", "nodes-gfx942"]) == 0
