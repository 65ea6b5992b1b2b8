"""Where a cluster makes a product, the engine fetches each block once for all workgroups: right under every check, and nothing of
the order between workgroups can be left out."""

from __future__ import annotations

import re
from dataclasses import replace
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
ROWS, COLUMNS, TERMS = 240, 176, 208  # blocks end beyond all of them
CASES: dict[str, dict[str, Any]] = {
    "two": {"BM": 128, "BN": 128, "BK": 64, "num_warps": 4, "num_stages": 3, "num_ctas": 2},
    "four": {"BM": 256, "BN": 128, "BK": 32, "num_warps": 4, "num_stages": 2, "num_ctas": 4},
    "two groups in each of two": {"BM": 256, "BN": 128, "BK": 64, "num_warps": 8, "num_stages": 3, "num_ctas": 2},
}


def _arrays(columns: int = COLUMNS) -> list[Any]:
    """The kernel's arrays and numbers."""
    rng = np.random.default_rng(7)
    a, b = ((rng.standard_normal(shape) / 4).astype(np.float16) for shape in ((ROWS, TERMS), (TERMS, columns)))
    return [a, b, np.zeros((ROWS, columns), np.float16), ROWS, columns, TERMS, TERMS, columns, columns]


def _compiled(case: str, columns: int = COLUMNS) -> Artifact:
    return tutorial.warmup(*_arrays(columns), **CASES[case], WISH=False, target=TARGET, grid=(4,)).artifact


def _launch(case: str, artifact: Artifact) -> tuple[np.ndarray, np.ndarray]:
    """Runs an artifact of the kernel: what came, and what should."""
    given, words = _arrays(), CASES[case]
    grid = (ceil_div(ROWS, words["BM"]) * ceil_div(COLUMNS, words["BN"]),)
    module = Module(artifact, loader.find_target(TARGET))
    module.only().launch(grid, given, checks="all", budget=10**7)
    return given[2], given[0].astype(np.float32) @ given[1].astype(np.float32)


@pytest.mark.parametrize("case", CASES)
def test_blocks_come_once_for_all_workgroups(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILEFW_VERIFY", "1")
    artifact = _compiled(case)
    found, expected = _launch(case, artifact)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)
    copies = [line for line in artifact.text.splitlines() if "cp.async.bulk.tensor" in line]
    everybody = (1 << CASES[case]["num_ctas"]) - 1
    assert copies and all(".multicast::cluster " in line and line.endswith(f", {everybody};") for line in copies)
    assert "st.shared" not in artifact.text and "wgmma.mma_async" in artifact.text
    assembled(artifact.text, tmp_path)


# What is taken out, and which of those that are there: by pattern, and the last of them before the loop's end or the last of all.
_MEETING = r"\tbarrier\.cluster\.arrive\.aligned;\n\tbarrier\.cluster\.wait\.aligned;\n"
MUTATIONS = {
    "the barrier between the reads of a slot and its next copies": (_MEETING, 3),
    "the barrier behind which all know the counting barriers": (_MEETING, 1),
    "the wait for a block": (r"\tmbarrier\.try_wait[^\n]*\n\t@![^\n]*\n", 1),
    "the announcement at another workgroup's barrier": (r"\t@%p\d+ mbarrier\.arrive\.expect_tx[^\n]*\n", 1),
    "the products' end": (r"\twgmma\.wait_group[^\n]*\n", 0),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_nothing_of_the_order_between_workgroups_can_be_left_out(mutation: str):
    pattern, number = MUTATIONS[mutation]
    text = _compiled("two").text
    place = list(re.finditer(pattern, text))[number]
    with pytest.raises(CheckError):
        _launch("two", replace(_compiled("two"), text=text[: place.start()] + text[place.end() :]))


def test_a_block_that_one_workgroup_misses_is_found():
    artifact = _compiled("two")
    with pytest.raises(CheckError):
        _launch("two", replace(artifact, text=artifact.text.replace("], 3;", "], 1;", 1)))


def test_what_no_engine_takes_is_stored_to_all_workgroups():
    """Rows that begin anywhere: lanes load them."""
    text = _compiled("two", columns=171).text
    assert "cp.async.bulk" not in text and "st.shared::cluster" in text
