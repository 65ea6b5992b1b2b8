"""Reads the own table of litmus tests for scopes (`scopes.yaml`): a shape with words put in, places, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from tilefw.sim.memory.litmus import LitmusDialect, LitmusTest, read
from tilefw.sim.memory.views import SyncScope

DIALECT = LitmusDialect(
    {"wavefront": SyncScope.SELF, "workgroup": SyncScope.WORKGROUP, "agent": SyncScope.DEVICE, "system": SyncScope.SYSTEM}
)


def scope_tests() -> Iterator[tuple[str, LitmusTest, bool]]:
    """Each test: its name, the test, whether its witness is allowed."""
    table = yaml.safe_load((Path(__file__).parent / "scopes.yaml").read_text(encoding="utf-8"))
    for row in table["tests"]:
        shape, *rest = row.split()
        places = [word for word in rest if word.isdigit()]
        verdict, *words = rest[len(places) :]
        yield row, read(text(row, places, table["shapes"][shape], words), DIALECT), {"allowed": True, "forbidden": False}[verdict]


def text(name: str, places: list[str], shape: str, words: list[str]) -> str:
    """The test in columns."""
    for number, word in enumerate(words):
        shape = shape.replace(f"{{{number}}}", word)
    head = " | ".join(f"P{n}@workgroup {place[1]},agent {place[0]}" for n, place in enumerate(places))
    return f"LITMUS {' '.join(name.split())}\n{{ }}\n{head} ;\n{shape}"
