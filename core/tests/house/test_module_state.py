"""No table and no name of a module changes after the import: what a process has done cannot change what a chip means."""

from __future__ import annotations

from pathlib import Path

import pytest
from module_state import changed
from tree import PACKAGES, shown, sources

# Tables that files fill while they are imported, until a value takes their place.
KNOWN = {
    ("core/src/tilefw/frontend/builtins/registry.py", "MEANINGS"), ("plugins/amd/src/tilefw_amd/isa/row.py", "ROWS"),
    ("plugins/nvidia/src/tilefw_nvidia/isa/row.py", "ROWS"),
}


@pytest.mark.parametrize("path", sources(*PACKAGES), ids=shown)
def test_nothing_at_module_level_changes(path: Path) -> None:
    assert [f"{name}, line {line}" for name, line in changed(path) if (shown(path), name) not in KNOWN] == []


def test_each_kind_of_change_is_found(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text("""
A, B, C, D = {}, {}, [], 0
E = F = {1: 2}
G: list[int] = []
H = set()
I = dict()
J = {}
K = []

def one():
    global D
    E[3] = 4
    G.append(5)
    H.add(6)
    del I[7]
    J = {}
    J[8] = 9
    return J

def two(K):
    K.append(1)

KEPT = [n for n in K]
K.append("while it is imported")
""")
    assert {name for name, _ in changed(file)} == {"D", "E", "G", "H", "I"}
