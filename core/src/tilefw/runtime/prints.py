"""What kernels print: the buffer that a launch of one gets, and its records as lines, which read as Triton's do.

    pid (0, 1, 0) idx ( 5, 17) x: 1.500000

Triton's device code formats with C's printf (`PrintOpToLLVM.cpp`): `%i`, `%u`, `%f`, `%p`, `%a`, and indices as wide as the
largest. It prints a scalar once a thread, though; here it is once a program.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilefw.api.artifact import Artifact, Entry
from tilefw.api.dtypes import dtype
from tilefw.print_records import (
    ALIGNMENT,
    HEADER_BYTES,
    HIDDEN,
    LOST,
    PARAMETER,
    ROOM,
    USED,
    WORD_BYTES,
    PrintedOperand,
    PrintSite,
    from_text,
)
from tilefw.runtime import config
from tilefw.runtime.arguments.arrays import HostArray, host_array

_Program = tuple[int, int, int]


def print_buffer() -> HostArray:
    """An empty buffer with room for the bytes of `config.print_bytes`."""
    room = config.print_bytes()
    words = np.zeros((HEADER_BYTES + room) // WORD_BYTES, np.int64)
    words[ROOM] = room
    return host_array(words, PARAMETER)


@contextmanager
def printing(artifact: Artifact, entry: Entry, args: Sequence[Any]) -> Iterator[None]:
    """Write what a launch with these arguments printed when it ends, be it by an error."""
    if "prints" not in artifact.metadata:
        yield
        return
    try:
        yield
    finally:
        for parameter, argument in zip(entry.parameters, args, strict=True):
            if parameter.hidden == HIDDEN and isinstance(argument, HostArray):
                _write(argument, from_text(artifact.metadata["prints"]), entry.name)


def _write(buffer: HostArray, sites: Sequence[PrintSite], kernel: str) -> None:
    words, _ = buffer.keep
    records = list(_records(words.view(np.uint8)[HEADER_BYTES:], min(int(words[USED]), int(words[ROOM])), sites))
    records.sort(key=lambda record: record[0][::-1])  # by the program's place in the grid; sorting keeps the order within each
    lines = [line for program, site, data in records for line in _lines(program, site, data)]
    if lines:
        sys.stdout.write("\n".join(lines) + "\n")
    if words[LOST]:
        warnings.warn(
            f"{int(words[LOST])} prints of {kernel} are lost: the {int(words[ROOM])} bytes of its print buffer are full; "
            "TILEFW_PRINT_BYTES sets its size", RuntimeWarning, stacklevel=2,
        )


def _records(data: np.ndarray, used: int, sites: Sequence[PrintSite]) -> Iterator[tuple[_Program, PrintSite, np.ndarray]]:
    """The records in the order in which programs asked for their places: the program, the print, the bytes."""
    at = 0
    while at + ALIGNMENT <= used:
        number, x, y, z = (int(word) for word in data[at : at + ALIGNMENT].view(np.int32))
        if not number:
            return  # the first record that found no room
        site = sites[number - 1]
        yield (x, y, z), site, data[at : at + site.nbytes]
        at += site.nbytes


def _lines(program: _Program, site: PrintSite, data: np.ndarray) -> Iterator[str]:
    begin = f"pid ({', '.join(map(str, program))})"
    if not site.operands:
        yield begin + site.prefix
    for number, (operand, offset) in enumerate(zip(site.operands, site.offsets, strict=True)):
        label = f"(operand {number}) " if len(site.operands) > 1 else ""
        widths = [math.ceil(math.log10(extent)) for extent in operand.shape]
        elements = _elements(operand, data[offset : offset + operand.nbytes])
        for index, element in zip(np.ndindex(operand.shape), elements, strict=True):
            place = ", ".join(f"{i:{width or ''}}" for i, width in zip(index, widths, strict=True))
            yield f"{begin} idx ({place}){site.prefix}{label}{_text(element, operand.element, site.hex)}"


def _elements(operand: PrintedOperand, data: np.ndarray) -> list[Any]:
    if operand.element == "pointer":
        return data.view(np.uint64).tolist()
    if operand.element == "int1":
        return data.tolist()
    import ml_dtypes

    name = dtype(operand.element).numpy
    assert name is not None  # formats without a NumPy type are printed as fp32
    kind = np.dtype(getattr(ml_dtypes, name, None) or name)
    found = data.view(kind)
    return (found.astype(np.float64) if dtype(operand.element).is_float else found).tolist()


def _text(value: Any, element: str, hex: bool) -> str:
    if element == "pointer":
        return f"{value:#x}"
    if isinstance(value, float):
        return _hexadecimal(value) if hex and math.isfinite(value) else f"{value:f}"
    bits = dtype(element).bits
    return f"0x{value % 2**bits:0{bits // 4}x}" if hex else str(value)


def _hexadecimal(value: float) -> str:
    """As C's `%a` in glibc: no zeros at the end of the mantissa."""
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}"
