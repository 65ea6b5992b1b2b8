"""Python's cyclic collector, paused while a kernel is compiled or machine code is decoded.

IR is a web of cycles that lives until the compile ends, a decoded program lives as long as its module: each collection in between
walks it and frees next to nothing. So much of it survives that Python goes on to full collections, which walk everything else in
the process too: with PyTorch loaded, one of them takes as long as half a compile of attention.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """No collections inside. Leaves the collector off where the caller had it off.

    The switch is the process's: of two threads that compile at once, the first to come switches it on again when it is done.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
