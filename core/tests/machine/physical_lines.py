"""Machine functions on sixteen physical registers, from the lines of their code."""

from __future__ import annotations

from tilefw.machine.inst import Function
from tilefw.machine.text import parse_function


def function(body: str) -> Function:
    """Of lines as they are: labels end in a colon."""
    stripped = (line.strip() for line in f"entry:\n{body}\nend:\nret".splitlines())
    lines = [line if line.endswith(":") else f"  {line}" for line in stripped if line]
    return parse_function("\n".join(['func @f target "toy"', "  file v: 16", *lines]) + "\n")
