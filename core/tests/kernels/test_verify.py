"""A verdict's stages share out the time of a verification: what the reference takes is the comparison's."""

from __future__ import annotations

from tilefw.kernels.spec import load
from tilefw.kernels.verify import STAGES, verify


def test_the_reference_is_no_part_of_the_launch():
    verdict = verify(load("vector_add"), {"n": 100_000, "block": 1024}, "reference")
    assert verdict.ok
    seconds = {stage.name: stage.seconds for stage in verdict.stages}
    assert tuple(seconds) == STAGES
    assert all(spent >= 0 for spent in seconds.values())
    assert seconds["compare"] > verdict.times["reference"] > 0


def test_stopping_before_the_comparison_leaves_the_reference_out():
    verdict = verify(load("vector_add"), {"n": 100}, "reference", stop_after="simulate")
    launched = sum(verdict.times.get(step, 0.0) for step in ("copy in", "execute", "copy back"))
    assert verdict.stages[-1].name == "simulate"
    assert verdict.stages[-1].seconds >= launched > 0


def test_a_pass_that_breaks_is_told_also_where_only_the_first_stage_was_asked_for(monkeypatch):
    def broken(*_):
        raise RuntimeError("no luck")

    monkeypatch.setattr("tilefw.passes.cse.CsePass.apply", broken)
    verdict = verify(load("vector_add"), {"n": 100}, "reference", stop_after="verify")
    assert verdict.failed is not None and (verdict.failed.name, verdict.failed.outcome) == ("lower", "error")
