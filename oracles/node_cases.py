"""On what each collective's code is tried when it is broken: few ranks, a tile or two of data, two waves; a run takes some 0.3 s.

As much as every part of the code needs to run once: two ranks, of rings as many as forward what they were sent and have a reader
behind that; a block that is not whole; as many steps of a product as its pipeline is long; slots that are used again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oracles.meeting_subject import MEETING
from tilefw.kernels.distributed.index import COLLECTIVES
from tilefw.kernels.distributed.rank_results import Arrays, normal

Draw = Callable[[np.random.Generator, int], tuple[Arrays, ...]]
KERNELS = {**COLLECTIVES, MEETING.name: MEETING}
_VECTORS = {"num_warps": 2, "programs": 1, "block": 128}  # elements for both waves, of 32 lanes or of 64
_TILES = {"num_warps": 2, "programs": 1, "block": 16}
_TILE = 16
_PART = 28  # an extent that ends within a tile, in the part of its second wave: its loads are guarded, and do not run ahead
_TERMS = 40  # of products whose loads run ahead: three steps
# All that programs of other ranks are told here is that they meet, at both ends.
_MEETINGS_ALONE = ("rmsnorm_all_reduce",)
MEETING_TRIED = ("all_gather", "all_reduce", "all_to_all", "reduce_scatter", MEETING.name)
"""Where the sites of the meeting at a kernel's ends are tried: it is one function, and its code is the same in all."""
FORMS = tuple(
    f"{name}.{form}" for name, one in KERNELS.items() for form in one.forms if name not in _MEETINGS_ALONE and form != "bulk"
)
"""Those that are tried. In bulk, one launch follows another on all ranks, which orders all, or is another collective's."""


@dataclass(frozen=True)
class NodeCase:
    """A node's ranks, what `draw(generator, ranks)` gives to each, and the keywords of the launches."""

    ranks: int
    draw: Draw
    launch: Mapping[str, Any]


def node_case(kernel: str, form: str) -> NodeCase:
    """The case of a form of a kernel of `KERNELS`."""
    return _OF_FORM.get(f"{kernel}.{form}") or _OF_KERNEL[kernel]


def _drawn(kernel: str, n: int) -> Draw:
    return lambda rng, ranks: KERNELS[kernel].draw(rng, ranks, n, "float32")


def _products(rows: int, ranks_rows: bool = False, same: bool = False) -> Draw:
    """A of so many rows, for each rank where `ranks_rows` says so, and B, the same one for all where `same` does."""

    def draw(rng: np.random.Generator, ranks: int) -> tuple[Arrays, ...]:
        a = normal(rng, ranks, (rows * ranks if ranks_rows else rows, _TERMS), "float16")
        b = normal(rng, ranks, (_TERMS, _TILE), "float16")
        return a, b[:1] * ranks if same else b

    return draw


def _attention(rng: np.random.Generator, ranks: int) -> tuple[Arrays, ...]:
    q, k, v = (normal(rng, ranks, (1, _TILE, _PART), "float16") for _ in range(3))
    return q, k, v


def _keys(rng: np.random.Generator, ranks: int) -> tuple[Arrays, ...]:
    q = normal(rng, 1, (1, _TILE, _PART), "float16") * ranks
    k, v = (normal(rng, ranks, (1, 1, 12, _PART), "float16") for _ in range(2))
    return q, k, v, list(rng.integers(1, 13, (ranks, 1)).astype(np.int32))


def _batches(rng: np.random.Generator, ranks: int) -> tuple[Arrays, ...]:
    """Two more than there are slots: a signal too many lets a batch in too early."""
    w = [(part / 4).astype(part.dtype) for part in normal(rng, ranks, (_PART, _PART), "float16")]
    return normal(rng, ranks, (3, _TILE, _PART), "float16"), w


def _experts(rng: np.random.Generator, ranks: int) -> tuple[Arrays, ...]:
    """One a rank, and a row for each of them at least; of the last tile of columns both waves have some."""
    rows, d = max(ranks, 3), 76
    chosen = [((np.arange(rows) + rank) % ranks).astype(np.int32)[:, None] for rank in range(ranks)]
    weights = [rng.random((rows, 1)).astype(np.float32) + 0.5 for _ in range(ranks)]
    return normal(rng, ranks, (rows, d), "float16"), chosen, weights, normal(rng, ranks, (1, d, d), "float16")


_OF_KERNEL = {
    **{name: NodeCase(2, _drawn(name, 100), _VECTORS) for name in ("all_gather", "all_reduce", "all_to_all", "reduce_scatter")},
    MEETING.name: NodeCase(2, _drawn(MEETING.name, 100), _VECTORS),
    "all_gather_matmul": NodeCase(2, _products(_TILE, same=True), _TILES),
    "matmul_reduce_scatter": NodeCase(2, _products(_TILE, ranks_rows=True), _TILES),
    "matmul_all_reduce": NodeCase(2, _products(2 * _TILE), _TILES),
    "rmsnorm_all_reduce": NodeCase(2, _drawn("rmsnorm_all_reduce", 7), {"num_warps": 2, "programs": 1}),
    "ring_attention": NodeCase(3, _attention, _TILES),
    "distributed_decode": NodeCase(2, _keys, _TILES),
    "pipeline_send_recv": NodeCase(2, _batches, {**_TILES, "slots": 1}),
    "moe_dispatch_combine": NodeCase(2, _experts, _TILES),
}
# Of three ranks, what the ring forwards once is read by nobody but those who have met behind it.
_OF_FORM = {"all_reduce.ring": NodeCase(4, _drawn("all_reduce", 450), _VECTORS)}
