"""Matrix products and attention on the card: ours by the best of a few tiles, beside the vendor's libraries and Triton.

Times are medians of the card's own clock around the kernel alone, each after the caches were emptied. Before it is timed, each
result of ours is checked: rows drawn at random against NumPy in double precision, within the bound of a sum of rounded products.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import gpu_peers as peers
import numpy as np
from gpu_arrays import Flush, OnCard
from gpu_peers import Absent
from gpu_vendors import VENDORS
from library import Work
from reports import table

from tilefw.api import KernelError
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
    names = list(subjects[0].peers)
    tritons = triton_columns(asked.vendor)
    try:
        for subject in subjects:
            print(f"  {subject.shown}", file=sys.stderr)
            draws = SameDraws()
            ours = _ours(asked, subject, draws, flush)
            well = well and ours.error is not None and ours.error <= 1
            theirs = {name: _peer(subject, name, draws, flush, asked.rounds, notes) for name in names}
            for name, chip in tritons.items():
                theirs[name] = _triton(subject, name, chip, draws, flush, asked.rounds, notes)
            rows.append([subject.shown, *_cells(subject, ours, theirs)])
    finally:
        flush.free()
    heading = ["problem", "tilefw", "tile", "error over bound", *names, *tritons, "of the best"]
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
    """Our fastest tiling: seconds, which one, and how large its error is over its bound; None where none ran."""

    seconds: float | None
    tile: str
    error: float | None


def _ours(asked: Any, subject: Subject, draws: SameDraws, flush: Flush) -> Best:
    best, worst = Best(None, "", None), None
    for work in subject.works:
        launch = draws.launch(work)
        on_card = OnCard(asked.card, launch)
        keywords = {**launch.constexprs, **launch.keywords, "target": asked.target, "executor": "hw"}
        try:
            work.spec.kernel[launch.grid](**on_card.arguments, **keywords).wait()
            error = subject.check(launch, on_card.arrays["out_ptr"].get())
            taken = [_once(work, launch, on_card, keywords, flush) for _ in range(asked.rounds)]
        except KernelError as failure:
            print(f"    {work.shown}: {failure.message}", file=sys.stderr)
            continue
        finally:
            on_card.free()
        worst = error if worst is None else max(worst, error)
        seconds = statistics.median(taken)
        if best.seconds is None or seconds < best.seconds:
            best = Best(seconds, work.shown, None)
    return Best(best.seconds, best.tile, worst)


def _once(work: Work, launch: Launch, on_card: OnCard, keywords: Mapping[str, Any], flush: Flush) -> float:
    flush()
    return work.spec.kernel[launch.grid](**on_card.arguments, **keywords).times["execute"]


def _peer(
    subject: Subject, name: str, draws: SameDraws, flush: Flush, rounds: int, notes: dict[str, str]
) -> float | None:
    try:
        peers.pytorch()  # before arrays are made
        return peers.seconds(subject.peers[name](peers.tensors(draws.launch(subject.works[0]))), flush, rounds)
    except Absent as error:
        notes[name] = str(error)
    except Exception as error:  # another project's code: what it says is told
        notes[name] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return None


def _triton(
    subject: Subject, name: str, chip: str | None, draws: SameDraws, flush: Flush, rounds: int, notes: dict[str, str]
) -> float | None:
    """The best of the same tilings."""
    found = []
    for work in subject.works:
        try:
            peers.pytorch()
            launch = draws.launch(work)
            found.append(peers.seconds(peers.triton(work.spec, launch, peers.tensors(launch), chip), flush, rounds))
        except Absent as error:
            notes[name] = str(error)
            break
        except Exception as error:
            notes[f"{name}, {work.shown}"] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return min(found, default=None)


def _cells(subject: Subject, ours: Best, theirs: Mapping[str, float | None]) -> Iterator[str]:
    def rate(seconds: float | None) -> str:
        return "" if not seconds else f"{subject.operations / seconds / 1e12:.4g}"

    yield from (rate(ours.seconds), ours.tile, "" if ours.error is None else f"{ours.error:.2f}")
    yield from map(rate, theirs.values())
    fastest = min((seconds for seconds in theirs.values() if seconds), default=None)
    yield f"{fastest / ours.seconds:.2f}" if fastest and ours.seconds else ""


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
