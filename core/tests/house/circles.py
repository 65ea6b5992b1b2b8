"""The circles among the modules of a package: sets of files each of which imports, directly or not, every other one of the set."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from pathlib import Path

from tree import tree


def circles(package: Path) -> list[frozenset[str]]:
    """The strongly connected components of two modules or more, as module names.

    Every import counts, also those in functions and those for annotations alone: a reader follows them just the same.
    """
    modules = {_name(path, package): path for path in package.rglob("*.py")}
    graph = {name: set(_imported(path, modules.keys())) - {name} for name, path in modules.items()}
    return _components(graph)


def _imported(path: Path, modules: Set[str]) -> Iterator[str]:
    """The modules of the package that a file imports. `from a.b import c` is the module `a.b.c` where there is one, else `a.b`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules else node.module


def _name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _components(graph: dict[str, set[str]]) -> list[frozenset[str]]:
    """Tarjan's algorithm, without recursion: each node carries the iterator over what it points to."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[frozenset[str]] = []
    for root in graph:
        work = [] if root in order else [(root, iter(sorted(graph[root])))]
        while work:
            node, successors = work[-1]
            if node not in order:
                order[node] = low[node] = len(order)
                stack.append(node)
                on_stack.add(node)
            for successor in successors:
                if successor not in order:
                    work.append((successor, iter(sorted(graph[successor]))))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], order[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    component = frozenset(_popped(stack, node))
                    on_stack -= component
                    if len(component) > 1:
                        found.append(component)
    return found


def _popped(stack: list[str], node: str) -> list[str]:
    at = stack.index(node)
    component = stack[at:]
    del stack[at:]
    return component
