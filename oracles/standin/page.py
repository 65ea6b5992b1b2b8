"""The commands of a page about a vendor's cards, to be run against a stand-in: what a test of the page shares with another's."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

# Sizes that a stand-in's card is fast enough for.
SMALL = [
    "--level", "core", "-k", "vector_add/warps", "--jobs", "1", "--programs", "2", "--kernel", "vector_add",
    "--kernel", "integer_mix", "--size", "64", "--tile", "64x64x32/4", "--length", "32", "--tile", "64x32/4", "--heads", "1",
    "--rounds", "2", "--flush", "65536", "--small",
]


def commands(page: str) -> list[tuple[str, list[str]]]:
    """Each command of the page with the lines of output below it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def is_shown(line: str, output: str) -> bool:
    """Whether a line of the page is in an output; `…` stands for anything."""
    words = [re.escape(word) for word in re.split(r"…|\s+", line.strip()) if word]
    return re.search(r".*?".join(words), output) is not None


def called(command: str, root: Path, folder: Path) -> str:
    """The command of the page with this Python, the page that a benchmark writes in a folder of the test's."""
    python = shlex.quote(sys.executable)
    if command.startswith("python bench/on_gpu.py"):
        return f"{python} {root}/{command.removeprefix('python ')} {shlex.join(SMALL)} --out {folder}/page.md"
    return re.sub(r"^((?:\w+=\S+ )*)tilefw", rf"\1{python} -m tilefw", command)
