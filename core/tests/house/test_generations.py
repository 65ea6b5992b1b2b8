"""Nothing outside a plugin's `chips/` names a generation of its chips: no name, text, docstring or comment. Citations may: titles
of documents and of their chapters in quotes, and names of other projects' code."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from tree import PLUGINS

# How the vendors call their generations. Documents have them in their titles, which citations repeat.
WORDS = {
    "amd": re.compile(r"gfx\d{2}\w+|\bmi\d{3}|cdna\d(?!\s+(?:isa|white paper))", re.IGNORECASE),
    "nvidia": re.compile(r"\bsm_?\d{2}|ampere|hopper|blackwell|\b[ah]100\b", re.IGNORECASE),
}
# A title in quotes, which may go over several lines, and a name such as `GFX940_XDL_N_PassWritesVGPR…`.
CITATION = re.compile(r'"[^"]*"|\bGFX\d+_\w+|Memory Model gfx\d+')
WITH_PAGES = sorted(name for name, folder in PLUGINS.items() if name in WORDS and (folder / "chips").is_dir())


def _texts(source: str) -> Iterator[tuple[int, str]]:
    """Names, texts and comments of a module with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if comments and token.start[0] == comments[-1][0] + comments[-1][1].count("\n") + 1:
            comments[-1] = comments[-1][0], f"{comments[-1][1]}\n{token.string}"
        else:
            comments.append((token.start[0], token.string))
    yield from comments


def named_generations(plugin: str) -> list[str]:
    """Where a plugin names a generation outside its pages, as `file:line: text`."""
    folder = PLUGINS[plugin]
    found = []
    for file in sorted(folder.rglob("*.py")):
        if "chips" in file.relative_to(folder).parts:
            continue
        for line, text in _texts(file.read_text(encoding="utf-8")):
            if WORDS[plugin].search(CITATION.sub("", text)):
                found.append(f"{file.relative_to(folder)}:{line}: {text}")
    return found


@pytest.mark.parametrize("plugin", WITH_PAGES)
def test_no_generation_is_named_outside_of_its_page(plugin: str) -> None:
    assert named_generations(plugin) == []


def test_the_plugins_of_gpus_are_looked_at() -> None:
    assert "amd" in WITH_PAGES
    page = min(Path(PLUGINS["amd"], "chips").glob("gfx*.py"))
    texts = [text for _, text in _texts(page.read_text(encoding="utf-8"))]
    assert any(WORDS["amd"].search(text) for text in texts)


@pytest.mark.parametrize(("source", "found"), [
    ('"""Sums, as the manual has them ("Memory of\ngfx942")."""', []), ('"""On gfx942 sums are exact."""', [1]),
    ("x = 1  # gfx90a and later", [1]), ('# see "Registers of\n# gfx90a", table 3\nx = 1', []), ("GFX942 = 1", [1]),
])
def test_docstrings_and_comments_count_but_for_titles(source: str, found: list[int]) -> None:
    assert [line for line, text in _texts(source) if WORDS["amd"].search(CITATION.sub("", text))] == found
