"""On what each collective's code is tried when it is broken: few ranks, a few tiles of data, two waves; a run takes some 0.2 s.

As much as every part of the code needs to run once: two ranks, of rings as many as forward what they were sent and have a reader
behind that; a block that is not whole; as many steps of a product as its pipeline is long; slots that are used again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracles.meeting_subject import MEETING
from tilefw.kernels.distributed import moe_dispatch_combine
from tilefw.kernels.distributed.index import COLLECTIVES
from tilefw.kernels.distributed.rank_results import Arrays, normal

Draw = Callable[[np.random.Generator, int], tuple[Arrays, ...]]
KERNELS = {**COLLECTIVES, MEETING.name: MEETING}
_VECTORS = {"num_warps": 2, "programs": 1, "block": 128}  # elements for both waves, of 32 lanes or of 64
_TILES = {"num_warps": 2, "programs": 1, "block": 16}
_ROWS, _TERMS, _COLUMNS = 20, 40, 16


@dataclass(frozen=True)
class NodeCase:
    """A node's ranks, what `draw(generator, ranks)` gives to each, and the keywords of the launches."""

    ranks: int
    draw: Draw
    launch: Mapping[str, Any]


def node_case(kernel: str, form: str) -> NodeCase:
    """The case of a form of a kernel of `KERNELS`."""
    return _OF_FORM.get(f"{kernel}.{form}") or _OF_KERNEL[kernel]


def _drawn(kernel: str, n: int, dtype: str = "float32") -> Draw:
    return lambda rng, ranks: KERNELS[kernel].draw(rng, ranks, n, dtype)


def _products(rows: int, ranks_rows: bool = False, same: bool = False) -> Draw:
    """A of so many rows, for each rank where `ranks_rows` says so, and B, the same one for all where `same` does."""

    def draw(rng: np.random.Generator, ranks: int) -> tuple[Arrays, ...]:
        a = normal(rng, ranks, (rows * ranks if ranks_rows else rows, _TERMS), "float16")
        b = normal(rng, ranks, (_TERMS, _COLUMNS), "float16")
        return a, b[:1] * ranks if same else b

    return draw


def _attention(rng: np.random.Generator, ranks: int) -> tuple[Arrays, ...]:
    q, k, v = (normal(rng, ranks, (1, _ROWS, 24), "float16") for _ in range(3))
    return q, k, v


def _batches(rng: np.random.Generator, ranks: int) -> tuple[Arrays, ...]:
    k = 24
    w = [(part / np.sqrt(k)).astype(part.dtype) for part in normal(rng, ranks, (k, k), "float16")]
    return normal(rng, ranks, (5, 16, k), "float16"), w


def _experts(rng: np.random.Generator, ranks: int) -> tuple[Arrays, ...]:
    d = 24
    _, chosen, weights, _ = moe_dispatch_combine.draw(rng, ranks, 6, "float16")
    return normal(rng, ranks, (6, d), "float16"), chosen, weights, normal(rng, ranks, (2, d, d), "float16")


_OF_KERNEL = {
    **{name: NodeCase(2, _drawn(name, 100), _VECTORS) for name in ("all_gather", "all_reduce", "all_to_all", "reduce_scatter")},
    MEETING.name: NodeCase(2, _drawn(MEETING.name, 100), _VECTORS),
    "all_gather_matmul": NodeCase(2, _products(_ROWS, same=True), _TILES),
    "matmul_reduce_scatter": NodeCase(2, _products(_ROWS, ranks_rows=True), _TILES),
    "matmul_all_reduce": NodeCase(2, _products(_ROWS), _TILES),
    "rmsnorm_all_reduce": NodeCase(2, _drawn("rmsnorm_all_reduce", 7), {"num_warps": 2, "programs": 1}),
    "ring_attention": NodeCase(3, _attention, _TILES),
    "distributed_decode": NodeCase(2, _drawn("distributed_decode", _ROWS, "float16"), _TILES),
    "pipeline_send_recv": NodeCase(2, _batches, _TILES),
    "moe_dispatch_combine": NodeCase(2, _experts, _TILES),
}
# In bulk, these launch another collective, and beside it a kernel that says nothing to other ranks.
_OF_OTHERS = (
    "all_gather_matmul", "matmul_reduce_scatter", "matmul_all_reduce", "rmsnorm_all_reduce", "ring_attention", "distributed_decode",
)
FORMS = tuple(
    f"{name}.{form}" for name, one in KERNELS.items() for form in one.forms if not (form == "bulk" and name in _OF_OTHERS)
)
# Of three ranks, what the ring forwards once is read by nobody but those who have met behind it.
_OF_FORM = {"all_reduce.ring": NodeCase(4, _drawn("all_reduce", 450), _VECTORS)}
