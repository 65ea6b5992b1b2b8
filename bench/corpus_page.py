"""The page of kept results of public kernels: by collection and chip what is compiled, what is refused, and the times."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

Lines = dict[str, dict[str, Any]]
SLOW_SECONDS, _SLOW_RATIO = 5.0, 1.5
_SHOWN = 5
_PREFACE = """# Public kernels

Every kernel of a collection is compiled for a chip with a signature guessed from its text; each guess that is refused here is
asked of Triton 3.9, which compiles and assembles what its front end accepts. Share: of the kernels that are compiled here or by
Triton with a guess that is refused here, those without such a guess. No assembler runs for what is timed. Processor seconds are
of a first compilation in a warm process, on a machine that others used as well. A collection whose name says a part was not run
whole."""


_SECONDS_PREFACE = """# Compile time beside Triton's

Processor seconds from a kernel's source to the chip's assembly text, of tilefw and of Triton 3.9, with one guessed signature and
without an assembler on either side, on a machine that others used as well. Ratios are of tilefw's seconds to Triton's."""


def lines_of(file: Path) -> Lines:
    """The last line of each kernel."""
    if not file.exists():
        return {}
    return {line["kernel"]: line for line in map(json.loads, file.read_text("utf-8").splitlines())}


def compiled(line: dict[str, Any]) -> bool:
    """Whether the compiler took the kernel."""
    return "seconds" in line and "error" not in line


@dataclass(frozen=True)
class CollectionResults:
    """What is kept of one collection on one chip: tilefw's results, Triton's answers, and the timed sample of both."""

    title: str
    target: str
    ours: Lines
    asked: Lines
    whole: Lines
    timed: Lines
    triton: Lines

    @cached_property
    def judged(self) -> Lines:
        """Kernels that were loaded and have a signature."""
        return {key: line for key, line in self.ours.items() if not ({"import", "skipped"} & line.keys())}

    @cached_property
    def faults(self) -> dict[str, str]:
        """What is said here of the guess that Triton compiles whole, by kernel; nothing where it was compiled here since."""
        taken = {key: line for key, line in self.asked.items() if compiled(line) and compiled(self.whole.get(key, {}))}
        known = {key: line["plan"] for key, line in taken.items() if key in self.judged}
        left = {key: plan for key, plan in known.items() if not self._has_compiled(key, plan)}
        return {key: _refusal(self.judged[key], plan) for key, plan in left.items()}

    def _has_compiled(self, key: str, plan: dict[str, Any]) -> bool:
        return compiled(self.judged[key]) and self.judged[key]["plan"] == plan

    @cached_property
    def ours_compiled(self) -> Lines:
        """What is compiled here, with no guess before it that Triton alone compiles."""
        return {key: line for key, line in self.judged.items() if compiled(line) and key not in self.faults}

    @cached_property
    def refused(self) -> dict[str, str]:
        """What neither compiles, with the first refusal here."""
        answered = {key for key, line in self.asked.items() if _refuses(line)}
        answered |= {key for key, line in self.whole.items() if _refuses(line)}
        return {key: line["error"] for key, line in self.judged.items() if "error" in line and key in answered}

    @cached_property
    def unanswered(self) -> dict[str, str]:
        """What is not compiled here and Triton was not asked for, or did not end in time."""
        rest = self.judged.keys() - self.ours_compiled.keys() - self.faults.keys() - self.refused.keys()
        return {key: self.judged[key].get("error", "ended the process") for key in rest}

    @cached_property
    def not_loaded(self) -> dict[str, str]:
        """Why a module could not be loaded, by kernel."""
        return {key: line["import"] for key, line in self.ours.items() if "import" in line}

    @property
    def ratios(self) -> dict[str, tuple[float, float]]:
        """Seconds here and of Triton's for the sample that both compile."""
        both = [key for key, line in self.timed.items() if compiled(line) and compiled(self.triton.get(key, {}))]
        return {key: (self.timed[key]["seconds"], self.triton[key]["seconds"]) for key in both}


def _refuses(line: dict[str, Any]) -> bool:
    return "error" in line and not line["error"].startswith("TooLong")


def _refusal(line: dict[str, Any], plan: dict[str, Any]) -> str:
    return next((one["error"] for one in line.get("refused", ()) if one["plan"] == plan), "ended the process")


def page(kept: Path) -> str:
    """The page of all that is kept in a folder."""
    collections = [_read(about) for about in sorted(kept.glob("*.about"), key=lambda about: about.stat().st_mtime_ns)]
    parts = [_PREFACE, *_notes(kept), _overview(collections), *_times(collections), *map(_section, collections)]
    return "\n\n".join(parts) + "\n"


def seconds_page(kept: Path) -> str:
    """The page of the timed samples of all that is kept in a folder, alone."""
    collections = [_read(about) for about in sorted(kept.glob("*.about"), key=lambda about: about.stat().st_mtime_ns)]
    titles = dict.fromkeys(f"- {each.title}" for each in collections if each.ratios)
    return "\n\n".join([_SECONDS_PREFACE, "\n".join(titles), *_notes(kept), *_times(collections)]) + "\n"


def _notes(kept: Path) -> list[str]:
    file = kept / "notes.md"
    return [file.read_text("utf-8").strip()] if file.exists() else []


def _read(about: Path) -> CollectionResults:
    told = json.loads(about.read_text("utf-8"))
    part = "" if told["every"] == 1 else f", kernels among each {told['every']}th jit function"
    kinds = ("tilefw", "asked", "whole", "timed", "triton")
    return CollectionResults(told["title"] + part, told["target"], *(lines_of(about.with_suffix(f".{kind}")) for kind in kinds))


def _overview(collections: list[CollectionResults]) -> str:
    rows = [
        "| collection | chip | kernels | compiled | refused by both | Triton alone | no answer | share | median s | slowest s "
        "| not loaded | no signature |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in collections:
        seconds = [line["seconds"] for line in each.ours_compiled.values()]
        share = f"{100 * len(seconds) / max(1, len(seconds) + len(each.faults)):.1f} %"
        share = "not asked" if each.unanswered and not each.asked else share
        times = f"{statistics.median(seconds):.2f} | {max(seconds):.1f}" if seconds else "|"
        counts = (each.judged, each.ours_compiled, each.refused, each.faults, each.unanswered)
        skipped = sum("skipped" in line for line in each.ours.values())
        rows.append(f"| {each.title} | {each.target} | {' | '.join(str(len(count)) for count in counts)} | {share} | {times} "
                    f"| {len(each.not_loaded)} | {skipped} |")
    return "\n".join(rows)


def _times(collections: list[CollectionResults]) -> list[str]:
    """By chip the ratios of processor seconds to Triton's, of the sample."""
    found = []
    for target in dict.fromkeys(each.target for each in collections):
        its = [each for each in collections if each.target == target]
        pairs = {f"{each.title}: {key}": pair for each in its for key, pair in each.ratios.items()}
        if not pairs:
            continue
        ratios = {key: ours / max(theirs, 1e-3) for key, (ours, theirs) in pairs.items()}
        matrices = [ratio for key, ratio in ratios.items() if _multiplies(key.partition(": ")[2])]
        worst = sorted(ratios, key=lambda key: -ratios[key])[:_SHOWN]
        ours, theirs = (statistics.median(pair[side] for pair in pairs.values()) for side in (0, 1))
        said = (
            f"{len(pairs)} kernels, a sample by rule of those that both compile; both sides had compiled each once before, "
            f"Triton's first, tilefw's process after it. Medians {ours:.3f} s here, {theirs:.3f} s of Triton's; median "
            f"of the ratios {statistics.median(ratios.values()):.2f}"
        )
        if matrices:
            said += f", of the {len(matrices)} whose paths say products or attention {statistics.median(matrices):.2f}"
        said += f". Above {_SLOW_RATIO}: {sum(ratio > _SLOW_RATIO for ratio in ratios.values())}."
        rows = [f"- {key}: {pairs[key][0]:.2f} s, {ratios[key]:.2f} of Triton's" for key in worst]
        found.append("\n".join([f"## Seconds beside Triton's, {target}", "", said, "", *rows]))
    return found


def _multiplies(key: str) -> bool:
    return any(word in key.lower() for word in ("matmul", "gemm", "_mm", "attn", "attention", "bmm", "linear", "flash"))


def _section(each: CollectionResults) -> str:
    lines = [f"## {each.title}, {each.target}"]
    seconds = {key: line["seconds"] for key, line in each.ours_compiled.items()}
    if seconds:
        slowest = sorted(seconds, key=lambda key: -seconds[key])[:_SHOWN]
        slow = sum(taken > SLOW_SECONDS for taken in seconds.values())
        shown = ", ".join(f"{key} {seconds[key]:.1f} s" for key in slowest)
        lines += ["", f"Slowest: {shown}. Above {SLOW_SECONDS:.0f} s: {slow}."]
    grown = {key: line["grown"] for key, line in each.ours_compiled.items() if "grown" in line}
    if grown:
        most = max(grown, key=lambda key: grown[key])
        lines[-1] += f" The resident set grew most, by {grown[most] / 1e6:.0f} MB, for {most}."
    lines += _grouped("Compiled by Triton alone", each.faults)
    lines += _grouped("Not compiled here, Triton has not answered", each.unanswered)
    lines += _grouped("Not loaded", each.not_loaded)
    lines += _grouped("Refused by both", each.refused)
    return "\n".join(lines)


def _grouped(title: str, told: dict[str, str]) -> list[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for key, message in told.items():
        groups[_first_words(message)].append(key)
    counted = Counter({message: len(keys) for message, keys in groups.items()})
    rows = [f"- {count}: {message} ({', '.join(sorted(groups[message])[:2])})" for message, count in counted.most_common()]
    return ["", f"{title}: {len(told)}", *rows] if told else []


def _first_words(message: str) -> str:
    """The first line of a message, without the folders of this machine."""
    first = message.splitlines()[0] if message else "no message"
    return first.partition(" (/")[0][:110]
