"""Kernels with one planted inefficiency each, and whether `tilefw profile` names it: writes `planted_causes.md`.

    python bench/planted_causes.py                      # all, some minutes; writes the page
    python bench/planted_causes.py divergent branch     # those whose names have all words, to look at; writes nothing
    python bench/planted_causes.py --keep FILE.jsonl tail …

`--keep` adds what it finds to a file, of which `--page FILE.jsonl` makes the page.

A row is found where the planted cause is the first or the second that the profile names, and the kernel without it is faster, or
does the same work with another first cause. Exit code 1 where a target finds fewer than 45 of 50.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planted_cause_code import profiled_code

from tilefw.cli.function_launch import FunctionLaunch, launch_of_function
from tilefw.runtime import config
from tilefw.runtime.plugins.loader import find_target
from tilefw.runtime.recording import profile_of, record

if TYPE_CHECKING:
    from tilefw.timing.launch_profile import LaunchProfile

HERE = Path(__file__).parent
TARGETS = ("nvidia-sm80", "amd-cdna3")
NEEDED = 0.9
BESIDE = 64
ROOM = 1 << 25
"""Bytes behind each pointer, which are zeros."""
MORE_ROOM = {"many_sums": {"y_ptr": 1 << 27}, "reread": {"x_ptr": 1 << 28}}


@dataclass(frozen=True)
class Planted:
    """`kernel` with `clean` and with `planted` constants, which differ by one inefficiency, `cause`. Launch keywords may be among
    them, and `each` and `more`: so many workgroups for each processor of the chip, and so many besides. `types`: of the
    operands."""

    cause: str
    kernel: str
    clean: Mapping[str, Any]
    planted: Mapping[str, Any]
    types: str = "fp32"


def rows(cause: str, kernel: str, base: Mapping[str, Any], *variants: Mapping[str, Any], types: str = "fp32") -> list[Planted]:
    """A row for each variant: what it plants, and under `both` what both kernels of the row have besides."""
    made = []
    for variant in variants:
        clean = {**base, **variant.get("both", {})}
        own = {name: value for name, value in variant.items() if name != "both"}
        made.append(Planted(cause, kernel, clean, {**clean, **own}, types))
    return made


WORK = {"BLOCK": 1024, "TURNS": 16}
PRODUCT = {"K": 512, "M": 64, "N": 64, "BLOCK_K": 32, "WIDE": 16, "STAGES": 4, "MEET": False}
TABLE: tuple[Planted, ...] = (
    *rows("uncoalesced access", "strided", {"STRIDE": 1, "STORE_STRIDE": 1, "BLOCK": 256, "TURNS": 1, "each": 2},
          {"STRIDE": 8}, {"STRIDE": 32}, {"STORE_STRIDE": 16}),
    *rows("uncoalesced access", "fields", {"FIELDS": 1, "APART": 1 << 21, "BLOCK": 256, "each": 4}, {"FIELDS": 16, "APART": 1}),
    *rows("uncoalesced access", "scattered", {"FACTOR": 1, "SIZE": 1 << 20, "BLOCK": 1024, "each": 2},
          {"FACTOR": 1025}, {"FACTOR": 129}),
    *rows("bank conflicts", "picked", {"FACTOR": 1, "BLOCK": 1024, "TURNS": 4},
          {"FACTOR": 8}, {"FACTOR": 16}, {"FACTOR": 4}, {"FACTOR": 8, "both": {"BLOCK": 2048}}),
    *rows("spills", "many_sums", {"SUMS": 8, "BLOCK": 128, "TURNS": 16, "each": 1},
          {"SUMS": 256, "num_warps": 1}, {"SUMS": 256, "num_warps": 1, "both": {"TURNS": 8}}, {"SUMS": 512, "num_warps": 1,
          "both": {"BLOCK": 64}}),
    *rows("low occupancy", "streamed", {"LIVE": 1, "BLOCK": 128, "TURNS": 6, "STAGES": 1, "num_warps": 1, "each": 24},
          {"LIVE": 32}, {"LIVE": 64}, {"LIVE": 32, "both": {"TURNS": 8}}),
    *rows("missing pipelining", "waited", {"AHEAD": 8, "BLOCK": 128, "TURNS": 32, "num_warps": 1, "each": 1}, {"AHEAD": 1},
          {"AHEAD": 1, "both": {"each": 2}}, {"AHEAD": 1, "both": {"BLOCK": 512, "num_warps": 4}}),
    *rows("missing pipelining", "product", {**PRODUCT, "each": 1}, {"STAGES": 1}, types="fp16"),
    *rows("serialised atomics", "added", {"SPREAD": 1, "BINS": 1024, "BLOCK": 1024, "TURNS": 2},
          {"SPREAD": 0, "BINS": 1}, {"SPREAD": 0, "BINS": 8}, {"BINS": 1}),
    *rows("serialised atomics", "counted", {"SPREAD": 1, "TURNS": 16, "each": 8},
          {"SPREAD": 0}, {"SPREAD": 0, "both": {"TURNS": 64, "num_warps": 1}}),
    *rows("tail", "worked", {**WORK, "each": 1},
          {"more": 1}, {"more": 1, "both": {"TURNS": 40}}, {"more": 8, "both": {"BLOCK": 4096}}),
    *rows("cache thrash", "reread", {"SPAN": 4, "BLOCK": 1024, "TURNS": 256, "num_warps": 4},
          {"SPAN": 128, "both": {"each": 1}}, {"SPAN": 64, "both": {"each": 2}}, {"SPAN": 32, "both": {"each": 4}}),
    *rows("type conversions", "converted", {"TYPE": "fp32", **WORK}, {"TYPE": "fp16"}, {"TYPE": "i32"}, {"TYPE": "bf16"}),
    *rows("exchanges between lanes", "turned", {"TURN": False, "SIDE": 64, "TURNS": 16},
          {"TURN": True}, {"TURN": True, "both": {"SIDE": 32}}),
    *rows("exchanges between lanes", "reordered", {"AXES": False, "BLOCK": 64, "TURNS": 16}, {"AXES": True}),
    *(Planted("divergent branch", name, {"APART": 64}, {"APART": 1})
      for name in ("two ways", "more instructions", "many instructions")),
    *rows("idle lanes", "normalised", {"COLUMNS": 256, "BLOCK": 256, "TURNS": 1, "each": 8},
          {"BLOCK": 4096}, {"BLOCK": 2048, "both": {"COLUMNS": 128}}),
    *rows("small tile", "product", {**PRODUCT, "STAGES": 3, "each": 1},
          {"M": 16, "N": 16, "WIDE": 64, "each": 16, "num_warps": 1}, {"M": 32, "N": 16, "WIDE": 64, "each": 8, "num_warps": 1},
          types="fp16"),
    *rows("few workgroups", "worked", {**WORK, "each": 0, "more": 128}, {"BLOCK": 16384, "more": 8}, {"BLOCK": 4096, "more": 32}),
    *rows("barriers", "met", {"MEET": False, "BLOCK": 1024, "TURNS": 24}, {"MEET": True}, {"MEET": True, "num_warps": 8},
          {"MEET": True, "both": {"BLOCK": 512, "each": 2}}),
    *rows("slow operations", "slow", {"HOW": 0, **WORK}, {"HOW": 1}, {"HOW": 2}, {"HOW": 3}),
)


@dataclass(frozen=True, slots=True)
class Told:
    """What the profiles of a row tell: both kernels' cycles, the planted one's causes."""

    row: Planted
    target: str
    clean: float
    planted: float
    clean_first: str
    causes: tuple[tuple[str, float], ...]

    @property
    def found(self) -> bool:
        named = self.row.cause in [name for name, _ in self.causes[:2]]
        return named and (self.planted > 1.02 * self.clean or self.clean_first != self.row.cause)


def told(row: Planted, target: str) -> Told:
    """Both kernels of a row profiled on a target."""
    clean, planted = (profiled_row(row, constants, target) for constants in (row.clean, row.planted))
    first = clean.causes[0].cause if clean.causes else ""
    return Told(row, target, clean.cycles, planted.cycles, first, tuple((why.cause, why.share) for why in planted.causes))


def profiled_row(row: Planted, constants: Mapping[str, Any], target: str) -> LaunchProfile:
    if row.cause == "divergent branch":
        return profiled_code(row.kernel, target, constants["APART"])
    import planted_cause_kernels

    kernel = getattr(planted_cause_kernels, row.kernel)
    pointers = [name for name in kernel.arg_names if name.endswith("_ptr")]
    own = {name: value for name, value in constants.items() if name in kernel.arg_names}
    if "TYPE" in own:
        own["TYPE"] = dtype_of(own["TYPE"])
    keywords = {name: value for name, value in constants.items() if name not in (*kernel.arg_names, "each", "more")}
    grid = constants.get("each", 2) * find_target(target).backend.timing().processors + constants.get("more", 0)
    room = {name: MORE_ROOM.get(row.kernel, {}).get(name, ROOM) for name in pointers}
    types = {name: f"*{row.types if name[0] in 'ab' else 'fp32'}" for name in pointers}
    stated = FunctionLaunch(
        str(HERE / "planted_cause_kernels.py"), row.kernel, types, own, str(grid), {}, room, keywords
    )
    resolved = config.resolve(config.settings(target, executor="sim"))
    return profile_of(record(launch_of_function(stated, resolved), BESIDE))


def dtype_of(name: str) -> Any:
    import tilefw.language as tl

    return {"fp32": tl.float32, "fp16": tl.float16, "bf16": tl.bfloat16, "i32": tl.int32}[name]


HEAD = """\
# Planted causes

Written by `python bench/planted_causes.py`. Each kernel has one inefficiency planted by constants. It is found where the profile
names it first or second among its causes (cycles that the launch would save without it) and the kernel without it is faster,
or has another first cause. Cycles are the model's. Kernels: `planted_cause_kernels.py`, `planted_cause_code.py`.
"""
COLUMNS = ("planted", "kernel", "constants", "target", "found", "cycles without", "with", "causes named")


def page(found: Sequence[Told]) -> str:
    lines = [HEAD]
    for target in TARGETS:
        own = [one for one in found if one.target == target]
        lines.append(f"- `{target}`: {sum(one.found for one in own)} of {len(own)} found, of {len(TABLE)} kernels")
    lines += ["", f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for one in sorted(found, key=lambda one: (TABLE.index(one.row), one.target)):
        row = one.row
        changed = " ".join(f"{name}={value}" for name, value in row.planted.items() if row.clean.get(name) != value)
        named = ", ".join(f"{name} {share:.0%}" for name, share in one.causes[:3])
        cells = (
            row.cause, row.kernel, changed, one.target, "yes" if one.found else "**no**", f"{one.clean:,.0f}",
            f"{one.planted:,.0f}", named,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--page", type=Path)
    said = parser.parse_args(words)
    if said.page:
        found = [restored(json.loads(line)) for line in said.page.read_text().splitlines()]
    else:
        found = run(said.words, said.keep)
    if said.page or not (said.words or said.keep):
        (HERE / "planted_causes.md").write_text(page(found))
    shares = {target: [one.found for one in found if one.target == target] for target in TARGETS}
    return int(any(sum(own) < NEEDED * len(own) for own in shares.values()))


def run(words: Sequence[str], keep: Path | None) -> list[Told]:
    """Profile the chosen rows on the chosen targets; tell each, and keep it."""
    chosen = [row for row in TABLE if all(word in f"{row.cause} {row.kernel}" for word in words if word not in TARGETS)]
    targets = [word for word in words if word in TARGETS] or TARGETS
    found = []
    for row in chosen:
        for target in targets:
            one = told(row, target)
            found.append(one)
            cycles = f"{one.clean:,.0f} -> {one.planted:,.0f}"
            named = [(name, round(share, 2)) for name, share in one.causes[:4]]
            print("  " if one.found else "NO", row.cause, row.kernel, dict(row.planted), target, cycles, named, flush=True)
            if keep:
                with keep.open("a") as file:
                    file.write(json.dumps({**asdict(one), "row": TABLE.index(row)}) + "\n")
    return found


def restored(kept: Mapping[str, Any]) -> Told:
    causes = tuple((name, share) for name, share in kept["causes"])
    return Told(**{**kept, "row": TABLE[kept["row"]], "causes": causes})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
