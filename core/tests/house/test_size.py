"""A file is one idea and a function fits a screen: bounds on both, with the few tables that are excepted named here."""

from __future__ import annotations

import ast

from every_file import every_file
from tree import PACKAGES, shown, sources, tree

FILE_LINES = 500
FUNCTION_LINES = 60
# Pure tables: rows of data, one idea however long.
TABLES = {"core/src/tilefw/kernels/index.py"}
TABLE_FUNCTIONS: set[str] = set()
BANNED_NAMES = {"utils", "helpers", "common", "misc"}


@every_file(sources(*PACKAGES))
def test_a_file_has_at_most_500_lines(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= FILE_LINES or shown(path) in TABLES, f"{lines} lines: two ideas, or a table to be listed here?"


@every_file(sources(*PACKAGES))
def test_a_function_has_at_most_60_lines(path):
    functions = [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lines = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    long = {name: count for name, count in lines.items() if count > FUNCTION_LINES}
    assert [name for name in long if f"{shown(path)}:{name}" not in TABLE_FUNCTIONS] == [], long


@every_file(sources(*PACKAGES))
def test_a_file_says_on_its_first_line_what_it_is_for(path):
    text = path.read_text(encoding="utf-8")
    if not text.strip():
        assert path.name == "__init__.py"
        return
    docstring = ast.get_docstring(tree(path))
    assert docstring and text.startswith('"""'), "the first line is a docstring"
    assert len(docstring.splitlines()[0]) >= 15, "the first line tells the file's idea"


@every_file(sources(*PACKAGES))
def test_no_file_is_a_drawer(path):
    assert path.stem not in BANNED_NAMES


def test_excepted_tables_exist():
    known = {shown(path) for path in sources(*PACKAGES)}
    assert known >= TABLES
    assert known >= {name.partition(":")[0] for name in TABLE_FUNCTIONS}
