"""Nothing outside a plugin's `chips/` names a generation of its chips: not in names, not in texts; citations of documents may."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tree import PLUGINS

# How the vendors call their generations. Documents have them in their titles, which citations repeat.
WORDS = {
    "amd": re.compile(r"gfx\d{2}\w+|\bmi\d{3}|cdna\d(?! (?:isa|white paper))", re.IGNORECASE),
    "nvidia": re.compile(r"\bsm_?\d{2}", re.IGNORECASE),
}
# Texts that cite LLVM's chapter on one chip.
CITATION = re.compile(r"Memory Model gfx\d+")
WITH_PAGES = sorted(name for name, folder in PLUGINS.items() if name in WORDS and (folder / "chips").is_dir())


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names and texts of a module with their lines, docstrings left out."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def named_generations(plugin: str) -> list[str]:
    """Where a plugin names a generation outside its pages, as `file:line: text`."""
    folder = PLUGINS[plugin]
    found = []
    for file in sorted(folder.rglob("*.py")):
        if "chips" in file.relative_to(folder).parts:
            continue
        for line, text in _texts(ast.parse(file.read_text(encoding="utf-8"))):
            if WORDS[plugin].search(CITATION.sub("", text)):
                found.append(f"{file.relative_to(folder)}:{line}: {text}")
    return found


@pytest.mark.parametrize("plugin", WITH_PAGES)
def test_no_generation_is_named_outside_of_its_page(plugin: str) -> None:
    assert named_generations(plugin) == []


def test_the_plugins_of_gpus_are_looked_at() -> None:
    assert "amd" in WITH_PAGES
    page = min(Path(PLUGINS["amd"], "chips").glob("gfx*.py"))
    texts = [text for _, text in _texts(ast.parse(page.read_text(encoding="utf-8")))]
    assert any(WORDS["amd"].search(text) for text in texts)
