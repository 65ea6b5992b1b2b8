"""A listing as a table: drawn by rich on a terminal, plain columns everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows below their titles on stdout."""
    if sys.stdout.isatty():
        _draw(titles, rows)
        return
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
    for row in [titles, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _draw(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*[Text(cell) for cell in row])
    Console().print(table)
