"""The whole listing of small kernels, text in and text out, so that every change of it is seen and read.

After a change that is meant: `TILEFW_UPDATE_GOLDEN=1 pytest plugins/nvidia/tests/test_golden.py`, then read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from row_kernels import compile_text

FOLDER = Path(__file__).with_name("golden")
SOURCES = sorted(FOLDER.glob("*.mlir"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_listing_is_the_one_that_was_reviewed(source: Path):
    listing, made = source.with_suffix(".ptx"), compile_text(source.read_text()).text
    if os.environ.get("TILEFW_UPDATE_GOLDEN"):
        listing.write_text(made)
    assert made == listing.read_text(), f"not as in {listing.name}; when that is meant, set TILEFW_UPDATE_GOLDEN=1 and read it"


def test_there_is_a_listing_to_review():
    assert SOURCES and {path.stem for path in SOURCES} == {path.stem for path in FOLDER.glob("*.ptx")}
