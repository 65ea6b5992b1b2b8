"""A cache of keys and values in pages (Kwon et al., "Efficient Memory Management for LLM Serving", 2023), shared by programs.

The keys of a sequence lie in pages of PAGE slots, in any order; a row of the page table says where. The programs that share a
sequence have runs of whole blocks of its keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer, Launch, Parameters


@tilefw.jit
def keys_of_split(length, split, SPLITS: tl.constexpr, BLOCK_N: tl.constexpr):
    """(begin, end) of the keys of one program; there are none where begin is not below end."""
    share = tl.cdiv(length, SPLITS * BLOCK_N) * BLOCK_N
    return split * share, tl.minimum((split + 1) * share, length)


@tilefw.jit
def slots_of(pages_ptr, key, end, PAGE: tl.constexpr):
    """Where keys below `end` lie in the cache, by the sequence's row of the page table."""
    page = tl.load(pages_ptr + key // PAGE, mask=key < end, other=0)
    return page.to(tl.int64) * PAGE + key % PAGE  # slots times the size of one passes 2^31 in real caches


@dataclass(frozen=True, slots=True)
class Cache:
    """`pages` has a row for each sequence, -1 where it has no page; `slots` is of all pages, NaN where nobody's keys are."""

    slots: Buffer
    pages: Buffer
    lengths: Buffer


def draw_cache(rng: np.random.Generator, p: Parameters, slot: tuple[int, ...]) -> Cache:
    """Sequences of 0 to p["keys"] keys, of which the first has them all, in pages of p["page"] slots of this shape."""
    lengths = rng.integers(0, p["keys"], p["sequences"], endpoint=True)
    lengths[0] = p["keys"]
    used = -(-lengths // p["page"])
    order = rng.permutation(int(used.sum()) + 2)  # some pages are nobody's
    pages = np.full((p["sequences"], ceil_div(p["keys"], p["page"])), -1, np.int32)
    slots = inputs.draw(rng, p["inputs"], (order.size, p["page"], *slot), p["dtype"])
    owned = np.zeros((order.size, p["page"]), bool)
    for row, (count, length) in enumerate(zip(used, lengths, strict=True)):
        pages[row, :count], order = order[:count], order[count:]
        for index in range(count):
            owned[pages[row, index], : length - index * p["page"]] = True
    slots.array[~owned] = formats.store(np.array(np.nan), p["dtype"])
    return Cache(slots, Buffer(pages, "int32"), Buffer(lengths.astype(np.int32), "int32"))


def keys_in_order(launch: Launch, cache: str, sequence: int) -> np.ndarray:
    """The slots of argument `cache` that hold a sequence's keys, in the order of the keys, as float64."""
    buffer = launch.buffer(cache)
    length = int(launch.buffer("lengths_ptr").array[sequence])
    pages = launch.buffer("pages_ptr").array[sequence]
    slots = formats.decode(buffer.array, buffer.dtype)[pages[: ceil_div(length, slots_per_page(buffer))]]
    return slots.reshape(-1, *slots.shape[2:])[:length]


def slots_per_page(buffer: Buffer) -> int:
    return buffer.array.shape[1]


def runs(length: int, splits: int, block: int) -> list[slice]:
    """The keys of each split, as `keys_of_split` shares them out."""
    share = ceil_div(length, splits * block) * block
    return [slice(split * share, min((split + 1) * share, length)) for split in range(splits)]
