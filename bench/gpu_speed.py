"""Matrix products and attention on the card: ours by the best of a few tiles, beside the vendor's libraries and Triton.

Times are medians of the card's own clock around the kernel alone, each after the caches were emptied. Before it is timed, each
result of ours is checked: rows drawn at random against NumPy in double precision, within the bound of a sum of rounded products.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import gpu_peers as peers
import gpu_timing
import numpy as np
from gpu_arrays import Flush, OnCard
from gpu_timing import BETWEEN
from gpu_vendors import VENDORS
from library import Work
from reports import table

from tilefw.api.dtypes import dtype
from tilefw.kernels import formats
from tilefw.kernels.spec import Launch

_HEAD = 128
_ROWS = 4  # of a result that are checked


class SameDraws:
    """A generator for the launches of one problem: each gets the same numbers, which are drawn and rounded to their type once."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self._drawn: list[np.ndarray] = []
        self._stored: dict[tuple[int, str], np.ndarray] = {}
        self._at = 0

    def launch(self, work: Work) -> Launch:
        """The launch of one tiling."""
        self._at = 0
        rng: Any = self
        with mock.patch.object(formats, "store", partial(self._store, formats.store)):
            return work.spec.prepare(work.spec.resolve(work.parameters), rng)

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        if self._at == len(self._drawn):
            self._drawn.append(self._rng.standard_normal(shape))
        self._at += 1
        return self._drawn[self._at - 1]

    def __getattr__(self, name: str) -> Any:
        """Any other kind of number is drawn anew."""
        return getattr(self._rng, name)

    def _store(self, store: Callable[[np.ndarray, str], np.ndarray], values: np.ndarray, name: str) -> np.ndarray:
        """Rounding 67 million numbers takes half a minute in one thread; an array that is drawn here is never given back."""
        key = id(values), name
        if key not in self._stored:
            with ThreadPoolExecutor() as pool:
                parts = list(pool.map(lambda part: store(part, name), np.array_split(values.reshape(-1), 64)))
            self._stored[key] = np.concatenate(parts).reshape(values.shape)
        return self._stored[key]


@dataclass(frozen=True)
class Subject:
    """What is measured: one problem in several tilings, the floating-point operations of it, and peers by name."""

    shown: str
    works: tuple[Work, ...]
    operations: float
    peers: Mapping[str, peers.Made]
    check: Callable[[Launch, np.ndarray], float]


def products(asked: Any) -> tuple[list[str], bool]:
    vendor = VENDORS[asked.vendor]
    tiles = [tile for tile in asked.tiles if tile.count("x") == 2] or vendor.product_tiles
    subjects = [
        Subject(
            f"{name}, {size}³", tuple(_product(size, name, tile) for tile in tiles), 2.0 * size**3, vendor.products(),
            product_error,
        )
        for name in ("fp16", "bf16") for size in asked.sizes
    ]  # fmt: skip
    return _compared(asked, subjects)


def _product(size: int, name: str, tile: str) -> Work:
    (m, n, k), options = _tile(tile)
    sizes = {"m": size, "n": size, "k": size, "dtype": name}
    return Work("matmul", {**sizes, "block_m": m, "block_n": n, "block_k": k, **options}, label=tile)


def _tile(text: str) -> tuple[list[int], dict[str, int]]:
    """`MxNxK/warps/stages`: the extents, and the launch's options."""
    shape, warps, stages = (*text.split("/"), "", "")[:3]
    return [int(extent) for extent in shape.split("x")], {"num_warps": int(warps or 4), "num_stages": int(stages or 2)}


def attention(asked: Any) -> tuple[list[str], bool]:
    vendor = VENDORS[asked.vendor]
    subjects = []
    tiles = [tile for tile in asked.tiles if tile.count("x") == 1] or vendor.attention_tiles
    for length in asked.lengths:
        for causal in (False, True):
            made = tuple(_attention(asked.heads, length, causal, tile) for tile in tiles)
            work = 4.0 * asked.heads * _HEAD * length**2 * (0.5 if causal else 1.0)
            shown = f"{asked.heads} heads of {_HEAD}, {length} keys" + (", causal" if causal else "")
            subjects.append(Subject(shown, made, work, vendor.attention(causal), attention_error))
    return _compared(asked, subjects)


def _attention(heads: int, length: int, causal: bool, tile: str) -> Work:
    (m, n), options = _tile(tile)
    sizes = {"heads": heads, "kv_heads": heads, "queries": length, "keys": length, "head_size": _HEAD}
    return Work("attention", {**sizes, "causal": causal, "block_m": m, "block_n": n, **options}, label=tile)


def _compared(asked: Any, subjects: Sequence[Subject]) -> tuple[list[str], bool]:
    flush = Flush(asked.card, asked.target, asked.flush_bytes)
    rows, notes, well = [], dict[str, str](), True
    columns = [*subjects[0].peers, *triton_columns(asked.vendor)]
    try:
        for subject in subjects:
            print(f"  {subject.shown}", file=sys.stderr)
            on_card: list[OnCard] = []
            try:
                error, best = _measured(asked, subject, on_card, flush, notes)
            finally:
                for arrays in on_card:
                    arrays.free()
            well = well and error is not None and error <= 1
            rows.append([subject.shown, *_cells(subject, error, best, columns)])
    finally:
        flush.free()
    heading = ["problem", "tilefw", "tile", "error over bound", *columns, "of the best"]
    lines = ["TFLOP/s by medians of the card's clock; the last column is ours over the fastest peer.", "", *table(heading, rows)]
    if notes:
        lines += ["", *(f"- {name}: {reason}" for name, reason in notes.items())]
    return lines, well


def triton_columns(vendor: str) -> dict[str, str | None]:
    """What Triton is asked for, by the column's name: code for the card, and for an earlier chip where that is another matter."""
    chip = VENDORS[vendor].triton_chip
    return {"Triton": None, **({f"Triton for {chip}": chip} if chip else {})}


@dataclass(frozen=True)
class Best:
    """The fastest tiling of one side, and its seconds."""

    seconds: float
    tile: str


def _measured(
    asked: Any, subject: Subject, on_card: list[OnCard], flush: Flush, notes: dict[str, str]
) -> tuple[float | None, dict[str, Best]]:
    """The largest error of ours over its bound, None where none of ours ran; and of each side the best of its tilings."""
    draws, worst = SameDraws(), None
    launches = [(work, draws.launch(work)) for work in subject.works]
    candidates: dict[str, gpu_timing.Timed] = {}
    for name, make in subject.peers.items():
        candidates[name] = gpu_timing.theirs(partial(_peer, make, launches[0][1]))
    for work, launch in launches:
        on_card.append(OnCard(asked.card, launch))
        candidates[f"tilefw{BETWEEN}{work.shown}"] = gpu_timing.ours(work, launch, on_card[-1], asked.target)
        for name, chip in triton_columns(asked.vendor).items():
            candidates[f"{name}{BETWEEN}{work.shown}"] = gpu_timing.triton(work, launch, chip)
    found = gpu_timing.medians(candidates, flush, asked.rounds, notes)
    for (work, launch), arrays in zip(launches, on_card, strict=True):
        if f"tilefw{BETWEEN}{work.shown}" in found:
            error = subject.check(launch, arrays.arrays["out_ptr"].get())
            worst = error if worst is None else max(worst, error)
    best: dict[str, Best] = {}
    for candidate, seconds in found.items():
        side, _, tile = candidate.partition(BETWEEN)
        if side not in best or seconds < best[side].seconds:
            best[side] = Best(seconds, tile)
    return worst, best


def _peer(make: peers.Made, launch: Launch) -> peers.Call:
    return make(peers.tensors(launch))


def _cells(subject: Subject, error: float | None, best: Mapping[str, Best], columns: Sequence[str]) -> Iterator[str]:
    def rate(side: str) -> str:
        return f"{subject.operations / best[side].seconds / 1e12:.4g}" if side in best else ""

    ours = best.get("tilefw")
    yield from (rate("tilefw"), "" if ours is None else ours.tile, "" if error is None else f"{error:.2f}")
    yield from map(rate, columns)
    fastest = min((one.seconds for side, one in best.items() if side != "tilefw"), default=None)
    yield f"{fastest / ours.seconds:.2f}" if fastest is not None and ours is not None else ""


# -- is it right? -----------------------------------------------------------------------------------------------------------------


def product_error(launch: Launch, out: np.ndarray) -> float:
    """The largest error of a few rows over its bound: a sum of k products of exact factors in single precision, in any order, is
    off by k units of 2^-24 of the sum of magnitudes at most (Higham, "Accuracy and Stability", section 3.1), and is then rounded
    once."""
    name = launch.buffer("out_ptr").dtype
    rows = _some_rows(out.shape[0])
    a, b = (formats.decode(launch.buffer(which).array, name) for which in ("a_ptr", "b_ptr"))
    exact, size = a[rows] @ b, np.abs(a[rows]) @ np.abs(b)
    bound = a.shape[1] * 2.0**-24 * size
    bound += (np.abs(exact) + bound) * _half_unit(name)
    return float(np.max(np.abs(formats.decode(out[rows], name) - exact) / bound))


def attention_error(launch: Launch, out: np.ndarray) -> float:
    """The same for rows of the first head: weights are rounded to the operands' type, which is what matters, and the result is."""
    name = launch.buffer("out_ptr").dtype
    rows = _some_rows(out.shape[2])
    q, k, v = (formats.decode(launch.buffer(which).array[0, 0], name) for which in ("q_ptr", "k_ptr", "v_ptr"))
    scale = launch.arguments["scale"]
    assert isinstance(scale, float)
    scores = q[rows] @ k.T * scale
    if launch.constexprs["CAUSAL"]:
        scores = np.where(np.arange(k.shape[0]) <= np.array(rows)[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    share = weights / weights.sum(axis=1, keepdims=True)
    exact, size = share @ v, share @ np.abs(v)
    # Of a weight: its score's sum, the exponential of that, the rounding to the operands' type, its part in two sums.
    of_scores = q.shape[1] * 2.0**-24 * np.max(np.abs(q[rows]) @ np.abs(k).T * scale)
    bound = size * 2 * (of_scores + _half_unit(name) + (k.shape[0] + 8) * 2.0**-24)
    bound += (np.abs(exact) + bound) * _half_unit(name)
    return float(np.max(np.abs(formats.decode(out[0, 0][rows], name) - exact) / bound))


def _some_rows(count: int) -> list[int]:
    return sorted(np.random.default_rng(1).choice(count, min(_ROWS, count), replace=False).tolist())


def _half_unit(name: str) -> float:
    """Half a unit in the last place, relative."""
    return 2.0 ** -(dtype(name).mantissa_bits + 1)
