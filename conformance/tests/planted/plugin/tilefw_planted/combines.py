"""Bugs of reductions and scans: elements left out, starts that are not a neutral element, wrong axis, ties, segments."""

from __future__ import annotations

import math
from typing import Any

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from tilefw.passes.rewriting import exchange, insert, replace
from tilefw.tile import types
from tilefw.tile.dialect.base import integer_attr
from tilefw.tile.dialect.elementwise_op import build
from tilefw.tile.dialect.ops import ReduceOp, ReshapeOp, ScanOp
from tilefw_planted.bug import Bug, by_row, changed, element, is_row, made, operand_changed, put_at, through

_NEUTRAL = {
    "addf": 0.0, "mulf": 1.0, "maxf": -math.inf, "minf": math.inf, "maxf_nan": -math.inf, "minf_nan": math.inf,
    "addi": 0, "muli": 1, "andi": -1, "ori": 0, "xori": 0, "maxu": 0, "minu": -1,
}


def _neutral(op: ReduceOp) -> float | None:
    row, bits = op.row or "", types.dtype_of(element(op.operands[0])).bits
    return {"maxs": -(1 << (bits - 1)), "mins": (1 << (bits - 1)) - 1, **_NEUTRAL}.get(row)


def _leaves_out(op: object) -> bool:
    return isinstance(op, ReduceOp) and op.extent > 1 and _neutral(op) is not None


def _left_out(op: ReduceOp, index: int) -> None:
    neutral = _neutral(op)
    assert neutral is not None
    operand_changed(op, 0, lambda value, before: put_at(value, op.axis, index, neutral, before))


def _is_maximum(op: object) -> bool:
    return isinstance(op, ReduceOp) and op.row in ("maxf", "maxf_nan", "maxs")


def _not_below_zero(op: ReduceOp) -> None:
    changed(op, lambda value, before: by_row(op.row or "", value, before=before, number=0))


def _is_square(op: Any) -> bool:
    if not isinstance(op, ReduceOp):
        return False
    shape = types.shape_of(op.operands[0].type)
    return len(shape) == 2 and shape[0] == shape[1] > 1


def _sums_single(op: object) -> bool:
    return isinstance(op, ReduceOp) and op.row == "addf" and op.extent > 1 and element(op.operands[0]) == types.f32


def _is_tie_break(op: Operation) -> bool:
    """Compares the indices that go with two elements."""
    parent = op.parent_op()
    return isinstance(parent, ReduceOp) and len(parent.operands) > 1 and is_row(op, "lts")


def _turn(op: ScanOp) -> None:
    if op.reverse:
        del op.properties["reverse"]
    else:
        op.properties["reverse"] = UnitAttr()


def _is_scan(op: object, *rows: str) -> bool:
    return isinstance(op, ScanOp) and op.extent > 1 and (not rows or op.row in rows)


def _exclusive(op: ScanOp) -> None:
    source = op.operands[0]
    changed(op, lambda value, before: made("subf" if types.is_float(value.type) else "subi", value, source, before=before))


def _cut(value: SSAValue, axis: int, before: Operation) -> SSAValue:
    shape = types.shape_of(value.type)
    split = (*shape[:axis], 2, shape[axis] // 2, *shape[axis + 1 :])
    return insert(ReshapeOp(value, split), before)


def _in_halves(op: ScanOp) -> None:
    """Two scans of half the extent: what the first half sums up to is not carried on."""
    halves = [_cut(operand, op.axis, op) for operand in op.operands]
    scan = ScanOp(halves, op.axis + 1, op.detach_region(op.regions[0]), op.reverse)
    shapes = [types.shape_of(result.type) for result in op.results]
    insert(scan, op)
    whole = [insert(ReshapeOp(result, shape), op) for result, shape in zip(scan.results, shapes, strict=True)]
    replace(op, *whole)


BUGS = [
    Bug(
        "reduce-without-first", "a reduction leaves out its first element", "wherever that one matters",
        _leaves_out, lambda op: _left_out(op, 0),
    ),
    Bug(
        "reduce-without-last", "a reduction leaves out its last element", "wherever that one matters",
        _leaves_out, lambda op: _left_out(op, op.extent - 1),
    ),
    Bug("maximum-from-zero", "a maximum starts at 0", "where every element is negative", _is_maximum, _not_below_zero),
    Bug(
        "reduce-other-axis", "a square tile is reduced along its other axis", "unless it is symmetric",
        _is_square, lambda op: op.properties.update(axis=integer_attr(1 - op.axis)),
    ),
    Bug(
        "sum-in-half", "a sum of fp32 is kept in fp16", "from the twelfth bit on",
        _sums_single, lambda op: changed(op, lambda value, before: through("f16", value, before)),
    ),
    Bug(
        "tie-to-last", "of equal elements the last one's index wins", "at ties",
        _is_tie_break, lambda op: exchange(op, build("gts", *op.operands)),
    ),
    Bug("scan-turned", "a scan runs from the other end", "everywhere", _is_scan, _turn),
    Bug(
        "scan-exclusive", "a running sum leaves out the element itself", "everywhere",
        lambda op: _is_scan(op, "addf", "addi"), _exclusive,
    ),
    Bug("scan-not-carried", "a scan starts anew in its second half", "in the second half", _is_scan, _in_halves),
]

