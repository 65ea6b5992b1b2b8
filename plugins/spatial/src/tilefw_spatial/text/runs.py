"""Numbers as runs: `0+64*12` is twelve numbers from 0 by 64, `7` is one. Bytes as runs of equal elements: `0000803f*320`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.text.source import DIRECTIVE, TextSpan

_RUN = re.compile(r"(-?\d{1,19})(?:([+-]\d{1,19})\*(\d{1,9}))?")
_HEX = re.compile(r"((?:[0-9a-f]{2})+)(?:\*(\d{1,9}))?")
_SHORTEST = 3


def numbers_text(values: Sequence[int] | NDArray[np.integer[Any]]) -> str:
    """The numbers, each of 64 bits, with commas between."""
    numbers = np.asarray(values, np.int64)
    if numbers.size and (int(numbers.max()) - int(numbers.min())) >> 63:
        numbers = numbers.astype(object)  # steps would wrap
    return ",".join(_runs(numbers))


def _runs(numbers: NDArray[Any]) -> Iterator[str]:
    """A Python step a run, however long it is: offsets are millions of numbers in few runs."""
    steps = np.diff(numbers)
    lasts = [*np.flatnonzero(steps[1:] != steps[:-1]) + 1, len(numbers) - 1]  # the last number of each stretch of one step
    at = 0
    for last in lasts:
        if last - at + 1 >= _SHORTEST:
            yield f"{numbers[at]}{steps[at]:+d}*{last - at + 1}"
            at = last + 1
        while at < last or (at == last and last == len(numbers) - 1):
            yield str(numbers[at])
            at += 1


def read_numbers(span: TextSpan, count: int) -> list[int]:
    """`count` numbers, each of 64 bits. Raises Fault."""
    found: list[int] = []
    for item in span.split():
        match = _RUN.fullmatch(item.text)
        if match is None:
            raise item.fault(f"{item.text[:40]!r} is neither a number nor a run, as 0+64*12")
        first, step, times = int(match[1]), int(match[2] or 0), int(match[3] or 1)
        if len(found) + times > count:
            raise item.fault(f"more than the {count} numbers that there are", DIRECTIVE)
        last = first + step * max(times - 1, 0)
        if not all(-(1 << 63) <= value < 1 << 63 for value in (first, last)):
            raise item.fault(f"{item.text} does not fit 64 bits", DIRECTIVE)
        found += [first + step * i for i in range(times)]
    if len(found) != count:
        raise span.fault(f"{len(found)} numbers instead of {count}", DIRECTIVE)
    return found


def bytes_text(data: bytes, size: int) -> str:
    """Elements of `size` bytes, equal neighbours as a run."""
    elements = [data[at : at + size] for at in range(0, len(data), size)]
    parts: list[str] = []
    single = ""
    for element, its in groupby(elements):
        times = len(list(its))
        if times < _SHORTEST:
            single += element.hex() * times
            continue
        parts += [single] if single else []
        parts.append(f"{element.hex()}*{times}")
        single = ""
    return " ".join([*parts, single] if single else parts)


def read_bytes(spans: Sequence[TextSpan], count: int) -> bytes:
    """`count` bytes of runs. Raises Fault."""
    found = bytearray()
    for span in spans:
        match = _HEX.fullmatch(span.text)
        if match is None:
            raise span.fault(f"{span.text[:40]!r} is neither bytes in hexadecimal nor a run of them, as 003c*320")
        element, times = bytes.fromhex(match[1]), int(match[2] or 1)
        if len(found) + len(element) * times > count:
            raise span.fault(f"more than the {count} bytes of a vector", DIRECTIVE)
        found += element * times
    if len(found) != count:
        where = spans[-1] if spans else TextSpan("", 0)
        raise where.fault(f"{len(found)} bytes instead of the {count} of a vector", DIRECTIVE)
    return bytes(found)
