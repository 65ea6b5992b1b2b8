"""Makes the tests' own modules importable."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tilefw_nvidia.chips import Chip

sys.path.insert(0, str(Path(__file__).parent))

from chips_here import CHIPS


@pytest.fixture(params=CHIPS, ids=str)
def chip(request: pytest.FixtureRequest) -> Chip:
    """Each chip of the plugin in turn."""
    return request.param
