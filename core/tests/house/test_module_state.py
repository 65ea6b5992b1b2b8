"""No table and no name of a module changes after the import: what a process has done cannot change what a chip means."""

from __future__ import annotations

from pathlib import Path

from every_file import every_file
from module_state import changed
from tree import PACKAGES, sources


@every_file(sources(*PACKAGES))
def test_nothing_at_module_level_changes(path: Path) -> None:
    assert [f"{name}, line {line}" for name, line in changed(path)] == []


def test_each_kind_of_change_is_found(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text("""
from somewhere import rows
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
    rows.TABLE[1] = 2
    rows.LIST.append(3)
    rows.made[4] = 5
    J = {}
    J[8] = 9
    return J

def two(K):
    K.append(1)

KEPT = [n for n in K]
K.append("while it is imported")
""")
    assert {name for name, _ in changed(file)} == {"D", "E", "G", "H", "I", "rows.TABLE", "rows.LIST"}
