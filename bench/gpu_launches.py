"""The host's time of a launch on the card: ours and Triton's, with tensors of PyTorch on it, launch after launch without a wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gpu_peers as peers
import launching
from gpu_peers import Absent
from reports import table

ROUNDS, LAUNCHES = 100, 50


def launches(asked: Any) -> tuple[list[str], bool]:
    """The lines of the page, and whether ours ran."""
    try:
        torch = peers.pytorch()
    except Absent as error:
        return [f"Not measured: {error}."], True
    rows, well = [], True
    for size in (launching.FEW, launching.MANY):
        row = launching.Row(size, "PyTorch", False)
        tensors = [torch.zeros(launching.ELEMENTS, device="cuda") for _ in launching.arrays_of(row)]
        sides = {"tilefw": _ours(row, tensors, asked.target), "Triton": _triton(row, tensors)}
        taken = _least({name: side for name, side in sides.items() if side is not None}, torch.cuda.synchronize)
        mine, theirs = taken.get("tilefw"), taken.get("Triton")
        well = well and mine is not None
        rows.append([size, *("" if one is None else f"{one:.1f}" for one in (mine, theirs)),
                     f"{mine / theirs:.2f}" if mine and theirs else ""])  # fmt: skip
    told = f"Microseconds of the host for each of {LAUNCHES} launches, one behind the other: the least mean of {ROUNDS} rounds."
    return [told, "", *table(["launch", "tilefw", "Triton", "ratio"], rows)], well


def _ours(row: launching.Row, tensors: list[Any], target: str) -> Callable[[], object]:
    import tilefw
    import tilefw.language

    kernel = launching.kernel_of(tilefw.jit, tilefw.language, row.size, "tilefw")
    return launching.call(kernel, row, tensors, target=target, executor="hw")


def _triton(row: launching.Row, tensors: list[Any]) -> Callable[[], object] | None:
    try:
        import triton
        import triton.language
    except ImportError:
        return None
    return launching.call(launching.kernel_of(triton.jit, triton.language, row.size, "triton"), row, tensors)


def _least(sides: dict[str, Callable[[], object]], wait: Callable[[], object]) -> dict[str, float]:
    """The least microseconds of each side, which take turns; the card is idle before each turn."""
    least = dict.fromkeys(sides, float("inf"))
    for side in sides.values():
        side()
    for _ in range(ROUNDS):
        for name, side in sides.items():
            wait()
            start = time.perf_counter()
            for _ in range(LAUNCHES):
                side()
            least[name] = min(least[name], (time.perf_counter() - start) / LAUNCHES * 1e6)
    return least
