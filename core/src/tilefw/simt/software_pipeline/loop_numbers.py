"""What is known of the scalars of a loop that the launch's numbers alone would not tell: signs, and what stays in 32 bits."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilefw.passes.affine import ZERO, AffineAnalysis, Poly
from tilefw.passes.fold import constant_of
from tilefw.passes.integer_ranges import IntegerRanges
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.kernel_info import is_argument
from tilefw.tile.nested_ops import nested_ops

_MIXING = frozenset({"addi", "subi", "muli"})
_GROWING = frozenset({"exts", "addi", "muli", "divs", "mins"})  # of what is 0 or more


class LoopAnalysis(AffineAnalysis):
    """Affine forms in the body of a loop, where what is left of a length (`K - step * BLOCK_K`) surely does not wrap around."""

    def __init__(self, loop: ForOp, offset_ops: set[Operation], ranges: IntegerRanges) -> None:
        super().__init__(offset_ops, ranges)
        self.loop = loop

    def as_computed(self, value: SSAValue) -> Poly:
        return self.scalar(value) if _is_what_is_left(value, self) else super().as_computed(value)

    def look_at_offsets(self) -> None:
        """Know the scalars by which the kernel itself computes offsets, in 32 bits that do not wrap around."""
        for op in nested_ops(_function_of(self.loop)):
            if op in self.offset_ops and op.results[0].type == types.i32:
                self.scalar(op.results[0])

    @property
    def induction(self) -> Poly:
        """The loop's own index."""
        return self.scalar(self.loop.body.block.args[0])


def _function_of(loop: ForOp) -> FuncOp:
    parent = loop.parent_op()
    while not isinstance(parent, FuncOp):
        assert parent is not None
        parent = parent.parent_op()
    return parent


def changes_in(loop: ForOp, poly: Poly) -> bool:
    """Whether a polynomial may have another value in each iteration."""
    return any(_is_inside(loop, atom) for monomial, _ in poly.terms for atom in monomial)


def _is_inside(loop: ForOp, value: SSAValue) -> bool:
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None and block is not loop.body.block:
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return block is not None


class Signs:
    """Which scalars are surely 0 or more. `divisors` are the arguments that are taken for such where something is divided by them:
    the launch sees to that."""

    def __init__(self) -> None:
        self.divisors: set[BlockArgument] = set()
        self._known: set[SSAValue] = set()

    def all_upwards(self, poly: Poly) -> bool:
        """Whether a sum of offsets, which do not wrap around, is surely 0 or more."""
        return all(factor > 0 and all(map(self.upwards, monomial)) for monomial, factor in poly.terms)

    def upwards(self, value: SSAValue) -> bool:
        """Whether a scalar is."""
        literal = constant_of(value)
        if literal is not None or value in self._known:
            return literal is None or literal >= 0
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            if not isinstance(loop, ForOp):
                return False
            return self._carried(loop, value.index - 1) if value.index else self.counts_up(loop)
        assert isinstance(value, OpResult)
        op = value.op
        if isinstance(op, ForOp):
            return self._carried(op, value.index)
        return isinstance(op, ops.ProgramIdOp | ops.NumProgramsOp) or (isinstance(op, ElementwiseOp) and self._row(op))

    def counts_up(self, loop: ForOp) -> bool:
        """Whether a loop's index is, wherever the loop runs."""
        step = constant_of(loop.step)
        return step is not None and step > 0 and (_is_rounded_down(loop.lb, loop.ub) or self.upwards(loop.lb))

    def _row(self, op: ElementwiseOp) -> bool:
        first, *others = op.operands
        if types.is_bool(first.type) or not types.is_int(first.type):
            return False
        match op.row.name:
            case "exts" | "rems":
                return self.upwards(first)
            case "divs":
                return self.upwards(first) and self._divides(others[0])
            case "maxs":
                return any(map(self.upwards, op.operands))
            case "addi" | "muli" | "mins":
                return all(map(self.upwards, op.operands))
            case "subi":
                sizes = _sizes_of_groups(first, others[0])
                return sizes is not None and all(map(self._divides, sizes))
            case _:
                return False

    def _divides(self, divisor: SSAValue) -> bool:
        """Whether a divisor is, where arguments are that it is computed of."""
        if is_argument(divisor):
            self.divisors.add(divisor)
            return True
        op = divisor.owner
        known = self.upwards(divisor)
        return known or (isinstance(op, ElementwiseOp) and op.row.name in _GROWING and all(map(self._divides, op.operands)))

    def _carried(self, loop: ForOp, index: int) -> bool:
        """What a loop carries begins so, and does not fall below where it was not before."""
        last, argument = loop.body.block.last_op, loop.body.block.args[1 + index]
        assert last is not None
        if not self.upwards(loop.iter_args[index]):
            return False
        self._known.add(argument)
        stays = self.upwards(last.operands[index])
        self._known.discard(argument)
        return stays


def _sizes_of_groups(rows: SSAValue, before: SSAValue) -> tuple[SSAValue, ...] | None:
    """Rows, columns and rows of a group, where so many rows lie `before` the group that the place `i` of a loop is in:

        for i in range(…, rows * columns):    rows - i // (group * columns) * group

    Where none of the three is below 0 that is above 0, for all places of the loop are before its end."""
    scaled = _factors(before)
    for whole, group in (scaled, scaled[::-1]) if scaled else ():
        division = whole.owner
        if not isinstance(division, ElementwiseOp) or division.row.name != "divs":
            continue
        place, parts = division.operands[0], _factors(division.operands[1])
        loop = place.block.parent_op() if isinstance(place, BlockArgument) else None
        if parts is None or not isinstance(loop, ForOp) or place is not loop.body.block.args[0]:
            continue
        for one, columns in (parts, parts[::-1]):
            if _same(one, group) and _factors(loop.ub) in ((rows, columns), (columns, rows)):
                return rows, columns, group
    return None


def _factors(value: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    op = value.owner
    return (op.operands[0], op.operands[1]) if isinstance(op, ElementwiseOp) and op.row.name == "muli" else None


def _same(one: SSAValue, other: SSAValue) -> bool:
    """Whether two scalars are one, or one literal."""
    return one is other or (constant_of(one) is not None and constant_of(one) == constant_of(other))


def _is_rounded_down(value: SSAValue, end: SSAValue) -> bool:
    """Whether a value is `end // n * n`: that of a negative end is no less, as division truncates, and a loop up to it runs not."""
    op = value.owner
    if not isinstance(op, ElementwiseOp) or op.row.name != "muli":
        return False
    whole, times = op.operands[0].owner, constant_of(op.operands[1])
    if not isinstance(whole, ElementwiseOp) or whole.row.name != "divs" or times is None:
        return False
    return whole.operands[0] is end and constant_of(whole.operands[1]) == times


def stays_near(factor: int, analysis: LoopAnalysis) -> bool:
    """Whether `factor` times the loop's index is a number of 32 bits: the loop ends at an integer of 32 bits, or at one divided by
    at least `factor`."""
    loop = analysis.loop
    if loop.ub.type != types.i32 or factor < 1 or not Signs().counts_up(loop):
        return False
    return factor == 1 or _divided(loop.ub, factor) is not None


def _divided(value: SSAValue, least: int) -> SSAValue | None:
    """The i32 of which a value is that number of whole parts, of at least so many."""
    op = value.owner
    if not isinstance(op, ElementwiseOp) or op.row.name != "divs" or op.operands[0].type != types.i32:
        return None
    divisor = constant_of(op.operands[1])
    return op.operands[0] if divisor is not None and divisor >= least else None


def _is_what_is_left(value: SSAValue, analysis: LoopAnalysis) -> bool:
    """Whether an i32 is `length - factor * index`, in a loop that ends at the length or at its parts of `factor`.

    Where the loop runs, its index is at least 0 and less than its end. So `factor * index` is less than the length, rounded up at
    most, and what is left is between the two: no step of its computation matters that wrapped around.
    """
    loop = analysis.loop
    if value.type != types.i32 or not types.is_int(value.type) or not Signs().counts_up(loop) or not _is_mixed(value, analysis):
        return False
    poly, (index,) = analysis.scalar(value), (loop.body.block.args[0],)
    factor = -sum(times for monomial, times in poly.terms if monomial == (index,))
    length = poly + Poly.constant(factor) * analysis.induction
    if factor < 1 or changes_in(loop, length):
        return False
    if factor == 1 and loop.ub.type == types.i32 and analysis.scalar(loop.ub) == length:
        return _is_mixed(loop.ub, analysis)
    whole = _divided(loop.ub, factor)
    if whole is None or _divided(loop.ub, factor + 1) is not None or not _is_mixed(whole, analysis):
        return False
    rounded = (analysis.scalar(whole) - length).number
    return rounded is not None and 0 <= rounded < factor


def _is_mixed(value: SSAValue, analysis: LoopAnalysis) -> bool:
    """Whether an i32 is what its polynomial says but for multiples of 2^32: all that computes it has 32 bits."""
    op = value.owner
    if analysis.scalar(value) in (Poly.atom(value), ZERO) or isinstance(op, ops.ConstantOp):
        return value.type == types.i32
    if not isinstance(op, ElementwiseOp) or op.row.name not in _MIXING or value.type != types.i32:
        return False
    return all(_is_mixed(operand, analysis) for operand in op.operands)
