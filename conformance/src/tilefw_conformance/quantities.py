"""Counts, times, sizes and parts as a user writes them in options."""

from __future__ import annotations

import argparse
import math
import os
import re

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def count(text: str) -> int:
    """A number of processes, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of processes")
    return int(text)


def seconds(text: str) -> float:
    """A time above 0, in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return value


def size(text: str) -> int:
    """Bytes: `512M`, `4G`, `4GiB`, or a plain number of bytes."""
    found = re.fullmatch(r"(\d+)([KMGT]?)(?:i?B)?", text, re.IGNORECASE)
    if found is None or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size such as 512M or 4G")
    return int(found[1]) << _UNITS[found[2].upper()]


def part(text: str) -> tuple[int, int]:
    """`1/4`: the first of four parts."""
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if found is None or int(found[1]) > int(found[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is not a part such as 1/4, the first of four")
    return int(found[1]), int(found[2])


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
