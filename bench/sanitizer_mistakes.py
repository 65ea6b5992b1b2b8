"""Mistakes that users make, planted in kernels of the corpus for bench/sanitizer.py: in the kernel's text, or in its host's."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from sanitizer_kernels import Subject, of_corpus

from oracles.chips import CHIPS
from oracles.corpus import Corpus

KERNELS = Path(__file__).parents[1] / "oracles" / "kernels"


@dataclass(frozen=True)
class Mistake:
    """In `kernel` (`module.function`) the text `old` is `new`; `host` changes the launch. One of the two, or both."""

    kernel: str
    what: str
    old: str = ""
    new: str = ""
    host: Callable[[Subject], Subject] = lambda subject: subject


def _grid(*grid: int) -> Callable[[Subject], Subject]:
    return lambda subject: replace(subject, grid=grid)


def _shorter(name: str, by: int) -> Callable[[Subject], Subject]:
    """The tensor of an argument, some elements shorter than the kernel believes."""
    def changed(subject: Subject) -> Subject:
        return replace(subject, arguments={**subject.arguments, name: subject.arguments[name].flatten()[:-by].clone()})
    return changed


def _far_index(subject: Subject) -> Subject:
    """One index beyond the table."""
    index = subject.arguments["index_ptr"]
    index[len(index) // 2] = 1 << 20
    return subject


def _read_on(subject: Subject) -> Subject:
    """Too few programs write the result, which the next launch reads."""
    def judge() -> str:
        given = {**subject.arguments, "x_ptr": subject.arguments["out_ptr"]}
        subject.kernel[subject.grid](**given, **subject.keywords)
        return subject.judge()
    return replace(subject, grid=(1,), judge=judge)


_STORED = "tl.store(counts_ptr + x, tl.load(counts_ptr + x, mask=at < n) + 1, mask=at < n)"
_SUMMED = "tl.store(out_ptr + column, tl.load(out_ptr + column, mask=column < columns) + tl.sum(x, axis=0), mask=column < columns)"
_WAIT = """        while tl.atomic_add(flag_ptr, 0, sem="acquire", scope="gpu") == 0:
            pass
"""
_LOCK = """    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
"""
MISTAKES = (
    Mistake("pointwise.vector_add", "a load without its mask", "tl.load(x_ptr + offsets, mask=inside)", "tl.load(x_ptr + offsets)"),
    Mistake("pointwise.vector_add", "a store without its mask", "x + y, mask=inside)", "x + y)"),
    Mistake("pointwise.vector_add", "one element too many", "offsets < n", "offsets <= n"),
    Mistake("pointwise.vector_add", "too small a grid, its result read by the next launch", host=_read_on),
    Mistake(
        "pointwise.gelu_erf", "the row below the last one",
        "residual_ptr + row * columns", "residual_ptr + (row + 1) * columns",
    ),
    Mistake("pointwise.gelu_tanh", "a tensor shorter than its size says", host=_shorter("x_ptr", 8)),
    Mistake(
        "pointwise.swiglu_bf16", "elements read as words of twice their width", "up_ptr + offsets,",
        "up_ptr.to(tl.pointer_type(tl.float32)) + offsets,",
    ),
    Mistake("pointwise.quantise_rows", "a scale for each column instead of the row's", "scale_ptr + row", "scale_ptr + offsets"),
    Mistake(
        "pointwise.doubled_in_place", "a neighbour's element, which another wave changes",
        "tl.load(x_ptr + offsets)", "tl.load(x_ptr + (offsets + 33) % BLOCK)",
    ),
    Mistake("pointwise.doubled_in_place", "one program too many", host=_grid(64)),
    Mistake("reduction.softmax", "the stride of another tensor", "x_ptr + row * stride", "x_ptr + row * (stride + 64)"),
    Mistake(
        "reduction.layer_norm", "a result read before it is stored",
        "    mean = tl.sum(total, axis=0) / columns", "    mean = tl.load(mean_ptr + row)",
    ),
    Mistake("reduction.rms_norm", "rows beyond the last one", "(row < rows) & (column < columns)", "(column < columns)"),
    Mistake("reduction.arg_extremes", "all programs store to one place", "tl.store(max_ptr + row,", "tl.store(max_ptr,"),
    Mistake(
        "reduction.column_sums", "a sum over programs that is not atomic",
        "tl.atomic_add(out_ptr + column, tl.sum(x, axis=0), mask=column < columns)", _SUMMED,
    ),
    Mistake(
        "reduction.row_sums", "the program's number forgotten",
        "tl.store(out_ptr + row,", "tl.store(out_ptr + tl.arange(0, ROWS),",
    ),
    Mistake(
        "reduction.cumulative_sum", "a store without its mask",
        "tl.cumsum(x, axis=1), mask=row < rows)", "tl.cumsum(x, axis=1))",
    ),
    Mistake(
        "movement.transpose", "columns beyond the last one", "mask=(row[:, None] < rows) & (column[None, :] < columns), other=0.0",
        "mask=row[:, None] < rows, other=0.0",
    ),
    Mistake("movement.weave", "blocks that overlap", "wide = 2 * base", "wide = base"),
    Mistake("movement.embedding", "an index beyond the table", host=_far_index),
    Mistake("movement.atomic_histogram", "fewer counters than bins", host=_shorter("counts_ptr", 4)),
    Mistake(
        "movement.scatter_counts", "a count that is not atomic",
        'tl.atomic_add(counts_ptr + x, 1, mask=at < n, sem="relaxed")', _STORED,
    ),
    Mistake(
        "movement.ticket", "a ticket that is not atomic", "mine = tl.atomic_add(slots_ptr, 1)\n",
        "mine = tl.load(slots_ptr)\n    tl.store(slots_ptr, mine + 1)\n",
    ),
    Mistake("movement.locked_sum", "no lock", _LOCK, ""),
    Mistake(
        "movement.locked_sum", "a lock taken without acquire",
        "tl.atomic_cas(lock_ptr, 0, 1)", 'tl.atomic_cas(lock_ptr, 0, 1, sem="relaxed")',
    ),
    Mistake(
        "movement.locked_sum", "a lock given back without release",
        "tl.atomic_xchg(lock_ptr, 0)", 'tl.atomic_xchg(lock_ptr, 0, sem="relaxed")',
    ),
    Mistake("movement.split_k", "partial products stored instead of added", "tl.atomic_add(c_ptr", "tl.store(c_ptr"),
    Mistake("control.hand_over", "a block read without waiting for its flag", _WAIT, ""),
    Mistake(
        "control.hand_over", "a flag raised without release",
        'tl.atomic_xchg(flag_ptr, 1, sem="release"', 'tl.atomic_xchg(flag_ptr, 1, sem="relaxed"',
    ),
    Mistake("control.calls", "fewer seeds than programs", host=_shorter("seeds_ptr", 1)),
    Mistake("matrix.matmul", "the stride of the other operand", "b_at += TILE_K * stride_b", "b_at += TILE_K * stride_b * 2"),
    Mistake("matrix.batched_matmul", "the batch forgotten where the result is stored", "c_ptr + batch * M * N + ", "c_ptr + "),
    Mistake(
        "matrix.grouped_matmul", "rows of the next group",
        "total.to(tl.float16), mask=row[:, None] < last)", "total.to(tl.float16))",
    ),
    Mistake(
        "matrix.attention", "keys beyond the last one",
        "lane[None, :], mask=at[:, None] < length, other=0.0)\n        score", "lane[None, :])\n        score",
    ),
)


def mistakes(target: str) -> Iterator[tuple[str, str, Callable[[], Subject]]]:
    """The kernel, the mistake, and what makes the launch of it."""
    cases = {}
    for case in Corpus(next(chip for chip in CHIPS if chip.target == target)).cases():
        cases.setdefault(case.kernel, case)
    for mistake in MISTAKES:
        yield mistake.kernel, mistake.what, partial(_planted, mistake, cases[mistake.kernel])


def _planted(mistake: Mistake, case: Any) -> Subject:
    return mistake.host(of_corpus(case, _changed(mistake) if mistake.old else None))


def _changed(mistake: Mistake) -> Any:
    """The kernel of a copy of its module with the mistake in it."""
    group, _, function = mistake.kernel.partition(".")
    text = (KERNELS / f"{group}.py").read_text("utf-8")
    before, begin, rest = text.partition(f"def {function}(")
    body, end, after = rest.partition("\n\n\n")
    if body.count(mistake.old) != 1:
        raise SystemExit(f"{mistake.kernel} has {mistake.old!r} {body.count(mistake.old)} times, not once")
    with tempfile.NamedTemporaryFile("w", suffix=".py", prefix=f"{group}_", delete=False) as file:
        file.write(before + begin + body.replace(mistake.old, mistake.new) + end + after)
    spec = importlib.util.spec_from_file_location(Path(file.name).stem, file.name)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, function)
