"""Runs Triton's tutorials, unchanged, on simulators: `python bench/tutorials.py CHECKOUT --out bench/tutorials.md`.

CHECKOUT is Triton's source tree. Each tutorial runs in a process of its own, whole, or by the calls of CALLS where its main part
only measures or is too large. A tutorial passes where its process ends well: they compare by themselves, and what WRONG says is not
printed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
WRONG = "❌"  # what a tutorial prints where it compares without ending
# Or it prints the largest difference of sums and arcsines below 2, of which each side is right within two units in the last place.
DIFFERENCE = re.compile(r"The maximum difference .* is ([\d.e+-]+)")
LARGEST = 4 * 2.0**-23
# What one says that this chip has not what it needs.
LACKS = ("not supported on this device", "requires GPU support")
# Calls in the place of the main part, whose measurements of 8192x8192 products a simulator does not make.
CALLS = {
    "06": (
        "test_op(1, 2, 128, 64, False, False, 'bwd', 'triton-fp16')", "test_op(1, 2, 128, 64, True, False, 'bwd', 'triton-fp16')",
        "test_op(1, 2, 128, 64, True, False, 'fwd', 'triton-fp8')",
    ),
    "09": ("validate(32, 32, 32, torch.float16)", "validate(256, 256, 128, torch.float16)"),
}
COMPILERS = {"tilefw": "--triton", "triton": "--compiler=triton"}


def run(file: Path, target: str, compiler: str, limit: float) -> tuple[str, float]:
    """What became of one tutorial, in a word or in its last line, and its seconds."""
    calls = CALLS.get(file.name[:2], ())
    program = [str(HERE / "tutorial_calls.py")] if calls else [file.name]
    rest = ["--", file.name, *calls] if calls else []
    command = [sys.executable, "-m", "tilefw", "run", COMPILERS[compiler], *program, "--target", target, *rest]
    began = time.perf_counter()
    try:
        done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"stopped after {limit:.0f} s", limit
    return verdict(done.returncode, done.stdout, done.stderr), time.perf_counter() - began


def verdict(code: int, out: str, err: str) -> str:
    """`passed`, `lacks` (the chip has not what it needs, by its own check), or the last line of what it said."""
    if code:
        lines = [line for line in err.splitlines() if line.strip()]
        return next((line for line in lines if line.startswith("error[")), lines[-1] if lines else f"exit {code}")
    if WRONG in out or any(not float(found) <= LARGEST for found in DIFFERENCE.findall(out)):
        return "wrong"
    return "lacks" if any(word in out for word in LACKS) else "passed"


def table(rows: list[tuple[str, str, str, str, float]]) -> str:
    """The rows as a page: a line a tutorial, a column a target and compiler."""
    columns = list(dict.fromkeys((target, compiler) for _, target, compiler, _, _ in rows))
    found = {row[:3]: row[3:] for row in rows}
    lines = [
        "# Triton's tutorials on simulators", "",
        "Written by `bench/tutorials.py`. The files run unchanged; seconds are those of the whole process, most of which are the",
        "simulator's. `lacks`: the tutorial's own check finds that the chip has not what it needs. Benchmarks are not measured.",
        "Of 06 and 09 the calls that `CALLS` lists are made.", "",
        "| tutorial | " + " | ".join(f"{target}, {compiler}" for target, compiler in columns) + " |",
        "| --- |" + " --- |" * len(columns),
    ]
    for name in dict.fromkeys(name for name, *_ in rows):
        cells = [found.get((name, *column)) for column in columns]
        lines.append(f"| {name} | " + " | ".join("" if cell is None else f"{cell[0]}, {cell[1]:.0f} s" for cell in cells) + " |")
    return "\n".join([*lines, ""])


def main() -> None:
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("checkout", type=Path)
    parse.add_argument("--only", nargs="*", default=[], help="numbers of tutorials: 01 02")
    parse.add_argument("--on", nargs="*", default=[
        "reference:tilefw", "nvidia-sm80:tilefw", "nvidia-sm80:triton", "amd-cdna3:tilefw", "amd-cdna3:triton",
    ], help="target:compiler")
    parse.add_argument("--limit", type=float, default=600, help="seconds for one")
    parse.add_argument("--out", type=Path)
    args = parse.parse_args()
    rows = []
    for file in sorted((args.checkout / "python" / "tutorials").glob("[0-9][0-9]-*.py")):
        if args.only and file.name[:2] not in args.only:
            continue
        for place in args.on:
            target, compiler = place.split(":")
            rows.append((file.stem, target, compiler, *run(file, target, compiler, args.limit)))
            print(*rows[-1], flush=True)
            if args.out:
                args.out.write_text(table(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
