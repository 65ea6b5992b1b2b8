"""Where elements come from that a program should not store: what a load left undefined, quotients of zero, infinities and NaN that
finite numbers made.

Elements carry marks (`Value.marks`): by check, an array of the value's shape that holds the number of the op which made the element
so, 0 for all others. Marks move with the elements; an element that a selection drops takes its mark along. So a finding means that
the element got somewhere: it was stored, chose an address or a mask, or decided control flow. What only lanes compute that a mask
leaves out is not a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tilefw.tile import types
from tilefw.tile.dialect.atomic_ops import AtomicCasOp, AtomicRmwOp
from tilefw.tile.dialect.block_ops import LoadBlockOp, StoreBlockOp
from tilefw.tile.dialect.combine_op import ReduceOp, ScanOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.dot_scaled_op import DotScaledOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.gather_op import GatherOp
from tilefw.tile.dialect.memory_ops import LoadOp, StoreOp
from tilefw.tile.dialect.multicast_op import MulticastOp
from tilefw.tile.dialect.ops import AddPtrOp
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.reference.evaluate_dot_scaled import scaled
from tilefw.tile.reference.findings import FindingCollector
from tilefw.tile.reference.interpret_ops import FrameValues, block_address
from tilefw.tile.reference.value import Array, EvaluatedValue, Marks
from tilefw.tile.text.source_location import place_of

UNDEFINED, BY_ZERO, NONFINITE = "undefined_elements", "division_by_zero", "nonfinite"
CHECKS = (UNDEFINED, BY_ZERO, NONFINITE)
_DIVIDING = ("int.div", "int.rem")
_MADE = {
    UNDEFINED: "a masked load without `other` leaves elements undefined, and they are used",
    BY_ZERO: "an integer is divided by zero, and the result is used",
    NONFINITE: "an infinity or NaN is made of finite numbers, and it is used",
}
_HELP = {
    UNDEFINED: "give the load `other=`, or leave the elements out with `tl.where`",
    BY_ZERO: "the quotient is -1 (all ones), the remainder the dividend",
    NONFINITE: None,
}

Position = Callable[[int], tuple[int, int, int]]


class Origins:
    """The marks of one launch. `position` names a program in findings."""

    def __init__(self, findings: FindingCollector, position: Position) -> None:
        self.findings = findings
        self._position = position
        self._numbers: dict[Operation, int] = {}
        self._ops: list[Operation] = []

    def _number(self, op: Operation) -> int:
        """The op's number in marks, from 1 on."""
        if op not in self._numbers:
            self._ops.append(op)
            self._numbers[op] = len(self._ops)
        return self._numbers[op]

    # --- marks of results ------------------------------------------------------------------------------------------------

    def after(self, op: Operation, frame: FrameValues, results: Sequence[EvaluatedValue]) -> None:
        """`op` was executed: mark its results, and report marked elements that it used."""
        rule = _RULES.get(type(op)) or next((r for kind, r in _FAMILIES if isinstance(op, kind)), None)
        if rule is not None:
            rule(self, op, frame, results)

    def decided(self, op: Operation, condition: EvaluatedValue, programs: Array) -> None:
        """A condition of control flow was looked at."""
        self._used(op, condition, None, programs, "it decides control flow")

    def elementwise(self, op: Any, frame: FrameValues, results: Sequence[EvaluatedValue]) -> None:
        operands = [frame[operand] for operand in op.operands]
        (result,) = results
        if op.row.name == "select":
            result.marks = _selected(*operands)
            return
        marks = _union(operands)
        if op.row.name in ("andi", "ori") and operands[0].x.dtype == np.bool_:
            marks = _decided(marks, operands, absorbing=op.row.name == "ori")
        if op.row.group in _DIVIDING:
            zero = np.broadcast_to((operands[1].x == 0) & ~_marked(operands[1], UNDEFINED), result.x.shape)
            marks = _with(marks, BY_ZERO, np.where(zero, self._number(op), 0))
        result.marks = self._not_finite(op, _known(operands), result, marks)

    def _not_finite(self, op: Operation, known: Array, result: EvaluatedValue, marks: Marks | None) -> Marks | None:
        """`marks` with what holds of infinities and NaN: a mark stays on them alone, and those that no operand explains (`known`)
        get the op's own."""
        rest = _without(marks, NONFINITE)
        if result.x.dtype != np.float64:
            return rest
        bad = ~np.isfinite(result.x)
        if not bad.any():
            return rest
        inherited = 0 if marks is None else marks.get(NONFINITE, 0)
        return _with(rest, NONFINITE, np.where(bad, np.where(known, inherited, self._number(op)), 0))

    def structural(self, op: Any, frame: FrameValues, results: Sequence[EvaluatedValue]) -> None:
        """One operand's marks have moved with its elements; several operands' are moved here."""
        operands = [frame[operand] for operand in op.operands]
        if len(operands) == 1:
            return
        programs = max(value.x.shape[0] for value in operands)
        full = [_full(value, types.shape_of(operand.type)) for value, operand in zip(operands, op.operands, strict=True)]
        for check in _checks_of(full):
            parts = [np.broadcast_to(_mark(value, check), (programs, *value.x.shape[1:])) for value in full]
            for result, marks in zip(results, op.elements(*parts), strict=True):
                result.marks = _with(result.marks, check, marks)

    def gather(self, op: GatherOp, frame: FrameValues, results: Sequence[EvaluatedValue]) -> None:
        """An element's marks have moved with it; one that a marked index picked has the index's as well."""
        (result,) = results
        index = _full(frame[op.index], types.shape_of(op.index.type))
        result.marks = _union([result, EvaluatedValue(index.x, marks=index.marks)])

    def load(self, op: LoadOp | LoadBlockOp, frame: FrameValues, results: Sequence[EvaluatedValue]) -> None:
        (result,) = results
        address, mask = _accessed(op, frame)
        self._uses_address(op, address, mask, frame.programs)
        if mask is None:
            return
        off = np.broadcast_to(~mask.x, np.broadcast_shapes(mask.x.shape, result.x.shape))
        if op.other is None:
            result.marks = _with(None, UNDEFINED, np.where(off, self._number(op), 0))
            return
        for check, marks in (frame[op.other].marks or {}).items():
            result.marks = _with(result.marks, check, np.where(off, marks, 0))

    def store(self, op: StoreOp | StoreBlockOp, frame: FrameValues, results: Sequence[EvaluatedValue]) -> None:
        address, mask = _accessed(op, frame)
        self._uses_address(op, address, mask, frame.programs)
        self._used(op, frame[op.value], mask, frame.programs, "it is stored")

    def atomic(self, op: Any, frame: FrameValues, results: Sequence[EvaluatedValue]) -> None:
        address, mask = _accessed(op, frame)
        self._uses_address(op, address, mask, frame.programs)
        for operand in op.values:
            self._used(op, frame[operand], mask, frame.programs, "it is an operand of an atomic operation")

    def add_pointer(self, op: AddPtrOp, frame: FrameValues, results: Sequence[EvaluatedValue]) -> None:
        results[0].marks = _union([frame[op.pointer], frame[op.offset]])

    def reduce(self, op: ReduceOp, frame: FrameValues, results: Sequence[EvaluatedValue]) -> None:
        self._combined(op, frame, results, lambda x: x.max(axis=op.axis + 1))

    def scan(self, op: ScanOp, frame: FrameValues, results: Sequence[EvaluatedValue]) -> None:
        axis = op.axis + 1

        def running(x: Array) -> Array:
            if op.reverse:
                return np.flip(np.maximum.accumulate(np.flip(x, axis), axis), axis)
            return np.maximum.accumulate(x, axis)

        self._combined(op, frame, results, running)

    def _combined(
        self, op: ReduceOp | ScanOp, frame: FrameValues, results: Sequence[EvaluatedValue], along: Callable[[Array], Array]
    ) -> None:
        """Every result of a combination may depend on every operand's elements."""
        shape = types.shape_of(op.operands[0].type)
        operands = [_full(frame[operand], shape) for operand in op.operands]
        marks: Marks | None = None
        for check, whole in (_union(operands) or {}).items():
            marks = _with(marks, check, along(np.broadcast_to(whole, (whole.shape[0], *shape))))
        for result in results:
            result.marks = self._not_finite(op, _known(operands, along), result, marks)

    def dot(self, op: DotOp, frame: FrameValues, results: Sequence[EvaluatedValue]) -> None:
        """An element depends on a row of the left operand, on a column of the right one, and on one element of the sum."""
        a, b, acc = (_full(frame[operand], types.shape_of(operand.type)) for operand in op.operands)
        rows, columns = (lambda x: x.max(-1, keepdims=True)), (lambda x: x.max(-2, keepdims=True))
        marks = _union([_marks_spread(a, rows), _marks_spread(b, columns), acc])
        known = _known([a], rows) | _known([b], columns) | _known([acc])
        results[0].marks = self._not_finite(op, known, results[0], marks)

    def dot_scaled(self, op: DotScaledOp, frame: FrameValues, results: Sequence[EvaluatedValue]) -> None:
        """As `dot`: the elements of an operand and their scales belong to a row of the left one, or a column of the right one."""
        parts, known = [frame[op.acc]], _known([_full(frame[op.acc], types.shape_of(op.acc.type))])
        for operand in (op.left, op.right):
            value = _full(frame[operand.value], types.shape_of(operand.value.type))
            scale = None if operand.scale is None else _full(frame[operand.scale], types.shape_of(operand.scale.type))
            k = -1 if operand.left else -2
            twice = 2 if operand.packed and operand.packing == "outer" else 1
            parts.append(_marks_spread(value, lambda x, k=k, twice=twice: np.repeat(x.max(k, keepdims=True), twice, -3 - k)))
            if scale is not None:
                turned = (lambda x: x.max(-1, keepdims=True)) if operand.left else (lambda x: x.max(-1)[..., None, :])
                parts.append(_marks_spread(scale, turned))
            known = known | _known([scaled(operand, value, scale)], lambda x, k=k: x.max(k, keepdims=True))
        results[0].marks = self._not_finite(op, known, results[0], _union(parts))

    # --- uses ------------------------------------------------------------------------------------------------------------

    def _uses_address(self, op: Operation, address: EvaluatedValue, mask: EvaluatedValue | None, programs: Array) -> None:
        self._used(op, address, mask, programs, "it is in an address")
        if mask is not None:
            self._used(op, mask, None, programs, "it is in a mask")

    def _used(self, op: Operation, value: EvaluatedValue, mask: EvaluatedValue | None, programs: Array, how: str) -> None:
        for check, marks in (value.marks or {}).items():
            if not self.findings.wants(check):
                continue
            live = marks if mask is None else np.where(mask.x, marks, 0)
            for number in np.unique(live[live > 0]).tolist():
                self._report(check, self._ops[number - 1], op, live == number, programs, how)

    def _report(self, check: str, made: Operation, used: Operation, hit: Array, programs: Array, how: str) -> None:
        row = int(np.argmax(hit.reshape(hit.shape[0], -1).any(axis=1)))
        program = int(programs[row]) if hit.shape[0] == len(programs) else int(programs[0])
        place = place_of(used)
        notes = [how if place is None else f"{how} at {place}", _HELP[check]]
        self.findings.add(
            check, made, _MADE[check], count=int(hit.sum()), note="; ".join(n for n in notes if n), program=self._position(program)
        )


def _accessed(op: Any, frame: FrameValues) -> tuple[EvaluatedValue, EvaluatedValue | None]:
    """What decides which elements an access touches: an address whose marks are those of all its parts, and its mask."""
    if isinstance(op, LoadBlockOp | StoreBlockOp):
        address, mask = block_address(op, frame)
        parts = [frame[v] for v in (op.base, *op.offsets, *op.strides, *(b for b in op.shape if b is not None))]
        lifted = [v.apply(lambda x: x.reshape(-1, *(1,) * len(op.block))) for v in parts]
        return EvaluatedValue(address.x, marks=_union(lifted)), mask
    mask = None if op.mask is None else frame[op.mask]
    pointer = frame[op.pointer]
    if op.offsets is None:
        return pointer, mask
    offsets = frame[op.offsets]
    lifted = pointer.apply(lambda x: x.reshape(*x.shape, *(1,) * (offsets.x.ndim - x.ndim)))
    return EvaluatedValue(offsets.x, marks=_union([lifted, offsets])), mask


# Marks ------------------------------------------------------------------------------------------------------------------


def _mark(value: EvaluatedValue, check: str) -> Array:
    """The marks of one check, of the value's shape or one that broadcasts to it."""
    found = None if value.marks is None else value.marks.get(check)
    return np.zeros((1,) * value.x.ndim, np.int32) if found is None else found


def _marked(value: EvaluatedValue, check: str) -> Array:
    return _mark(value, check) > 0


def _known(operands: Sequence[EvaluatedValue], spread: Callable[[Array], Array] = lambda x: x) -> Array:
    """Where a result has an operand that is not finite, or not defined: `spread` takes a mask of an operand to the results."""
    found = np.zeros((1,) * operands[0].x.ndim, np.bool_)
    floats = [value for value in operands if value.x.dtype == np.float64]
    if not floats:
        return spread(np.broadcast_to(found, operands[0].x.shape))
    for value in floats:
        found = found | (~np.isfinite(value.x) | _marked(value, UNDEFINED))
    return spread(found)


def _marks_spread(value: EvaluatedValue, spread: Callable[[Array], Array]) -> EvaluatedValue:
    """A value for its marks alone, each taken to all results that depend on it."""
    marks = {check: spread(np.broadcast_to(part, value.x.shape)) for check, part in (value.marks or {}).items()}
    return EvaluatedValue(value.x, marks=marks or None)


def _full(value: EvaluatedValue, shape: tuple[int, ...]) -> EvaluatedValue:
    """The value with all its dims at full extent."""
    return value.apply(lambda x: np.broadcast_to(x, (x.shape[0], *shape)))


def _with(marks: Marks | None, check: str, found: Array) -> Marks | None:
    """`marks` with those of one more check; None where there are none at all."""
    return {**(marks or {}), check: found.astype(np.int32)} if found.any() else marks


def _without(marks: Marks | None, check: str) -> Marks | None:
    return {c: m for c, m in marks.items() if c != check} if marks else None


def _checks_of(values: Sequence[EvaluatedValue]) -> Iterator[str]:
    return (check for check in CHECKS if any(v.marks and check in v.marks for v in values))


def _union(values: Sequence[EvaluatedValue]) -> Marks | None:
    """The marks of values of one shape; where two elements are marked, the later op's."""
    found: Marks | None = None
    for check in _checks_of(values):
        marks = _mark(values[0], check)
        for value in values[1:]:
            marks = np.maximum(marks, _mark(value, check))
        found = _with(found, check, marks)
    return found


def _selected(condition: EvaluatedValue, a: EvaluatedValue, b: EvaluatedValue) -> Marks | None:
    """Those of the chosen elements, and of the conditions that chose."""
    found: Marks | None = None
    for check in _checks_of((condition, a, b)):
        chosen = np.where(condition.x, _mark(a, check), _mark(b, check))
        found = _with(found, check, np.maximum(chosen, _mark(condition, check)))
    return found


def _decided(marks: Marks | None, operands: Sequence[EvaluatedValue], absorbing: bool) -> Marks | None:
    """Marks of a conjunction or disjunction of booleans, without the elements that an unmarked operand decides alone."""
    found: Marks | None = None
    for check, both in (marks or {}).items():
        alone = [(v.x == absorbing) & ~_marked(v, check) for v in operands]
        found = _with(found, check, np.where(alone[0] | alone[1], 0, both))
    return found


_Rule = Callable[[Origins, Any, FrameValues, Sequence[EvaluatedValue]], None]
_RULES: dict[type[Operation], _Rule] = {
    LoadOp: Origins.load, LoadBlockOp: Origins.load, StoreOp: Origins.store, StoreBlockOp: Origins.store,
    AtomicRmwOp: Origins.atomic, AtomicCasOp: Origins.atomic, MulticastOp: Origins.atomic, AddPtrOp: Origins.add_pointer,
    ReduceOp: Origins.reduce, GatherOp: Origins.gather, ScanOp: Origins.scan, DotOp: Origins.dot, DotScaledOp: Origins.dot_scaled,
}
_FAMILIES: tuple[tuple[type, _Rule], ...] = ((ElementwiseOp, Origins.elementwise), (StructuralOp, Origins.structural))
