"""The conformance suite's own cost: processor time of a run by the command, over that of the same verifications in a loop."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial

from measure import alternate, verdict

GOAL = 5.0  # ms a case
KERNELS = "vector_add or swiglu or softmax"
ONE = "vector_add/ragged/n=33"
_LOOP = """
import sys
from tilefw.kernels.spec import load
from tilefw.kernels.verify import verify
from tilefw_conformance.case_files import bundled
from tilefw_conformance.selection import select
for case in select(bundled(), "core", sys.argv[1]):
    assert verify(load(case.kernel), case.parameters, "reference", seed=case.seed).ok
"""


def measure(rounds: int = 5) -> str:
    """Both with all cases and with one, so that what starting takes is taken off."""
    from tilefw_conformance.case_files import bundled
    from tilefw_conformance.selection import select

    cases = len(select(bundled(), "core", KERNELS))
    sides = {"loop": partial(_loop, KERNELS), "loop one": partial(_loop, ONE)}
    sides |= {"suite": partial(_suite, KERNELS), "suite one": partial(_suite, ONE)}
    taken = alternate(sides, rounds)
    bare = taken["loop"] - taken["loop one"]
    whole = taken["suite"] - taken["suite one"]
    over = (whole - bare) * 1e3 / (cases - 1)
    return "\n".join([
        "## The conformance suite's own cost",
        "",
        f"`tilefw conformance --target reference --report DIR` with {cases} cases of small kernels in one worker, over the same "
        f"verifications in a loop; both without what one case takes, which is mostly starting. Medians of {rounds} rounds, "
        "processor time of all processes: reading and judging answers, records, the report and the page are in it.",
        "",
        "| | ms a case | goal | |",
        "|---|---|---|---|",
        f"| verification alone | {bare * 1e3 / (cases - 1):.1f} | | |",
        f"| the suite's own | {over:.1f} | {GOAL:g} | {verdict(over <= GOAL)} |",
        f"| starting, and one case | {taken['suite one'] * 1e3:.0f} | | |",
    ])


def _loop(expression: str) -> None:
    subprocess.run([sys.executable, "-c", _LOOP, expression], check=True, env=_environment())


def _suite(expression: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tilefw", "conformance", "--target", "reference", "-k", expression, "--jobs", "1"]
        subprocess.run([*command, "--report", folder], check=True, env=_environment(), stdout=subprocess.DEVNULL)


def _environment() -> dict[str, str]:
    return {**os.environ, "TILEFW_CACHE": "0"}
