"""The kernels of cuTile's samples, from a checkout of its tree, compiled by cuTile to bytecode and run by tilefw on each target.

    python bench/cutile.py CHECKOUT                          # writes cutile.md
    python bench/cutile.py CHECKOUT --target amd-cdna3 WORD…   # kernels whose names have all words; prints only

Needs cuda-tile 1.7.0 and PyTorch, which the samples import; no card. Results are compared with NumPy. `cutile_samples.py` has the
arguments of each kernel.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import cutile_samples
import numpy as np
from cutile_samples import SampleLaunch

sys.path.insert(0, str(Path(__file__).parent.parent))
import tilefw
from oracles.cutile_bytecode import ArrayElements, RuntimeNumber, bytecode_of

TARGETS = ("reference", "nvidia-sm80", "amd-cdna3", "spatial-sdm1")
Row = tuple[str, str, str, str]


def described(launch: SampleLaunch) -> list[Any]:
    """The arguments as cuTile is told of them."""
    found: list[Any] = []
    for name, value in launch.arguments.items():
        if isinstance(value, list):
            raise NotImplementedError("a list of arrays is passed as addresses in memory, which a launch on a simulator has not")
        number = RuntimeNumber("float32" if isinstance(value, float) else "int32")
        element = (launch.elements or {}).get(name)
        found.append(ArrayElements(value, element) if element else value if isinstance(value, np.ndarray) else number)
    return [*found, *launch.constants]


def outcome(launch: SampleLaunch, checkout: Path, target: str) -> str:
    """What is wrong with one launch, nothing where its results are right."""
    try:
        data = bytecode_of(launch.function(checkout), described(launch))
        arguments = {name: v.copy() if isinstance(v, np.ndarray) else v for name, v in launch.arguments.items()}
        run(data, launch, arguments, target)
    except Exception as error:
        text = str(error)
        return text[max(text.find("error["), 0) :].partition("\n")[0][:160]
    for name, due in launch.due(launch.arguments).items():
        found = arguments[name].astype(np.float64)
        if not np.allclose(found, due, rtol=launch.tolerance, atol=launch.tolerance):
            return f"{name} is wrong by {np.abs(found - due).max():.2g}"
    return ""


def run(data: bytes, launch: SampleLaunch, arguments: dict[str, Any], target: str) -> None:
    """One launch on one target, without a limit of steps."""
    module = tilefw.load(data, target, launch.kernel)
    module.only().launch(launch.grid, list(arguments.values()), budget=10**12)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--target", choices=TARGETS)
    said = parser.parse_args()
    rows: list[Row] = []
    for target in [said.target] if said.target else TARGETS:
        for launch in cutile_samples.launches():
            if all(word in launch.kernel for word in said.words):
                start = time.process_time()
                rows.append((launch.file, launch.kernel, target, outcome(launch, said.checkout, target) or "right"))
                print(*rows[-1], f"{time.process_time() - start:.1f} s", sep=" | ", flush=True)
    if said.target is None and not said.words:
        Path(__file__).with_suffix(".md").write_text(page(rows), "utf-8")
    return 0


def page(rows: list[Row]) -> str:
    lines = [
        "# Kernels of cuTile's samples", "",
        "Written by `bench/cutile.py`: cuTile Python 1.7.0 compiles the kernels of its own samples to bytecode, tilefw compiles",
        "that for each target, its simulator runs it, and results are compared with NumPy.", "",
        "| target | kernels | right |", "| --- | --- | --- |",
    ]
    for target in dict.fromkeys(row[2] for row in rows):
        mine = [row for row in rows if row[2] == target]
        kernels = {row[1] for row in mine}
        right = kernels - {row[1] for row in mine if row[3] != "right"}
        lines.append(f"| {target} | {len(kernels)} | {len(right)} |")
    lines += ["", "| sample | kernel | target | result |", "| --- | --- | --- | --- |"]
    lines += [f"| {' | '.join(cell.replace('|', '¦') for cell in row)} |" for row in rows]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
