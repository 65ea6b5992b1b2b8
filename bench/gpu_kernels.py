"""Kernels that memory bounds, on the card: ours and Triton's of the same source and options, at sizes that fill the card."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import gpu_timing
import numpy as np
from gpu_arrays import Flush, OnCard
from gpu_speed import SameDraws, triton_columns
from gpu_timing import BETWEEN
from library import Work
from reports import table

from tilefw.kernels.spec import Buffer, Launch

WORKS = (
    Work("vector_add", {"n": 1 << 25}),
    Work("softmax", {"rows": 8192, "columns": 4096, "programs": 1056, "num_warps": 8}),
    Work("layernorm", {"rows": 8192, "columns": 4096, "block": 4096, "num_warps": 8}),
    Work("rmsnorm", {"rows": 8192, "columns": 4096}),
    Work("swiglu", {"rows": 8192, "columns": 4096, "block": 1024}),
    Work("rope", {"tokens": 8192, "heads": 32, "head_size": 128, "rotary_size": 128}),
    Work("transpose", {"rows": 8192, "columns": 8192}),
    Work("cross_entropy", {"rows": 4096, "classes": 32000}),
    Work("quantize", {"rows": 8192, "columns": 4096, "block": 4096}),
    Work("welford", {"rows": 4096, "columns": 4096}),
    Work("matvec", {"m": 8192, "k": 8192}),
    Work("column_sum", {"rows": 8192, "columns": 4096}),
)


def kernels(asked: Any) -> tuple[list[str], bool]:
    """The lines of the page, and whether every kernel ran and gave what its reference says."""
    flush = Flush(asked.card, asked.target, asked.flush_bytes)
    tritons = triton_columns(asked.vendor)
    rows, notes, well = [], dict[str, str](), True
    try:
        for full in WORKS:
            if asked.kernels and full.name not in asked.kernels:
                continue
            work = Work(full.name, {}, label=f"{full.name}, defaults") if asked.small else full
            print(f"  {work.shown}", file=sys.stderr)
            launch = SameDraws().launch(work)
            on_card = OnCard(asked.card, launch)
            candidates = {f"tilefw{BETWEEN}{work.name}": gpu_timing.ours(work, launch, on_card, asked.target)}
            candidates |= {f"{name}{BETWEEN}{work.name}": gpu_timing.triton(work, launch, chip) for name, chip in tritons.items()}
            found = gpu_timing.medians(candidates, flush, asked.rounds, notes)
            on_card.free()
            mine, *theirs = (found.get(name) for name in candidates)
            well = well and mine is not None
            rows.append([work.shown, *_cells(launch, mine, theirs)])
    finally:
        flush.free()
    lines = [
        "Microseconds by medians of the card's clock after the caches were emptied, and what that is in gigabytes a second of",
        "arrays that are read or written once; the last column is Triton's best over ours.", "",
        *table(["launch", "tilefw", "GB/s", *tritons, "Triton's over ours"], rows),
    ]
    return lines + (["", *(f"- {name}: {why}" for name, why in notes.items())] if notes else []), well


def _cells(launch: Launch, mine: float | None, theirs: Sequence[float | None]) -> Iterator[str]:
    moved = sum(np.asarray(value.array).nbytes for value in launch.arguments.values() if isinstance(value, Buffer))
    yield from ("", "") if mine is None else (f"{1e6 * mine:.1f}", f"{moved / mine / 1e9:.0f}")
    for seconds in theirs:
        yield "" if seconds is None else f"{1e6 * seconds:.1f}"
    best = min((seconds for seconds in theirs if seconds), default=None)
    yield f"{best / mine:.2f}" if best and mine else ""
