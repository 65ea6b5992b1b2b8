"""What `torch.cuda` says of a GPU's memory: it is the host's, and none of it is counted as a program's own."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from typing import Any


def _bytes_of(pages: str) -> int | None:
    """As many pages as the system says under this name; None where it has no such name."""
    names = getattr(os, "sysconf_names", {})
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE") if pages in names and "SC_PAGE_SIZE" in names else None


def total() -> int:
    """Bytes of the host's memory; 0 on a system that does not say."""
    return _bytes_of("SC_PHYS_PAGES") or 0


def free_and_total(device: Any = None) -> tuple[int, int]:
    """Bytes that are free, and all; all of them are free on a system that does not say."""
    free, whole = _bytes_of("SC_AVPHYS_PAGES"), total()
    return whole if free is None else free, whole


def _none(*args: Any, **keywords: Any) -> int:
    return 0


def _nothing(*args: Any, **keywords: Any) -> None: ...


def statistics(device: Any = None) -> dict[str, int]:
    """Each of PyTorch's counts by its name: 0."""
    return defaultdict(int)


# Names of `torch.cuda` and of `torch.cuda.memory`.
ANSWERS: Mapping[str, Any] = {
    **dict.fromkeys(
        (
            "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "memory_allocated", "memory_cached",
            "memory_reserved",
        ),
        _none,
    ),
    **dict.fromkeys(
        (
            "empty_cache", "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
            "reset_peak_memory_stats", "set_per_process_memory_fraction",
        ),
        _nothing,
    ),
    "mem_get_info": free_and_total, "memory_snapshot": lambda *args, **keywords: [], "memory_stats": statistics,
    "memory_stats_as_nested_dict": statistics, "memory_summary": lambda *args, **keywords: "",
}
