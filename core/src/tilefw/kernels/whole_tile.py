"""A whole tile of three dims that lies in memory as it is: what the kernels of one reduction and of one scan start from."""

from __future__ import annotations

from typing import Any

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import dtype
from tilefw.api.errors import UsageError
from tilefw.kernels.spec import Parameters

_INTEGERS_ONLY = ("xor", "or", "and")


@tilefw.jit
def coordinates(LAYERS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The layer, row and column of each element, and its place in memory."""
    layer = tl.arange(0, LAYERS)[:, None, None]
    row = tl.arange(0, ROWS)[None, :, None]
    column = tl.arange(0, COLUMNS)[None, None, :]
    return layer, row, column, (layer * ROWS + row) * COLUMNS + column


@tilefw.jit
def both(a, b):
    return a & b


def shape(p: Parameters) -> tuple[int, int, int]:
    return p["layers"], p["rows"], p["columns"]


def extents(p: Parameters) -> dict[str, Any]:
    """What `coordinates` takes."""
    return dict(zip(("LAYERS", "ROWS", "COLUMNS"), shape(p), strict=True))


def refuse_bits_of_floats(kernel: str, p: Parameters) -> None:
    if p["operation"] in _INTEGERS_ONLY and dtype(p["dtype"]).is_float:
        raise UsageError(
            f"{kernel}: {p['operation']} of {p['dtype']}", code="TFW0942", note="only integers have bits to combine",
        )
