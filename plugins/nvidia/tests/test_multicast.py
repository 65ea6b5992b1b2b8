"""Where a cluster makes a product, the engine fetches each block once for all workgroups: right under every check, and nothing of
the order between workgroups can be left out."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_roles import tutorial
from test_warpgroup import assembled

from tilefw.api import Artifact, CheckError
from tilefw.api.integers import ceil_div
from tilefw.runtime.module import Module
from tilefw.runtime.plugins import loader

TARGET = "nvidia-sm90a"
# Blocks end beyond all of them; two or three programs. Nothing divides the terms, of which rows of `a` have some more.
ROWS, COLUMNS, TERMS, PITCH = 272, 112, 201, 208
CASES: dict[str, dict[str, Any]] = {
    "two": {"BM": 128, "BN": 128, "BK": 64, "num_warps": 4, "num_stages": 3, "num_ctas": 2},
    "four": {"BM": 256, "BN": 128, "BK": 64, "num_warps": 4, "num_stages": 2, "num_ctas": 4},
    "divided": {"BM": 256, "BN": 128, "BK": 64, "num_warps": 8, "num_stages": 3, "num_ctas": 2},
}


def _arrays(columns: int = COLUMNS) -> list[Any]:
    """The kernel's arrays and numbers."""
    rng = np.random.default_rng(7)
    a, b = ((rng.standard_normal(shape) / 4).astype(np.float16) for shape in ((ROWS, PITCH), (TERMS, columns)))
    return [a, b, np.zeros((ROWS, columns), np.float16), ROWS, columns, TERMS, PITCH, columns, columns]


@cache
def _compiled(case: str, columns: int = COLUMNS) -> Artifact:
    """Verified after each pass."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEFW_VERIFY", "1")
        return tutorial.warmup(*_arrays(columns), **CASES[case], WISH=False, target=TARGET, grid=(4,)).artifact


def _launch(case: str, artifact: Artifact, programs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Runs an artifact of the kernel, all programs or so many: what came, and what should of all."""
    given, words = _arrays(), CASES[case]
    grid = (programs or ceil_div(ROWS, words["BM"]) * ceil_div(COLUMNS, words["BN"]),)
    module = Module(artifact, loader.find_target(TARGET))
    module.only().launch(grid, given, checks="all", budget=10**7)
    return given[2], given[0][:, :TERMS].astype(np.float32) @ given[1].astype(np.float32)


@pytest.mark.parametrize("case", CASES)
def test_blocks_come_once_for_all_workgroups(case: str, tmp_path: Path):
    artifact = _compiled(case)
    found, expected = _launch(case, artifact)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)
    copies = [line for line in artifact.text.splitlines() if "cp.async.bulk.tensor" in line]
    everybody = (1 << CASES[case]["num_ctas"]) - 1
    assert copies and all(".multicast::cluster " in line and line.endswith(f", {everybody};") for line in copies)
    assert "st.shared" not in artifact.text and "wgmma.mma_async" in artifact.text
    divided = case == "divided"
    assert ("setmaxnreg.inc" in artifact.text) == ("mbarrier.arrive.release.cluster" in artifact.text) == divided
    if divided:  # all begin, all know the barriers, and none ends before the others: nothing in the loop
        assert artifact.text.count("barrier.cluster.arrive") == 3 and ".reqntid 384, 1, 1" in artifact.text
    assembled(artifact.text, tmp_path)


_MEETING = r"\tbarrier\.cluster\.arrive\.aligned;\n\tbarrier\.cluster\.wait\.aligned;\n"
_WAIT, _ANNOUNCEMENT = r"\tmbarrier\.try_wait[^\n]*\n\t@![^\n]*\n", r"\t(@%p\d+ )?mbarrier\.arrive\.expect_tx[^\n]*\n"
_ARRIVAL, _PRODUCTS = r"\t(@%p\d+ )?mbarrier\.arrive\.release[^\n]*\n", r"\twgmma\.wait_group[^\n]*\n"
# The case; what is taken out, by a pattern, and which of those that are there.
MUTATIONS = {
    "the barrier between the reads of a slot and its next copies": ("two", _MEETING, 3),
    "the barrier behind which all know the counting barriers": ("two", _MEETING, 1),
    "the wait for a block": ("two", _WAIT, 1),
    "the announcement at another workgroup's barrier": ("two", _ANNOUNCEMENT, 1),
    "the products' end": ("two", _PRODUCTS, 0),
    "the producer's wait for an empty slot": ("divided", _WAIT, 0),
    "the consumers' wait for a full slot": ("divided", _WAIT, 1),
    "the producer's announcement at another workgroup's barrier": ("divided", _ANNOUNCEMENT, 1),
    "the consumers' arrival at the producer's barrier": ("divided", _ARRIVAL, 0),
    "the consumers' products' end": ("divided", _PRODUCTS, 0),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_nothing_of_the_order_between_workgroups_can_be_left_out(mutation: str):
    case, pattern, number = MUTATIONS[mutation]
    artifact = _compiled(case)
    place = list(re.finditer(pattern, artifact.text))[number]
    with pytest.raises(CheckError):
        _launch(case, replace(artifact, text=artifact.text[: place.start()] + artifact.text[place.end() :]), 1)


@pytest.mark.parametrize("case", ["two", "divided"])
def test_a_block_that_one_workgroup_misses_is_found(case: str):
    artifact = _compiled(case)
    with pytest.raises(CheckError):
        _launch(case, replace(artifact, text=artifact.text.replace("], 3;", "], 1;", 1)), 1)


def test_what_no_engine_takes_is_stored_to_all_workgroups():
    """Rows that begin anywhere: lanes load them."""
    text = _compiled("two", columns=171).text
    assert "cp.async.bulk" not in text and "st.shared::cluster" in text
