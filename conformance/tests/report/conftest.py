"""Reports and pages to test with: `made` and `browser` stand beside this file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from tilefw.testing import browser as chromium


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    """One for all tests: it takes a second to start."""
    if chromium.program() is None:
        pytest.skip(f"no browser here: none of {', '.join(chromium.PROGRAMS)} is on the path")
    one = chromium.Browser(tmp_path_factory.mktemp("profile"))
    yield one
    one.close()
