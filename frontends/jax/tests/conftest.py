"""The cache folder is the test run's own; JAX runs on the processor."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEFW_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
