"""Two installations of tilefw against each other in one run: what a change costs.

    python bench/trees.py BEFORE_PYTHON AFTER_PYTHON [--rounds 5] [--out FILE.md]

Each installation works in a process of its own; rounds alternate between the two, and the table shows the fastest round of each.
A row is a launch that compiles (`compile`, without the cache) or one that finds its code in memory (`launch`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

GPUS = ("nvidia-sm80", "amd-cdna3")
SIMULATED = (
    ("vector_add", {"n": 1 << 18}), ("softmax", {"rows": 256, "columns": 1024}), ("matmul", {"m": 256, "n": 256, "k": 256}),
    ("attention", {"heads": 1, "queries": 128, "keys": 256}),
)
COMPILED = ("vector_add", "softmax", "layernorm", "matmul", "attention")
ALLOWED = 1.03
"""How many times as long a row may take afterwards."""


@dataclass(frozen=True, slots=True)
class Row:
    """A launch of a library kernel; `checks` None: compiled anew each time, under the default checks."""

    kernel: str
    parameters: dict[str, Any]
    target: str
    checks: str | None

    @property
    def name(self) -> str:
        how = "compile" if self.checks is None else f"launch, {self.checks} checks"
        return f"{self.kernel} {self.target} {how}"


def rows() -> Iterator[Row]:
    for target in (*GPUS, "spatial-sdm1"):
        yield from (Row(kernel, {}, target, None) for kernel in COMPILED)
    for target in GPUS:
        for checks in ("default", "all", "none"):
            yield from (Row(kernel, parameters, target, checks) for kernel, parameters in SIMULATED)


def main(argv: Sequence[str]) -> int:
    if argv == ["--work"]:
        return _work()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(argv)
    sides = [_Side(python) for python in (asked.before, asked.after)]
    taken: dict[int, list[list[float]]] = {}
    for index, _ in enumerate(rows()):
        taken[index] = [[side.seconds(index) for side in sides] for _ in range(asked.rounds + 1)][1:]
    text = _table(taken)
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n", "utf-8")
    return 0


def _table(taken: dict[int, list[list[float]]]) -> str:
    lines = ["| | before ms | after ms | ratio | |", "|---|---|---|---|---|"]
    for row, times in zip(rows(), taken.values(), strict=True):
        before, after = (min(one[side] for one in times) for side in (0, 1))
        slower = "**slower**" if after > ALLOWED * before else ""
        lines.append(f"| {row.name} | {before * 1e3:.1f} | {after * 1e3:.1f} | {after / before:.2f} | {slower} |")
    return "\n".join(lines)


class _Side:
    """One installation, which answers a row's number with the processor seconds of one launch."""

    def __init__(self, python: str) -> None:
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [python, __file__, "--work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **single}
        )

    def seconds(self, index: int) -> float:
        asked, answers = self.process.stdin, self.process.stdout
        assert asked is not None and answers is not None
        print(index, file=asked, flush=True)
        return _answer(answers)


def _answer(answers: IO[str]) -> float:
    line = answers.readline()
    if not line:
        raise SystemExit("the measured process ended: its message is above")
    return float(json.loads(line))


def _work() -> int:
    """Answer row numbers on standard input with seconds on standard output, in the installation that runs this."""
    listed = list(rows())
    for line in sys.stdin:
        print(json.dumps(_launched(listed[int(line)])), flush=True)
    return 0


def _launched(row: Row) -> float:
    import numpy as np

    from tilefw.kernels.reference import typed
    from tilefw.kernels.spec import load

    os.environ["TILEFW_CACHE"] = "0" if row.checks is None else "1"
    spec = load(row.kernel)
    launch = spec.prepare(spec.resolve(row.parameters), np.random.default_rng(0))
    arguments = {name: typed(value) for name, value in launch.arguments.items()}
    checks = row.checks or "default"
    start = time.process_time()
    spec.kernel[launch.grid](**arguments, **launch.constexprs, **launch.keywords, target=row.target, checks=checks)
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
