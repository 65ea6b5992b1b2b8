"""The plugin of planted bugs, installed for a test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import hunting


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The targets `planted-…` are there."""
    with pytest.MonkeyPatch.context() as patch:
        for place in hunting.install(tmp_path_factory.mktemp("site")):
            patch.syspath_prepend(place)
        patch.setenv("TILEFW_CACHE", "0")
        yield
