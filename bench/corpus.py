"""Every kernel of public collections, compiled with synthesised signatures by tilefw and, beside it, by Triton 3.9.

    python bench/corpus.py PATH… [--target nvidia-sm80 amd-cdna3] [--triton] [--accept-only] [--every N] [--report FILE]

A PATH is a folder or an installed package. Kernels are what host code launches; a guess of types and compile-time values is tried
after another until Triton compiles one (tilefw, without `--triton`). Neither side runs an assembler of others.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Lines = dict[str, dict[str, Any]]
_SLOW_SECONDS, _SLOW_RATIO = 5.0, 1.5


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--target", nargs="+", default=["nvidia-sm80", "amd-cdna3"])
    parser.add_argument("--triton", action="store_true", help="compile with Triton 3.9 too")
    parser.add_argument("--accept-only", action="store_true", help="Triton stops where it has accepted a kernel: no times")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth kernel only")
    parser.add_argument("--limit", type=int, default=60, metavar="SECONDS", help="give up on a kernel after this time")
    parser.add_argument("--keep", type=Path, help="folder for the results of each kernel; what is there is not compiled again")
    parser.add_argument("--report", type=Path)
    asked = parser.parse_args(argv)
    kept = asked.keep or Path(tempfile.mkdtemp(prefix="tilefw-corpus-"))
    kept.mkdir(parents=True, exist_ok=True)
    parts = [_part(path, target, kept, asked) for path in asked.paths for target in asked.target]
    text = "\n\n".join(["# Public kernels", *parts]) + "\n"
    print(text)
    if asked.report:
        asked.report.write_text(text, "utf-8")
    return 0


def _part(path: str, target: str, kept: Path, asked: argparse.Namespace) -> str:
    name = path.strip("/").replace("/", "_")
    theirs: Lines = {}
    plans: list[str] = []
    if asked.triton:
        file = kept / f"{name}.{target}.triton"
        theirs = _run("triton", target, path, file, asked, ["--accept-only"] if asked.accept_only else [])
        plans = ["--plans", str(file)]
    ours = _run("tilefw", target, path, kept / f"{name}.{target}.tilefw", asked, plans)
    return _told(path, target, ours, theirs, timed=not asked.accept_only)


def _run(compiler: str, target: str, path: str, file: Path, asked: argparse.Namespace, more: list[str]) -> Lines:
    """All results of one compiler; its process is started anew where a kernel ended it."""
    command = [sys.executable, str(Path(__file__).with_name("corpus_compilers.py")), compiler, target, path, "--results", str(file),
               "--every", str(asked.every), "--limit", str(asked.limit), *more]
    said = -1
    while subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False).returncode != 0:
        lines = len(file.read_text("utf-8").splitlines()) if file.exists() else 0
        if lines == said:
            raise SystemExit(f"{compiler} got no further: {' '.join(command)}")
        said = lines
    return {line["kernel"]: line for line in map(json.loads, file.read_text("utf-8").splitlines())}


def _told(path: str, target: str, ours: Lines, theirs: Lines, *, timed: bool) -> str:
    compiled = {key for key, line in ours.items() if _compiled(line)}
    lines = [f"## {path}, {target}", ""]
    imports = {key: line["import"] for key, line in ours.items() if "import" in line}
    skipped = [key for key, line in (theirs or ours).items() if "skipped" in line]
    kernels = ours.keys() - imports.keys() - set(skipped)
    lines.append(
        f"{len(kernels)} kernels; {len(compiled)} compiled; {len(skipped)} want what no text tells; {len(imports)} files not read"
    )
    judged = kernels
    if theirs:
        peer = {key for key, line in theirs.items() if _compiled(line)}
        both, judged = compiled & peer, (peer - compiled) & kernels
        lines[-1] += (
            f"; Triton compiles {len(peer & kernels)}, of these {len(both)} are compiled here too "
            f"({100 * len(both) / max(1, len(peer & kernels)):.1f} %), {len(compiled - peer)} only here"
        )
        lines += [] if not timed else _times({key: (ours[key]["seconds"], theirs[key]["seconds"]) for key in both})
    lines += _grouped("Not imported", imports)
    lines += _grouped("Refused here" + (", compiled by Triton" if theirs else ""), {
        key: ours[key].get("error", "ended the process") for key in judged if key not in compiled
    })
    return "\n".join(lines)


def _compiled(line: dict[str, Any]) -> bool:
    return "seconds" in line and "error" not in line


def _times(pairs: dict[str, tuple[float, float]]) -> list[str]:
    if not pairs:
        return []
    ratios = {key: ours / max(theirs, 1e-3) for key, (ours, theirs) in pairs.items()}
    ours, theirs = (statistics.median(pair[side] for pair in pairs.values()) for side in (0, 1))
    lines = ["", f"Processor seconds, medians: {ours:.3f} here, {theirs:.3f} of Triton's; median of the ratios "
             f"{statistics.median(ratios.values()):.2f}.", ""]
    slow = [key for key in pairs if pairs[key][0] > _SLOW_SECONDS or ratios[key] > _SLOW_RATIO]
    largest = sorted(pairs, key=lambda key: -pairs[key][0])[:3]
    lines += [f"- {key}: {pairs[key][0]:.2f} s, {ratios[key]:.2f} of Triton's" + (" (slow)" if key in slow else "")
              for key in dict.fromkeys([*largest, *sorted(slow, key=lambda key: -pairs[key][0])])]
    return lines


def _grouped(title: str, told: dict[str, str]) -> list[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for key, message in told.items():
        groups[message.splitlines()[0][:160] if message else "no message"].append(key)
    counted = Counter({message: len(keys) for message, keys in groups.items()})
    rows = [f"- {count}: {message} ({', '.join(sorted(groups[message])[:3])})" for message, count in counted.most_common()]
    return ["", f"{title}: {len(told)}", *rows] if told else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
