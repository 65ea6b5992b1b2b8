"""What the target does not do yet is said plainly: kernels are not compiled for it, and conformance claims nothing."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize("verb", [("run", "matmul"), ("compile", "matmul")])
def test_compiling_is_refused_by_name(tilefw, verb) -> None:
    status, out, err = tilefw(*verb, "--target", "amd-cdna3")
    assert status == 1
    assert "TFW0604" in out + err and "amd-cdna3 does not compile kernels yet" in out + err and "tilefw simulate" in out + err


def test_running_says_which_stage(tilefw) -> None:
    report = json.loads(tilefw("run", "vector_add", "--target", "amd-cdna3", "--json")[1])
    assert {stage["name"]: stage["outcome"] for stage in report["stages"]}["lower"] == "unsupported"


def test_conformance_is_unsupported_not_failed(tilefw) -> None:
    pytest.importorskip("tilefw_conformance")
    status, out, err = tilefw("conformance", "--target", "amd-cdna3", "-k", "argmax*")
    assert status == 0 and "unsupported" in out + err and "0 of 0 claimed pass" in out + err


def test_targets_and_doctor_name_it(tilefw) -> None:
    (target,) = [t for t in json.loads(tilefw("targets", "--json")[1])["targets"] if t["name"] == "amd-cdna3"]
    assert sorted(target["provides"]) == ["assemble", "simulate"]
    status, out, _ = tilefw("doctor")
    assert status == 0 and "amd-cdna3" in out
