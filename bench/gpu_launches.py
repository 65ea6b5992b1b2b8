"""The host's time of a launch on the card: ours and Triton's, with tensors of PyTorch on it, launch after launch without a wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpu_peers as peers
import launching
from gpu_peers import Absent
from reports import table

ROUNDS, LAUNCHES = 100, 50


def launches(asked: Any) -> tuple[list[str], bool]:
    """The lines of the page; a launch of ours that fails ends the run."""
    try:
        torch = peers.pytorch()
    except Absent as error:
        return [f"Not measured: {error}."], True
    rows = []
    for size in (launching.FEW, launching.MANY):
        row = launching.Row(size, "PyTorch", False)
        tensors = [torch.zeros(launching.ELEMENTS, device="cuda") for _ in launching.arrays_of(row)]
        sides = [_ours(row, tensors, asked.target), *_triton(row, tensors)]
        mine, *theirs = launching.least(sides, ROUNDS, LAUNCHES, torch.cuda.synchronize)  # the card is idle before each turn
        rows.append([size, f"{mine:.1f}", *([f"{theirs[0]:.1f}", f"{mine / theirs[0]:.2f}"] if theirs else ["", ""])])
    told = f"Microseconds of the host for each of {LAUNCHES} launches, one behind the other: the least mean of {ROUNDS} rounds."
    return [told, "", *table(["launch", "tilefw", "Triton", "ratio"], rows)], True


def _ours(row: launching.Row, tensors: list[Any], target: str) -> Callable[[], object]:
    import tilefw
    import tilefw.language

    kernel = launching.kernel_of(tilefw.jit, tilefw.language, row.size, "tilefw")
    return launching.call(kernel, row, tensors, target=target, executor="hw")


def _triton(row: launching.Row, tensors: list[Any]) -> list[Callable[[], object]]:
    """Triton's launch, where it is installed."""
    try:
        import triton
        import triton.language
    except ImportError:
        return []
    return [launching.call(launching.kernel_of(triton.jit, triton.language, row.size, "triton"), row, tensors)]
