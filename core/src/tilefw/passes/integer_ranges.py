"""Which integer ops of a kernel surely do not wrap around: the ranges of exact results, of what ranges, divisors and widths say.

A multiple of 64 in 32 bits is at most 2^31 - 64, whatever it was computed from: with 0 to 63 added it does not wrap. That proves
the indices of most kernels, whose ranges alone say nothing (`program_id * 64` may be anything).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilefw.passes.axis_info import AxisInfoAnalysis
from tilefw.tile import types
from tilefw.tile.dialect.axis_info import AxisInfo
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.structural_op import StructuralOp

Range = tuple[int, int]  # the least and the most that an integer is


class IntegerRanges:
    """Ranges of the signed integers of a module or function, found when they are first asked for."""

    def __init__(self, module: ModuleOp | FuncOp) -> None:
        self._module = module
        self._facts: AxisInfoAnalysis | None = None
        self._ranges: dict[SSAValue, Range] = {}

    def never_wraps(self, op: ElementwiseOp) -> bool:
        """Whether the exact result of a linear op fits its type, for all that its operands may be."""
        found = exact(op, self)
        return found is not None and _lies_in(found, _of_type(op.results[0]))

    def __getitem__(self, value: SSAValue) -> Range:
        found = self._ranges.get(value)
        if found is None:
            self._ranges[value] = found = _both(self._computed(value), _of_facts(self._known(value), _of_type(value)))
        return found

    def _known(self, value: SSAValue) -> AxisInfo:
        if self._facts is None:
            self._facts = AxisInfoAnalysis(self._module)
        return self._facts[value]

    def _computed(self, value: SSAValue) -> Range:
        """What an op's operands say of its result; the range of the type where that is nothing."""
        whole = _of_type(value)
        if isinstance(value, BlockArgument):
            return self._counted(value) or whole
        op = value.owner
        if isinstance(op, StructuralOp):
            return _around(*(self[operand] for operand in op.moved_operands))
        if not isinstance(op, ElementwiseOp):
            return whole
        found = exact(op, self)
        return found if found is not None and _lies_in(found, whole) else whole

    def _counted(self, value: BlockArgument) -> Range | None:
        """What a loop counts; None of what else is handed to a block."""
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp) or value.index:
            return None
        first = self[loop.lb][0]
        return first, max(first, self[loop.ub][1] - 1)


class MeantRanges:
    """Ranges of exact integers where ops of offsets do not wrap: of what they mean, which may not fit its type."""

    def __init__(self, ranges: IntegerRanges, offset_ops: Collection[Operation]) -> None:
        self._ranges = ranges
        self._offset_ops = offset_ops
        self._meant: dict[SSAValue, Range] = {}

    def never_falls(self, op: ElementwiseOp) -> bool:
        """Whether no result is below the least of its type: of operands as they are computed, or of what they mean."""
        least = _of_type(op.results[0])[0]
        return any(found is not None and found[0] >= least for found in (exact(op, self._ranges), exact(op, self)))

    def __getitem__(self, value: SSAValue) -> Range:
        found = self._meant.get(value)
        if found is None:
            self._meant[value] = found = self._of(value)
        return found

    def _of(self, value: SSAValue) -> Range:
        op = value.owner
        if isinstance(op, StructuralOp):
            return _around(*(self[operand] for operand in op.moved_operands))
        found = exact(op, self) if isinstance(op, ElementwiseOp) and op in self._offset_ops else None
        return self._ranges[value] if found is None else found


def exact(op: ElementwiseOp, ranges: IntegerRanges | MeantRanges) -> Range | None:
    """The range of the exact result of an op whose operands have these ranges; None where no rule tells."""
    rule = _RULES.get(op.row.name)
    if rule is None or types.is_bool(op.operands[-1].type):
        return None
    return rule(*(ranges[operand] for operand in op.operands if not types.is_bool(operand.type)))


def _of_type(value: SSAValue) -> Range:
    bits = types.dtype_of(value.type).bits
    return (0, 1) if bits == 1 else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _of_facts(facts: AxisInfo, whole: Range) -> Range:
    """What the axis analysis knows: ranges, and in each dim that runs which do not wrap begin at multiples of a power of two."""
    least, most = whole
    low, high = least if facts.low is None else facts.low, most if facts.high is None else facts.high
    for divisor, run in zip(facts.divisibility, facts.contiguity, strict=True):
        if run <= divisor <= most:
            high = min(high, most + 1 - divisor + run - 1)
    return _both(whole, (low, high))


def _both(a: Range, b: Range) -> Range:
    """Where an integer is that is in both; code that never runs may have it in neither."""
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else a


def _around(*ranges: Range) -> Range:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _lies_in(inner: Range, outer: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


# One rule a row: the range of the exact result ---------------------------------------------------------------------------


def _product(a: Range, b: Range) -> Range:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _shifted(a: Range, shift: Range) -> Range | None:
    if shift[0] != shift[1] or not 0 <= shift[0] < 64:
        return None
    factor = 1 << shift[0]
    return _product(a, (factor, factor))


def _quotient(a: Range, b: Range) -> Range | None:
    """Towards zero, by what is positive."""
    if b[0] < 1:
        return None
    ends = [abs(x) // y * (1 if x >= 0 else -1) for x in a for y in b]
    return min(0, *ends) if a[0] < 0 else min(ends), max(ends)


def _remainder(a: Range, b: Range) -> Range | None:
    """It has the sign of what is divided."""
    return (max(a[0], 1 - b[1]) if a[0] < 0 else 0, min(max(a[1], 0), b[1] - 1)) if b[0] >= 1 else None


_RULES: dict[str, Callable[..., Range | None]] = {
    "addi": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subi": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "muli": _product,
    "shl": _shifted,
    "exts": lambda a: a,
    "mins": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maxs": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "select": _around,
    "divs": _quotient,
    "rems": _remainder,
    "shrs": lambda a, b: (a[0] >> b[0], a[1] >> b[0]) if b[0] == b[1] and 0 <= b[0] < 64 else None,
}
