"""Triton's compiler in front of our simulators: kernels without a mistake, of which nothing may be said, and mistakes to be found.

    python bench/sanitizer.py                        # both GPUs, a process each; writes sanitizer.md; some minutes
    python bench/sanitizer.py --target amd-cdna3 WORD…   # kernels and mistakes whose names have all words; writes nothing

`sanitizer_kernels.py` has the kernels, `sanitizer_mistakes.py` the mistakes. Exit code 1 where something is said of a kernel that
is right, or nothing of a mistake.
"""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import per_target
from per_target import Row

TARGETS = ("nvidia-sm80", "amd-cdna3")


def one_target(target: str, words: Sequence[str]) -> Iterator[Row]:
    """Every kernel and mistake on one target."""
    import tilefw.triton

    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # what 3.9 does by default, said aloud to silence its warning
    tilefw.triton.sanitize(target)
    import sanitizer_kernels
    import sanitizer_mistakes

    works = [(name, "", make) for name, make in sanitizer_kernels.subjects(target)]
    works += list(sanitizer_mistakes.mistakes(target))
    for name, mistake, make in works:
        if all(word in f"{name} {mistake}" for word in words):
            yield {"kernel": name, "mistake": mistake, **told(make)}


def told(make: Callable[[], Any]) -> Row:
    """What is said of one launch: the code of a finding and its words, `wrong` where only the result tells, or nothing."""
    from tilefw.api.errors import CheckError

    began = time.perf_counter()
    try:
        wrong = make().run()
        code, words = ("wrong", wrong) if wrong else ("", "")
    except CheckError as error:
        code, words = error.code, error.message
    except Exception as error:
        code, words = "error", f"{type(error).__name__}: {error}"
    return {"code": code, "said": words, "seconds": round(time.perf_counter() - began, 1)}


def as_it_must_be(row: Row) -> bool:
    """Nothing is said of a kernel that is right; a check, and not the result alone, tells of a mistake."""
    return row["code"].startswith("TFW08") if row["mistake"] else not row["code"]


def page(rows: dict[str, list[Row]]) -> str:
    return "\n".join([
        "# Triton's compiler in front of our simulators", "",
        "Written by `bench/sanitizer.py`: Triton 3.9 compiles, the simulators run its code under every check, as with",
        "`--compiler triton`. Results are judged by NumPy with error bounds.", "",
        "| target | kernels | nothing is said, and right | mistakes | found by a check | kernels with a mistake found |",
        "| --- | --- | --- | --- | --- | --- |", *(_sums(target, found) for target, found in rows.items()), "",
        "## Mistakes", "", "TFW0801: out of bounds. TFW0803: not initialised. TFW0804: a race.", "",
        "| kernel | mistake | " + " | ".join(rows) + " |", "| --- | --- |" + " --- |" * len(rows), *_mistakes(rows), "",
        "No check tells of a read below an array on gfx942: the chip's own bounds make it zero, as they do masked elements.", "",
        "## Kernels", "", *_kernels(rows), "",
    ])


def _sums(target: str, found: list[Row]) -> str:
    kernels, mistakes = ([row for row in found if bool(row["mistake"]) == planted] for planted in (False, True))
    seen = [row for row in mistakes if as_it_must_be(row)]
    numbers = len(kernels), sum(map(as_it_must_be, kernels)), len(mistakes), len(seen), len({row["kernel"] for row in seen})
    return f"| {target} | " + " | ".join(map(str, numbers)) + " |"


def _mistakes(rows: dict[str, list[Row]]) -> Iterator[str]:
    codes = {(target, row["kernel"], row["mistake"]): row["code"] for target, found in rows.items() for row in found}
    for _, kernel, mistake in [key for key in codes if key[0] == next(iter(rows)) and key[2]]:
        cells = [codes.get((target, kernel, mistake), "") or "not found" for target in rows]
        yield f"| {kernel} | {mistake} | " + " | ".join(cells) + " |"


def _kernels(rows: dict[str, list[Row]]) -> Iterator[str]:
    from sanitizer_kernels import NOT_TRITONS

    for target, found in rows.items():
        named = f"- {target}: " + ", ".join(row["kernel"] for row in found if not row["mistake"])
        yield textwrap.fill(named, 130, subsequent_indent="  ")
    yield from (f"- not launched: library {name}: {why}" for name, why in NOT_TRITONS.items())
    for target, row in [(target, row) for target, found in rows.items() for row in found if not as_it_must_be(row)]:
        yield f"- {target}, {row['kernel']}, {row['mistake'] or 'no mistake'}: {row['code']} {row['said'][:200]}"


if __name__ == "__main__":
    sys.exit(per_target.main(__file__, __doc__, TARGETS, one_target, as_it_must_be, page))
