"""Every kernel of public collections, compiled with synthesised signatures by tilefw and, beside it, by Triton 3.9.

    python bench/corpus.py PATH… [--target nvidia-sm80 amd-cdna3] [--triton] [--accept-only] [--every N] [--report FILE]
    python bench/corpus.py PATH… --ask-refused      what is compiled here is not asked of Triton: quick, without times

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
    parser.add_argument("--accept-only", action="store_true", help="compilers stop where they have accepted a kernel: no times")
    parser.add_argument("--ask-refused", action="store_true", help="Triton is asked only for kernels that are refused here")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only kernels among each Nth jit function")
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
    stop = ["--accept-only"] if asked.accept_only else []
    if asked.triton:
        file = kept / f"{name}.{target}.triton"
        theirs = _run("triton", target, path, file, asked, stop)
        plans = ["--plans", str(file)]
    ours = _run("tilefw", target, path, kept / f"{name}.{target}.tilefw", asked, [*plans, *stop])
    if asked.ask_refused:
        refused = kept / f"{name}.{target}.refused"
        lines = ({"kernel": line["kernel"], "plans": [one["plan"] for one in line["refused"]]}
                 for line in ours.values() if line.get("refused"))
        refused.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        answers = kept / f"{name}.{target}.asked"
        asks = _run("triton", target, path, answers, asked, ["--accept-only", "--plans", str(refused)])
        return _asked(path, target, ours, asks, asked.every)
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


def _asked(path: str, target: str, ours: Lines, theirs: Lines, every: int) -> str:
    """What is compiled here, and of the rest what Triton compiles with the same signature."""
    done = {key: line for key, line in ours.items() if not ({"import", "skipped", "begun"} & line.keys())}
    compiled = {key: line["seconds"] for key, line in done.items() if _compiled(line)}
    peaks = [line["peak"] for line in done.values() if _compiled(line) and "peak" in line]
    faults = {key: _refusal(done[key], theirs[key]["plan"]) for key in theirs if key in done and _compiled(theirs[key])}
    answered = {key for key, line in theirs.items() if "error" in line and not line["error"].startswith("TooLong")}
    refused = {key: done[key]["error"] for key in answered if "error" in done.get(key, ())}
    unanswered = {key: line["error"] for key, line in done.items() if "error" in line and key not in {*faults, *refused}}
    compiled = {key: seconds for key, seconds in compiled.items() if key not in faults}
    taken = len(compiled) + len(faults)
    share = 100 * len(compiled) / max(1, taken)
    sample = "every kernel" if every == 1 else f"a sample, those among each {every}th jit function"
    lines = [
        f"## {path}, {target}", "",
        f"{len(done)} kernels ({sample}); {len(compiled)} compiled, {len(refused)} refused by both, {len(faults)} only here, "
        f"{len(unanswered)} refused here without Triton's answer: "
        f"{share:.1f} % of {taken}. {sum('import' in line for line in ours.values())} cannot be loaded; "
        f"{sum('skipped' in line for line in ours.values())} want what no text tells.",
    ]
    if compiled:
        slowest = sorted(compiled, key=lambda key: -compiled[key])[:3]
        shown = ", ".join(f"{key} {compiled[key]:.1f}" for key in slowest)
        lines += ["", f"Processor seconds here: median {statistics.median(compiled.values()):.2f}; slowest {shown}."]
        lines[-1] += f" Largest resident set: {max(peaks) / 1e6:.0f} MB, with PyTorch and the collection." if peaks else ""
    lines += _grouped("Not loaded", {key: line["import"] for key, line in ours.items() if "import" in line})
    lines += _grouped("Compiled by Triton alone", faults)
    lines += _grouped("Refused here, Triton has not answered", unanswered)
    lines += _grouped("Refused by both", refused)
    return "\n".join(lines)


def _refusal(line: dict[str, Any], plan: dict[str, Any]) -> str:
    """What was said here of the specialisation that Triton compiles."""
    return next((one["error"] for one in line["refused"] if one["plan"] == plan), "ended the process")


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
        groups[message.splitlines()[0][:110] if message else "no message"].append(key)
    counted = Counter({message: len(keys) for message, keys in groups.items()})
    rows = [f"- {count}: {message} ({', '.join(sorted(groups[message])[:3])})" for message, count in counted.most_common()]
    return ["", f"{title}: {len(told)}", *rows] if told else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
