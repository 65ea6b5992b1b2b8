"""What an ordinary run takes of a long table: each kernel as it is, and every n-th of the other rows; the rest is a campaign."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import pytest


def campaign(kernels: Iterable[str], every: int) -> Iterator[Collection[pytest.MarkDecorator]]:
    """The marks of each row, of which `kernels` has the kernel: none for the first row of each and for every n-th of the others."""
    seen: set[str] = set()
    others = 0
    for kernel in kernels:
        if kernel not in seen:
            seen.add(kernel)
            yield ()
            continue
        yield () if others % every == 0 else (pytest.mark.campaign,)
        others += 1
