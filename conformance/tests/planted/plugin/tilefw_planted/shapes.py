"""Bugs of data movement within tiles: dims and elements in the wrong order or place."""

from __future__ import annotations

from tilefw.passes.rewriting import exchange, insert, replace
from tilefw.tile import types
from tilefw.tile.dialect.base import integer_attr
from tilefw.tile.dialect.ops import BroadcastOp, ExpandDimsOp, FlipOp, IotaOp, JoinOp, SplitOp, TransOp
from tilefw_planted.bug import Bug, swapped


def _is_square(type: object) -> bool:
    shape = types.shape_of(type)  # pyright: ignore[reportArgumentType]
    return len(shape) == 2 and shape[0] == shape[1] > 1


def _broadcasts_line(op: object) -> bool:
    return isinstance(op, BroadcastOp) and _is_square(op.results[0].type) and isinstance(op.source.owner, ExpandDimsOp)


def _other_axis(op: BroadcastOp) -> None:
    line = op.source.owner
    assert isinstance(line, ExpandDimsOp)
    exchange(op, BroadcastOp(insert(ExpandDimsOp(line.source, 1 - line.axis), op), op.results[0].type))


def _from_one(op: IotaOp) -> None:
    op.properties.update(start=integer_attr(op.start + 1), end=integer_attr(op.end + 1))


def _exchange_results(op: SplitOp) -> None:
    exchange_with = SplitOp(op.source)
    insert(exchange_with, op)
    replace(op, *reversed(exchange_with.results))


BUGS = [
    Bug(
        "broadcast-other-axis", "a line is repeated along the wrong axis of a square tile", "unless its elements are equal",
        _broadcasts_line, _other_axis,
    ),
    Bug(
        "transposition-missed", "a square tile is not transposed", "off the diagonal",
        lambda op: isinstance(op, TransOp) and _is_square(op.source.type), lambda op: replace(op, op.source),
    ),
    Bug(
        "flip-missed", "a tile is not flipped", "unless it is symmetric",
        lambda op: isinstance(op, FlipOp), lambda op: replace(op, op.source),
    ),
    Bug("range-from-one", "ranges count from one", "everywhere", lambda op: isinstance(op, IotaOp), _from_one),
    Bug(
        "join-swapped", "join takes its tiles in the other order", "wherever they differ",
        lambda op: isinstance(op, JoinOp), lambda op: swapped(op, 0, 1),
    ),
    Bug(
        "split-swapped", "split gives its halves in the other order", "wherever they differ",
        lambda op: isinstance(op, SplitOp), _exchange_results,
    ),
]
