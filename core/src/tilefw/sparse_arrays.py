"""Large arrays of which few pages hold anything but zeros: gigabytes that a kernel touches in few places cost few pages.

Memory that an operating system has just given reads as zeros and takes no room until it is written.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

PAGE_BYTES = 1 << 20


def page_slices(nbytes: int) -> Iterator[slice]:
    """The pages of an array of bytes, in order."""
    return (slice(start, min(start + PAGE_BYTES, nbytes)) for start in range(0, nbytes, PAGE_BYTES))


def copy_sparse(target: np.ndarray, source: np.ndarray) -> None:
    """`source` into `target`, arrays of as many bytes; pages that are zero on both sides are only read."""
    if source.size <= PAGE_BYTES:
        target[...] = source
        return
    for page in page_slices(source.size):
        if source[page].any() or target[page].any():
            target[page] = source[page]


def occupied(first: np.ndarray, second: np.ndarray, page: int) -> np.ndarray | None:
    """The indices of the elements on pages (of `page` elements) where either array holds anything but zeros.

    None for arrays of one page at most: all of them.
    """
    if first.size <= page:
        return None
    starts = [at for at in range(0, first.size, page) if first[at : at + page].any() or second[at : at + page].any()]
    pages = [np.arange(at, min(at + page, first.size)) for at in starts]
    return np.concatenate(pages) if pages else np.zeros(0, np.int64)
