"""Tiny distributions made on the spot, and a cache folder of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tilefw.runtime.plugins import loader
from tilefw.testing.distribution import write

GOOD = '''
from tilefw.api import TargetInfo, hookimpl
TILEFW_API = (0, 1)
@hookimpl
def tilefw_targets():
    return [TargetInfo("{name}-x1", "{name}", "x1", "a chip", "{module}:Backend", frozenset({"emit"}), aliases=("{name}x",))]
'''


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEFW_TARGET", "reference")
    for name in ("TILEFW_EXECUTOR", "TILEFW_CACHE", "TILEFW_DISABLE_PLUGINS", "TILEFW_STRICT_PLUGINS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """`install(name, source, distribution=…)` makes a distribution with a plugin on the import path."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def make(name: str, source: str = GOOD, distribution: str | None = None, module: str | None = None) -> str:
        distribution = distribution or f"fake-{name}"
        module = module or f"fake_{distribution.replace('-', '_')}_{abs(hash(str(tmp_path))) % 10**8}"
        text = source.replace("{name}", name).replace("{module}", module)
        (site / f"{module}.py").write_text(text)
        write(site, name, module, name=distribution, version="1.2")
        from tilefw.runtime.plugins import entry_points

        entry_points._scan_distributions.cache_clear()
        return module

    return make


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> loader.Registry:
    """A registry of the test's own: nothing is loaded yet, and no time is spent on asking the plugins that are really there."""
    from tilefw.runtime.plugins.entry_points import candidates

    monkeypatch.setenv("TILEFW_DISABLE_PLUGINS", ",".join(candidate.name for candidate in candidates()))
    return loader.Registry()
