"""A foreign message as the cell of a page's table."""

from __future__ import annotations

import re

_LONGEST = 160
_FOLDERS = re.compile(r"(?<![\w.:/])/(?:[\w.+-]+/)+")
_ADDRESSES = re.compile(r" at 0x[0-9a-f]+")


def cell(message: str) -> str:
    """Its beginning, without folders and addresses of the machine that ran, and with `|` as a table writes it."""
    return _ADDRESSES.sub("", _FOLDERS.sub("", message))[:_LONGEST].replace("|", "\\|")


def first_lines(reason: str) -> str:
    """The first three lines of a test's reason as one: the first says only that something was not equal."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return " ".join(lines[:3]).removeprefix("Skipped: ")
