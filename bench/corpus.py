"""Every kernel of public collections, compiled with synthesised signatures by tilefw and, beside it, by Triton 3.9.

    python bench/corpus.py PATH… [--target nvidia-sm80 amd-cdna3] [--ask-refused] [--times N] [--every N] --keep FOLDER
    python bench/corpus.py --keep FOLDER --report bench/corpus.md      the page of what is kept there
    python bench/corpus.py --keep FOLDER --seconds --report bench/compile-seconds.md      that of the timed samples alone

A PATH is a folder or an installed package. Kernels are what host code launches; a guess of types and compile-time values is tried
after another until one is compiled. With `--ask-refused` Triton is asked for each guess that was refused here, and compiles whole
what it accepts, its assembler too. `--times N` compiles each Nth of the kernels that are compiled here, and those that took above
5 s, once more on both sides, warm. Otherwise neither side runs an assembler. What is kept is not compiled again: a run may be ended
and begun anew.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import corpus_page
from corpus_page import SLOW_SECONDS, Lines, compiled, lines_of


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--target", nargs="+", default=["nvidia-sm80", "amd-cdna3"])
    parser.add_argument("--ask-refused", action="store_true", help="ask Triton 3.9 for what is refused here")
    parser.add_argument("--times", type=int, metavar="N", help="time each Nth kernel that is compiled here, on both sides")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only kernels among each Nth jit function")
    parser.add_argument("--limit", type=int, default=30, metavar="SECONDS", help="give up on a kernel after this time")
    parser.add_argument("--keep", type=Path, help="folder for the results of each kernel; what is there is not compiled again")
    parser.add_argument("--seconds", action="store_true", help="the page of the timed samples alone")
    parser.add_argument("--report", type=Path)
    asked = parser.parse_args(argv)
    kept = asked.keep or Path(tempfile.mkdtemp(prefix="tilefw-corpus-"))
    kept.mkdir(parents=True, exist_ok=True)
    for path in asked.paths:
        for target in asked.target:
            _collection(path, target, kept, asked)
    text = (corpus_page.seconds_page if asked.seconds else corpus_page.page)(kept)
    if asked.report:
        asked.report.write_text(text, "utf-8")
    else:
        print(text)
    return 0


def _collection(path: str, target: str, kept: Path, asked: argparse.Namespace) -> None:
    base = f"{path.strip('/').replace('/', '_')}.{target}"
    about = kept / f"{base}.about"
    if not about.exists():
        about.write_text(json.dumps({"title": path, "target": target, "every": asked.every}), "utf-8")

    def run(compiler: str, kind: str, *more: str) -> Lines:
        return _run([compiler, target, path], kept / f"{base}.{kind}", asked, more)

    def plans(kind: str, lines: Iterable[dict[str, Any]]) -> str:
        file = kept / f"{base}.{kind}"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        return str(file)

    ours = run("tilefw", "tilefw")
    if asked.ask_refused:
        refused = [{"kernel": key, "plans": [one["plan"] for one in line["refused"]]}
                   for key, line in ours.items() if line.get("refused")]
        answers = run("triton", "asked", "--accept-only", "--plans", plans("refused", refused))
        accepted = [{"kernel": key, "plan": line["plan"]} for key, line in answers.items() if compiled(line)]
        run("triton", "whole", "--assemble", "--plans", plans("accepted", accepted))
    if asked.times:
        taken = sorted(key for key in ours if compiled(ours[key]))
        slow = [key for key in taken if ours[key]["seconds"] > SLOW_SECONDS]
        drawn = dict.fromkeys([*taken[:: asked.times], *slow])
        sample = plans("sample", ({"kernel": key, "plan": ours[key]["plan"]} for key in drawn))
        run("triton", "triton", "--again", "--plans", sample)
        run("tilefw", "timed", "--again", "--plans", sample)


def _run(what: list[str], file: Path, asked: argparse.Namespace, more: Sequence[str]) -> Lines:
    """All results of one compiler; its process is started anew where a kernel ended it."""
    command = [sys.executable, str(Path(__file__).with_name("corpus_compilers.py")), *what, "--results", str(file),
               "--every", str(asked.every), "--limit", str(asked.limit), *more]
    said = -1
    while subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False).returncode != 0:
        lines = len(file.read_text("utf-8").splitlines()) if file.exists() else 0
        if lines == said:
            raise SystemExit(f"{what[0]} got no further: {' '.join(command)}")
        said = lines
    return lines_of(file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
