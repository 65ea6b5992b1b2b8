"""Triton's own code objects for each chip run right and clean on the simulator, with all checks, unchanged.

An ordinary run takes every kernel for the oldest chip; for the later one those of products and small formats, where its own
instructions are, and every third of the rest. All of them are a campaign.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from oracles import corpus, execute, launch_file
from oracles.case import Case
from oracles.chips import AMD, GFX942, Chip
from oracles.corpus import Corpus, Item

TRITON = {chip: Corpus(chip) for chip in AMD}
OWN = ("dot", "fp8", "matmul", "attention")


def ordinary(chip: Chip, case: Case, number: int) -> bool:
    """Whether each run takes a case, which has this number among its chip's."""
    return case.fast and (chip is AMD[0] or number % 3 == 0 or any(kind in case.name for kind in OWN))


CASES = [
    pytest.param(
        chip, case, id=f"{chip.triton[1]}-{case.name}", marks=() if ordinary(chip, case, number) else pytest.mark.campaign
    )
    for chip in AMD for number, case in enumerate(TRITON[chip].cases())
]  # fmt: skip


def item_of(chip: Chip, case: Case, seed: int = 0, variant: int = 0) -> Item:
    try:
        return TRITON[chip].item(case, seed, variant)
    except corpus.TritonAbsentError as absent:
        pytest.skip(str(absent))


@pytest.mark.parametrize(("chip", "case"), CASES)
def test_runs_right_and_clean(chip: Chip, case: Case) -> None:
    item = item_of(chip, case)
    outcome = execute.run(item)
    assert outcome.report.findings == ()
    assert item.check(outcome.outputs) == []


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("chip", "case"), CASES)
def test_any_order_of_waves_and_results_gives_the_same(chip: Chip, case: Case, seed: int) -> None:
    for variant in range(1 + len(case.variants)):
        item = item_of(chip, case, seed, variant)
        outcome = execute.run(item, seed=seed)
        assert outcome.report.findings == ()
        assert item.check(outcome.outputs) == []


@pytest.mark.parametrize("name", ["matmul_f16", "matmul_bf16", "matmul_tf32", "matmul_i8", "matmul_f64", "matmul_fp8e4b8"])
def test_hardware_numerics_stay_within_the_bounds(name: str) -> None:
    item = item_of(GFX942, TRITON[GFX942].case(name))
    assert item.check(execute.run(item, numerics="hw").outputs) == []


def test_a_wrong_result_is_seen() -> None:
    """The comparison itself: one ulp, one element and a NaN are all mismatches."""
    item = item_of(GFX942, TRITON[GFX942].case("vector_add"))
    right = np.array(item.expected["out_ptr"])
    for wrong in (np.nextafter(right[17], np.float32(9)), np.nan):
        changed = right.copy()
        changed[17] = wrong
        assert [m.index for m in item.check({"out_ptr": changed})] == [(17,)]


def test_the_command_line_runs_a_foreign_file(tmp_path: Path) -> None:
    """`tilefw simulate FILE.hsaco --launch LAUNCH.yaml`, with Triton's two hidden pointers spelled out."""
    item = item_of(GFX942, TRITON[GFX942].case("softmax"))
    assert isinstance(item.code, bytes)
    (tmp_path / "softmax.hsaco").write_bytes(item.code)
    launch_file.write(item, tmp_path)
    command = [
        *(sys.executable, "-m", "tilefw", "simulate", "softmax.hsaco", "--target", GFX942.target, "--launch", "launch.yaml"),
        *("--out", "out.npz", "--checks", "all", "--json"),
    ]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["findings"] == []
    with np.load(tmp_path / "out.npz") as outputs:
        assert item.check(dict(outputs)) == []
