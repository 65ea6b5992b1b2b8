"""Triton-distributed's kernels, unchanged, on simulated nodes: `python bench/triton_distributed.py CHECKOUT [--only NAME]`.

CHECKOUT is a copy of https://github.com/ByteDance-Seed/Triton-distributed. Each kernel runs on nodes of 2 and 4 ranks of sm_80 and
gfx942; its results are compared with NumPy's, then again under seeds with all checks. What cannot be taken is listed with why.
"""

from __future__ import annotations

import argparse
import collections
import re
import time
from pathlib import Path
from types import ModuleType

from triton_distributed_kernels import EXAMPLES, Example

import tilefw
from tilefw.api.errors import CodeError, KernelError
from tilefw.triton.absent import Absent
from tilefw.triton.checkout import Checkout
from tilefw.triton.triton_dist import PACKAGE, open_checkout

TARGETS = ("nvidia-sm80", "amd-cdna3")
RANKS = (2, 4)
SEEDS = 3
BUDGET = 1 << 25  # instructions of all lanes of a launch; those that end take less than a tenth of it
KERNELS = PACKAGE / "kernels"
FOLDERS = ("amd", "nvidia")


def attempt(example: Example, code: ModuleType, target: str, ranks: int, seed: int, checks: bool) -> str:
    """What comes of one run: right, wrong, or the code of an error."""
    try:
        options = {"budget": BUDGET, **({"checks": "all"} if checks else {})}
        return "right" if example.run(code, tilefw.node(target, ranks), seed, options) else "wrong"
    except KernelError as error:
        return str(error.code)


def cell(example: Example, code: ModuleType, target: str, ranks: int, seeds: int) -> str:
    """In the plain order without checks, then the worst under seeds with all."""
    checked = collections.Counter(attempt(example, code, target, ranks, seed, True) for seed in range(1, seeds + 1))
    others = [found for found in checked if found != "right"]
    return f"{attempt(example, code, target, ranks, 0, False)} / {', '.join(others) or 'right'}"


def refusals(checkout: Checkout, root: Path) -> tuple[dict[str, list[str]], int]:
    """By file, the functions that cannot be taken with why; and how many can."""
    found: dict[str, list[str]] = {}
    taken = 0
    for path in sorted(path for folder in FOLDERS for path in (root / KERNELS / folder).glob("*.py")):
        try:
            code = checkout.kernels(path)
        except CodeError:
            continue
        for name, value in vars(code).items():
            if getattr(value, "__tilefw_jit__", False) and value.fn.__globals__ is vars(code):
                taken += 1
            elif isinstance(value, Absent) and value.__name__ == f"{path.stem}.{name}" and (why := value.why) is not None:
                _, parted, reason = why.partition("cannot be taken: ")
                if parted:
                    short = re.sub(r"^error\[(TFW\d+)\]: ", r"\1, ", reason.partition("\n")[0])
                    found.setdefault(f"{path.parent.name}/{path.name}", []).append(f"`{name}`: {short}")
    return found, taken


def main() -> int:
    parse = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parse.add_argument("checkout", type=Path)
    parse.add_argument("--out", type=Path, default=Path(__file__).with_name("triton_distributed.md"), help="the page to write")
    parse.add_argument("--only", default="", help="files and kernels whose names contain this; prints, writes no page")
    parse.add_argument("--targets", default=",".join(TARGETS))
    parse.add_argument("--seeds", type=int, default=SEEDS)
    args = parse.parse_args()
    checkout, lines = open_checkout(args.checkout), list[str]()
    places = [(target, ranks) for target in args.targets.split(",") for ranks in RANKS]
    for example in (one for one in EXAMPLES if args.only in one.file + " " + one.kernels):
        code = checkout.kernels(args.checkout / KERNELS / example.file)
        begin = time.process_time()
        found = [cell(example, code, target, ranks, args.seeds) for target, ranks in places]
        programs = str(example.programs or "as ranks")
        seconds = f"{time.process_time() - begin:.1f}"
        cells = [f"`{example.file}`", f"`{example.kernels}`", programs, *found, seconds, example.note]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if not args.only:
        columns = [f"{target}, {ranks} ranks" for target, ranks in places]
        args.out.write_text(page(columns, lines, *refusals(checkout, args.checkout), args.seeds), encoding="utf-8")
    return 0


def page(columns: list[str], lines: list[str], refused: dict[str, list[str]], taken: int, seeds: int) -> str:
    """The table of runs, then what cannot be taken."""
    heads = ["file", "kernels", "programs", *columns, "CPU seconds", "note"]
    table = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), *lines]
    told = [f"- `{file}`\n" + "\n".join(f"  - {line}" for line in of_file) for file, of_file in refused.items()]
    count = taken + sum(map(len, refused.values()))
    more = f"## What is not taken\n\nOf {count} jit functions {taken} are taken. The others, with the cause:\n"
    return _PAGE.format(seeds=seeds) + "\n".join([*table, "", more, *told]) + "\n"


_PAGE = """# Triton-distributed's kernels on simulated nodes

`python bench/triton_distributed.py CHECKOUT` wrote this page. The kernels are those of
[Triton-distributed](https://github.com/ByteDance-Seed/Triton-distributed); nothing of them was changed. Each cell has two results:
of a run in the plain order without checks, compared with NumPy's numbers, and what came of {seeds} seeds with all checks, compared
as well. A code is an error that was told: TFW0804 a race, TFW0870 a deadlock with who waits for what, TFW0810 a budget used up.

"""

if __name__ == "__main__":
    raise SystemExit(main())
