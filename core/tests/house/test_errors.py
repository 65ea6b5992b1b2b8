"""Every error code that is raised has a page, every page belongs to a code that is raised, and pages have one shape."""

from __future__ import annotations

import ast
import re

import pytest
from tree import CONFORMANCE, CORE, FRONTENDS, PLUGINS, shown, sources, tree

PAGES = sorted((CORE / "explanations").glob("*"))
CODE = re.compile(r"TFW\d{4}")


def raised():
    """Code -> a place that uses it; docstrings and comments do not count."""
    from tree import docstrings

    found = {}
    for path in sources(CORE, CONFORMANCE, *FRONTENDS, *PLUGINS.values()):
        module = tree(path)
        documentation = docstrings(module)
        for node in ast.walk(module):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                for code in CODE.findall(node.value):
                    found.setdefault(code, f"{shown(path)}:{node.lineno}")
    return {code: place for code, place in found.items() if code != "TFW0000"}


def test_every_code_has_a_page():
    pages = {path.stem for path in PAGES}
    assert not {code: place for code, place in raised().items() if code not in pages}


def test_every_page_belongs_to_a_code():
    assert not {path.stem for path in PAGES} - set(raised())


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_a_page_has_a_title_and_says_how_to_mend(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(rf"# {path.stem}: \S.*", lines[0])
    assert lines[1] == "" and len([line for line in lines if line.strip()]) >= 2
    assert len(lines) <= 40


def test_kernel_errors_are_raised_with_a_code():
    """`code` is the second field of KernelError, so each raise of a kind of it names one."""
    words = ["Kernel", "Compile", "Unsupported", "Capacity", "IR", "Launch", "Code", "Check", "Usage", "Plugin"]
    kinds = {f"{kind}Error" for kind in words}
    without = []
    for path in sources(CORE, CONFORMANCE, *FRONTENDS, *PLUGINS.values()):
        for node in ast.walk(tree(path)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds):
                continue
            if len(node.args) < 2 and not any(k.arg in ("code", None) for k in node.keywords):
                without.append(f"{shown(path)}:{node.lineno}")
    assert not without
