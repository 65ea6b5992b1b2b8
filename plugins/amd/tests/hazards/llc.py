"""LLVM's hazard recogniser as an oracle: how many wait states llc puts between two instructions of its machine representation."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from cdna3.llc import tools
from hazards.pairs import Pair
from tilefw_amd.chips import Chip

LLC, _ = tools()
_FUNCTION = """---
name: k{number}
tracksRegLiveness: false
body: |
  bb.0:
    {first}
    {second}
    S_ENDPGM 0
...
"""
_BODY = re.compile(r"^k(\d+):(.*?)^\s*s_endpgm", re.DOTALL | re.MULTILINE)


class Answer(NamedTuple):
    """`text` has the instructions as llc prints them, without its s_nops."""

    states: int
    text: list[str]


def ask(pairs: Sequence[Pair], chip: Chip) -> list[Answer]:
    """Runs the hazard recogniser and the printer on each pair by itself."""
    source = "".join(
        _FUNCTION.format(number=i, first=pair.first.machine, second=pair.second.machine) for i, pair in enumerate(pairs)
    )
    command = [str(LLC), "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={chip.name}"]
    command += ["-start-before=post-RA-hazard-rec", "-x", "mir", "-o", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return [_answer(body) for _, body in _BODY.findall(done.stdout)]


def _answer(body: str) -> Answer:
    lines = [line for line in (re.sub(r"\s*;.*", "", line).strip() for line in body.splitlines()) if line]
    pauses = [line for line in lines if line.startswith("s_nop")]
    return Answer(sum(int(line.split()[1]) + 1 for line in pauses), [line for line in lines if line not in pauses])
