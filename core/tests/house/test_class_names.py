"""One name, one concept: no two classes share a name, but where they are one concept at two levels or for two chips."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from tree import CONFORMANCE, CORE, PLUGINS, sources, tree

LANE, TILE = CORE / "simt" / "lane", CORE / "tile"
GPUS = PLUGINS["amd"], PLUGINS["nvidia"]
CHECKED = (CORE, *PLUGINS.values(), CONFORMANCE)

# A name that several classes have because they are one concept: where each of them is, with the reason.
TWINS: dict[str, tuple[str, tuple[Path, ...]]] = {
    **dict.fromkeys(
        (
            "AtomicOp", "BarrierOp", "CommitOp", "ConstantOp", "FenceOp", "HandOverOp", "InlineAsmOp", "JoinOp", "LoadOp",
            "NumProgramsOp", "ObserveOp", "ProgramIdOp", "SplatOp", "StoreOp", "TrapOp", "WaitOp",
        ),
        ("an operation of tile IR, and the same one on the elements of a lane", (LANE, TILE)),
    ),
    **dict.fromkeys(
        ("Chapter", "Chip", "Cursor", "Fault", "Form", "InstructionSet", "MatrixShape", "Modifiers", "Simulator", "Type"),
        ("a part of every GPU's plugin: its chips, its instruction set, its text, its simulator", GPUS),
    ),
}


def classes(path: Path) -> list[str]:
    return [node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]


def shared(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """The names of more than one class, with the file of each."""
    places: dict[str, list[Path]] = {}
    for path in paths:
        for name in classes(path):
            places.setdefault(name, []).append(path)
    return {name: found for name, found in places.items() if len(found) > 1}


def one_in_each(found: list[Path], folders: tuple[Path, ...]) -> bool:
    """Whether each folder has one class of these at most, and no other place has one."""
    homes = [folder for path in found for folder in folders if path.is_relative_to(folder)]
    return len(homes) == len(found) == len(set(homes))


def test_no_two_classes_share_a_name_for_different_concepts() -> None:
    wrong = {}
    for name, found in shared(sources(*CHECKED)).items():
        if name not in TWINS or not one_in_each(found, TWINS[name][1]):
            wrong[name] = [str(path.relative_to(CORE.parents[2])) for path in found]
    assert wrong == {}


def test_every_twin_is_one() -> None:
    assert set(TWINS) <= set(shared(sources(*CHECKED)))


def test_two_classes_of_one_name_are_found(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("class Home: ...\nclass Alone: ...\n")
    two.write_text("def f():\n    class Home: ...\n")
    assert shared([one, two]) == {"Home": [one, two]}
    assert not one_in_each([one, two], (tmp_path,))
    assert not one_in_each([one, two], (one,))
    assert one_in_each([one, two], (one, two))
