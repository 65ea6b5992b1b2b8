"""The plugin `unruly`, installed for a test: its cases each ruin the process that runs them in a way of their own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tilefw.testing import distribution

CASES = """\
group: unruly
kernel: softmax
since: "0.1"
notes:
  ruin: {bugType: PROCESS, description: The plugin ruins its process., effect: Other cases are lost.}
cases:
"""
CASE = "  - {id: %s, level: core, flags: [ruin], params: {rows: 2, columns: 40, num_warps: %d, num_stages: %d}}\n"
DEEDS = {
    "good": 1, "hang": 2, "segfault": 3, "fill": 4, "print": 5, "leave": 6, "lie": 7, "killed_once": 8, "killed": 9, "exit": 10,
    "raise": 11,
}


def _case(deed: tuple[str, int]) -> str:
    """What the backend sees of a case are its options: five numbers of stages to each number of warps."""
    name, number = deed
    return CASE % (name, 1 << (number - 1) // 5, (number - 1) % 5 + 1)


@pytest.fixture
def unruly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs it; returns the folder of its expectations, which expect nothing."""
    site = tmp_path / "site"
    data = site / "unruly_data"
    (data / "cases").mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("unruly.py"), site)
    distribution.write(site, "unruly", "unruly", name="unruly")
    (data / "__init__.py").touch()
    (data / "cases" / "unruly.yaml").write_text(CASES + "".join(map(_case, DEEDS.items())))
    (data / "conformance.yaml").write_text("# Kept by hand.\nexpectations: []\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("UNRULY_MARK", str(tmp_path / "mark"))
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    return data
