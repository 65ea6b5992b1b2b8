"""What an ordinary run takes of a long table: each kernel as it is, each operation, kind and format of those that have several, and
every n-th of the other rows, which differ in shape or options; the rest is a campaign."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import pytest

# The parameters that say what such a kernel does: with other values it is made of other instructions.
_SAYING = {
    **dict.fromkeys(("elementwise", "reduce_tile", "scan_tile", "rearrange", "sort_tile"), ("operation",)),
    "atomic_mix": ("operation", "dtype"), "chained_sum": ("wait",),
    "dot_tile": ("a_dtype",), "dot_scaled_tile": ("a_format",), "gather_tile": ("axis",), "random_numbers": ("kind",),
}


def campaign(
    rows: Iterable[tuple[str, Mapping[str, object]]], every: int, *, by_kind: bool
) -> Iterator[Collection[pytest.MarkDecorator]]:
    """The marks of each row, a kernel with parameters: none for the first row of each kernel, with `by_kind` of each thing that
    it does, and for every n-th of the others."""
    seen: set[tuple[object, ...]] = set()
    others = 0
    for kernel, parameters in rows:
        done = (kernel, *map(parameters.get, _SAYING.get(kernel, ()) if by_kind else ()))
        if done not in seen:
            seen.add(done)
            yield ()
            continue
        yield () if others % every == 0 else (pytest.mark.campaign,)
        others += 1
