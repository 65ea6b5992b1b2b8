"""Triton's own PTX for every chip runs right and clean on its simulator, with all checks, unchanged.

An ordinary run takes every kernel for the oldest chip; for each later one, where Triton writes what it does for the oldest but for
8-bit floats, those and every third of the rest; for sm_90a those with products of warpgroups. All of them are a campaign.
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
from oracles.chips import NVIDIA, SM80, SM90A
from oracles.corpus import Corpus, Item

CORPORA = [Corpus(chip) for chip in NVIDIA]


def ordinary(triton: Corpus, case: Case, number: int) -> bool:
    """Whether each run takes a case, which has this number among its chip's."""
    place = CORPORA.index(triton)
    if triton.chip is SM90A:
        return case.fast and case.chips == (SM90A,)
    return case.fast and (place == 0 or "fp8" in case.name or number % 3 == place)


CASES = [
    pytest.param(
        triton, case, id=f"{triton.chip.target}-{case.name}", marks=() if ordinary(triton, case, number) else pytest.mark.campaign
    )
    for triton in CORPORA for number, case in enumerate(triton.cases())
]


def item_of(triton: Corpus, case: Case, seed: int = 0) -> Item:
    try:
        return triton.item(case, seed)
    except corpus.TritonAbsentError as absent:
        pytest.skip(str(absent))


def runs_right_and_clean(item: Item, seed: int) -> None:
    """But for what Triton's code of the case is known to do wrong, which is found."""
    outcome = execute.run(item, seed=seed)
    assert {finding.code for finding in outcome.report.findings} == set(item.case.found)
    assert item.check(outcome.outputs) == []


def named(name: str) -> Item:
    triton = CORPORA[0]
    return item_of(triton, triton.case(name))


@pytest.mark.parametrize("triton, case", CASES)
def test_runs_right_and_clean(triton: Corpus, case: Case) -> None:
    runs_right_and_clean(item_of(triton, case), 0)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("triton, case", CASES)
def test_any_order_of_waves_and_copies_gives_the_same(triton: Corpus, case: Case, seed: int) -> None:
    runs_right_and_clean(item_of(triton, case, seed), seed)


@pytest.mark.parametrize("name", ["matmul_f16", "matmul_tf32", "matmul_i8"])
def test_hardware_numerics_stay_within_the_bounds(name: str) -> None:
    item = named(name)
    assert item.check(execute.run(item, numerics="hw").outputs) == []


def test_a_wrong_result_is_seen() -> None:
    """The comparison itself: one ulp, one element and a NaN are all mismatches."""
    item = named("vector_add")
    right = np.array(item.expected["out_ptr"])
    for wrong in (np.nextafter(right[17], np.float32(9)), np.nan):
        changed = right.copy()
        changed[17] = wrong
        found = item.check({"out_ptr": changed})
        assert [m.index for m in found] == [(17,)]


def test_the_command_line_runs_a_foreign_file(tmp_path: Path) -> None:
    """`tilefw simulate FILE.ptx --launch LAUNCH.yaml`, with Triton's two hidden pointers spelled out."""
    item = named("softmax")
    (tmp_path / "softmax.ptx").write_text(item.text)
    launch_file.write(item, tmp_path)
    command = [
        sys.executable,
        "-m",
        "tilefw",
        "simulate",
        "softmax.ptx",
        "--target",
        SM80.target,
        "--launch",
        "launch.yaml",
        "--out",
        "out.npz",
        "--checks",
        "all",
        "--json",
    ]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["findings"] == []
    with np.load(tmp_path / "out.npz") as outputs:
        assert item.check(dict(outputs)) == []
