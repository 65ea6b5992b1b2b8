"""ptxas of the wheel nvidia-cuda-nvcc-cu12, as an oracle: which lines of a kernel it refuses."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

from isa.samples import first_line, kernel

_LINE = re.compile(r"line (\d+)[;:,]? *(?:error|fatal)? *:? *(.*)")


def ptxas() -> str | None:
    """The path of ptxas, or None."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "cuda_nvcc" / "bin" / "ptxas"
        if path.exists():
            return str(path)
    return None


def refused(instructions: list[str], folder: Path, version: str = "8.8", target: str = "sm_80") -> dict[int, str]:
    """Which instructions ptxas refuses, by index, with its words. It stops at a syntax error, so these are taken out one by one."""
    left = dict(enumerate(instructions))
    bad: dict[int, str] = {}
    while left:
        found = _run(list(left.values()), folder, version, target)
        indices = list(left)
        if any(place < 0 for place in found):  # a register type that this version does not know: none of them stands
            return bad | dict.fromkeys(indices, "the registers cannot be declared")
        bad |= {indices[place]: words for place, words in found.items() if place < len(indices)}
        if not any("Parsing error" in words or "fatal" in words for words in found.values()):
            return bad
        left = {index: text for index, text in left.items() if index not in bad}
    return bad


def _run(instructions: list[str], folder: Path, version: str, target: str) -> dict[int, str]:
    source = folder / "sample.ptx"
    source.write_text(kernel(instructions, version, target))
    command = [str(ptxas()), "-arch", target, "-c", str(source), "-o", str(folder / "sample.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    found: dict[int, str] = {}
    for match in _LINE.finditer(done.stdout + done.stderr):
        if "warning" not in match[2] and "by compiler" not in match[2]:  # where ptxas has put a wait of its own
            found.setdefault(int(match[1]) - first_line(), match[2])
    if done.returncode and not found:
        raise AssertionError(done.stdout + done.stderr)
    return found
