"""For the tests of links: a cache of their own, and each schedule placed once, as what they prove does not depend on how often."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tilefw_spatial.link import chain


@pytest.fixture(autouse=True, scope="package")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEFW_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(chain, "FINAL_TRIES", chain.FIRST_TRIES[:1])
        patch.setattr(chain, "FIRST_TRIES", chain.FIRST_TRIES[:1])
        patch.setattr(chain, "AGAIN", 0)
        yield
