"""No circles: of two modules at most one imports the other, directly or not. What is known is listed, and the list only shrinks."""

from __future__ import annotations

from pathlib import Path

import pytest
from circles import circles
from tree import PACKAGES

# Circles that are still to be opened, by one module of each.
KNOWN: frozenset[str] = frozenset()


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_modules_import_each_other_in_no_circle(package: Path) -> None:
    found = circles(package)
    assert [sorted(circle) for circle in found if not circle & KNOWN] == []


def test_a_circle_through_three_files_is_found(tmp_path: Path) -> None:
    package = tmp_path / "p"
    (package / "q").mkdir(parents=True)
    files = {
        "__init__": "", "q/__init__": "from p.q.a import x", "q/a": "def f():\n    from p.q import b", "q/b": "import p.c",
        "c": "from p.q.a import f", "d": "from p import c",
    }
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    assert circles(package) == [frozenset({"p.q.a", "p.q.b", "p.c"})]
