"""Measures tilefw against its peers and writes results.md: `python bench/run.py [PART …]`, all parts when none is named."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
PARTS = ("startup", "compiling", "simulating", "machine_code", "memory", "quality", "quality-amd", "suite")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all, and results.md, when none is named")
    wanted = parser.parse_args().parts
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    root = HERE.parent
    sys.path[:0] = [str(HERE), str(root)]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(root)])
    sections = []
    for part in wanted or PARTS:
        sections.append(importlib.import_module(part.replace("-", "_")).measure())
        print(sections[-1], "\n", flush=True)
    if not wanted:
        from measure import machine

        head = f"# Results\n\nMade by `python bench/run.py` on {date.today()}: {machine()}\n\n"
        (HERE / "results.md").write_text(head + "\n\n".join(sections) + "\n")


if __name__ == "__main__":
    main()
