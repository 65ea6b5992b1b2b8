"""Simulation with compiled runs of instructions and compiled checks against NumPy's form alone; writes compiled_runs.md.

Each launch of our own code is made in both modes in turn, in one process, with what is compiled there already. `--log2 N` is the
number of elements of the elementwise kernels, which have about a hundred operations an element.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import simulating  # noqa: E402
from library import GFX942, SM80  # noqa: E402
from measure import seconds  # noqa: E402

import tilefw  # noqa: E402
import tilefw.language as tl  # noqa: E402
from tilefw.api import ALL_CHECKS, DEFAULT_CHECKS  # noqa: E402

CHIPS = {"sm_80": SM80, "gfx942": GFX942}
ROUNDS = 3
WARMING = 3
"""Launches before those that are timed: each is compiled when its plain form has cost enough."""


@tilefw.jit
def arithmetic(x_ptr, out_ptr, n, BLOCK: tl.constexpr, MODE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = x
    bits = x.to(tl.int32)
    for _ in tl.static_range(16):
        y = y * x + 0.25
        y = tl.where(y > 2.0, y - x, y)
        bits = (bits ^ (bits << 3)) + (bits >> 5)
    tl.store(out_ptr + offsets, y + bits.to(tl.float32), mask=inside)


@tilefw.jit
def to_fp8(x_ptr, out_ptr, n, BLOCK: tl.constexpr, MODE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x.to(tl.float8e5).to(tl.float32), mask=inside)


def elementwise(kernel: tilefw.JITFunction, target: str, count: int, mode: int) -> Callable[[], object]:
    x = np.random.default_rng(0).standard_normal(count).astype(np.float32)
    out = np.zeros_like(x)
    return lambda: kernel[(-(-count // 1024),)](x, out, count, BLOCK=1024, MODE=mode, target=target, num_warps=4)


def launches(log2: int, mode: str, library: bool) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is timed, by name, with everything that the mode decides made anew."""
    for chip, of in CHIPS.items():
        for kernel in (arithmetic, to_fp8):
            # `mode` makes it another kernel: the steps of a loaded program are made once.
            yield f"{kernel.fn.__name__}, 2^{log2} elements, {chip}", elementwise(kernel, of.target, 1 << log2, int(mode))
        for side in simulating._our_code(of) if library else ():
            yield side.shown, lambda side=side: side.launch(DEFAULT_CHECKS)
            yield f"{side.shown}, all checks", lambda side=side: side.launch(ALL_CHECKS)


def timed(launch: Callable[[], object]) -> float:
    start = seconds()
    launch()
    return seconds() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log2", type=int, default=22)
    parser.add_argument("--elementwise", action="store_true", help="without the kernels of the library, which take minutes")
    given = parser.parse_args()
    lines = [
        "# Runs of instructions, compiled", "",
        f"Milliseconds of processor time of a launch, with the default checks where nothing else is said, the least of {ROUNDS} in "
        "turn; everything is compiled before. Written by `compiled_runs.py`.", "",
        "| | NumPy's form | compiled where it pays | ratio |", "|---|---|---|---|",
    ]
    modes = ("0", "1")
    made: dict[str, list[tuple[str, Callable[[], object]]]] = {}
    for mode in modes:
        os.environ["TILEFW_JIT"] = mode
        os.environ["TILEFW_CACHE"] = str(int(given.elementwise))  # quality of the library's code is looked at as it is compiled
        made[mode] = list(launches(given.log2, mode, not given.elementwise))
        os.environ["TILEFW_CACHE"] = "1"
        for _, launch in made[mode]:
            for _ in range(WARMING):
                launch()
    for number, (name, _) in enumerate(made["0"]):
        taken: dict[str, list[float]] = {mode: [] for mode in modes}
        for _ in range(ROUNDS):
            for mode in modes:
                os.environ["TILEFW_JIT"] = mode
                taken[mode].append(timed(made[mode][number][1]))
        plain, fast = (min(taken[mode]) * 1e3 for mode in modes)
        lines.append(f"| {name} | {plain:.1f} | {fast:.1f} | {fast / plain:.2f} |")
        print(lines[-1], flush=True)
    (HERE / "compiled_runs.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
