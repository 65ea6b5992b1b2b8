"""Facts about integers and pointers: what divides a value, runs of consecutive and of equal elements, and ranges.

Facts flow forward from argument attributes, hints and constants through ops, loops and branches; a loop's carried values
are iterated to a fixed point from the facts of their initial values. The rules are those of Triton's axis analysis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd
from typing import Any

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.axis_info import ANY_DIVISOR, AxisInfo, at_starts, highest, joined, lowest, meet, power, unknown
from tilefw.tile.dialect.combine_op import CombineOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.kernel_info import argument_attributes
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.nested_ops import nested_of

_ORDERS = frozenset({"lts", "les", "gts", "ges"})
_ROUNDS = 4  # of a loop's fixed point; facts only ever weaken, so what has not settled by then is given up


class AxisInfoAnalysis:
    """Facts of every value of a module: `facts[value]`. `grid` has the most programs of a launch along each axis."""

    def __init__(self, module: ModuleOp | func.FuncOp, grid: tuple[int, int, int] = (2**31 - 1, 2**31 - 1, 2**31 - 1)) -> None:
        self.grid = grid
        self._facts: dict[SSAValue, AxisInfo] = {}
        for function in nested_of(module, func.FuncOp):
            for index, argument in enumerate(function.body.block.args):
                self._facts[argument] = _hinted(unknown(argument.type), argument_attributes(function, index))
            self._block(function.body.block)

    def __getitem__(self, value: SSAValue) -> AxisInfo:
        found = self._facts.get(value)
        return unknown(value.type) if found is None else found

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if op.__class__ is scf.ForOp:
                self._loop(op)  # type: ignore[arg-type]
            elif op.regions and not isinstance(op, CombineOp):
                self._branch(op)
            else:
                for result in op.results:
                    self._facts[result] = _hinted(self._result(op, result), op.attributes)

    def _result(self, op: Operation, result: SSAValue) -> AxisInfo:
        if not (types.is_int(result.type) or types.is_pointer(result.type)):
            return unknown(result.type)
        if isinstance(op, StructuralOp):
            return op.axis_info(*(self[operand] for operand in op.operands))
        rule = _ROW_RULES.get(op.row.name) if isinstance(op, ElementwiseOp) else _RULES.get(op.__class__)
        return unknown(result.type) if rule is None else rule(op, self)

    def _loop(self, loop: scf.ForOp) -> None:
        block = loop.body.block
        lower, upper, step = self[loop.lb], self[loop.ub], self[loop.step]
        high = None if upper.high is None else upper.high - 1
        self._facts[block.args[0]] = AxisInfo((gcd(lower.divisor, step.divisor),), (1,), (1,), lower.low, high)
        carried = [replace(self[v], low=None, high=None) for v in loop.iter_args]
        for _ in range(_ROUNDS):
            self._facts.update(zip(block.args[1:], carried, strict=True))
            self._block(block)
            last = block.last_op
            assert last is not None
            met = [meet(a, replace(self[v], low=None, high=None)) for a, v in zip(carried, last.operands, strict=True)]
            if met == carried:
                break
            carried = met
        else:
            carried = [unknown(v.type) for v in loop.iter_args]
            self._facts.update(zip(block.args[1:], carried, strict=True))
            self._block(block)
        self._facts.update(zip(loop.results, carried, strict=True))

    def _branch(self, op: Operation) -> None:
        ends: list[list[AxisInfo]] = []
        for region in op.regions:
            for block in region.blocks:
                self._block(block)
                if block.last_op is not None:
                    ends.append([self[v] for v in block.last_op.operands])
                if isinstance(block.last_op, scf.ConditionOp):
                    self._go_on(block.last_op, op.regions[1].block)
        if isinstance(op, scf.IfOp) and len(ends) == 2:
            self._facts.update(zip(op.results, (meet(a, b) for a, b in zip(*ends, strict=True)), strict=True))


    def _go_on(self, condition: scf.ConditionOp, body: Block) -> None:
        """What a loop passes to its body is so that the condition holds."""
        held, *passed = condition.operands
        for argument, value in zip(body.args, passed, strict=True):
            self._facts[argument] = self._where(held, value)

    def _where(self, held: SSAValue, value: SSAValue) -> AxisInfo:
        """The facts of a value of which a comparison with a sign may have been found true."""
        facts, op = self[value], held.owner
        if not isinstance(op, ElementwiseOp) or op.row.name not in _ORDERS or value not in op.operands:
            return facts
        first, second = op.operands
        other = self[second if value is first else first]
        equal = op.row.name in ("les", "ges")
        above = (op.row.name in ("gts", "ges")) is (value is first)
        if above and other.low is not None:
            return replace(facts, low=other.low + (not equal))
        return replace(facts, high=other.high - (not equal)) if not above and other.high is not None else facts


def _hinted(facts: AxisInfo, attributes: Any) -> AxisInfo:
    """The facts with what `multiple_of`, `max_contiguous`, `max_constancy` and the launch say."""
    if not attributes:
        return facts
    for name, field in (("tile.divisible", "divisibility"), ("tile.contiguous", "contiguity"), ("tile.constant", "constancy")):
        stated = attributes.get(name)
        known = getattr(facts, field)
        if isinstance(stated, IntegerAttr):
            numbers: tuple[int, ...] = (int(stated.value.data),) * len(known)
        elif isinstance(stated, DenseArrayBase):
            numbers = tuple(int(n) for n in stated.get_values())
        else:
            continue
        if field == "divisibility":
            numbers = tuple(power(n) for n in numbers)
        if len(numbers) == len(known):
            facts = replace(facts, **{field: tuple(max(1, k, n) for k, n in zip(known, numbers, strict=True))})
    return facts


# One rule an op --------------------------------------------------------------------------------------------------------

_Rule = Callable[[Any, AxisInfoAnalysis], AxisInfo]


def _constant(op: ops.ConstantOp, _: AxisInfoAnalysis) -> AxisInfo:
    shape = types.shape_of(op.results[0].type) or (1,)
    number = int(op.value)
    return AxisInfo((power(number),) * len(shape), (1,) * len(shape), shape, number, number)


def _iota(op: ops.IotaOp, _: AxisInfoAnalysis) -> AxisInfo:
    return AxisInfo((power(op.start),), (op.end - op.start,), (1,), op.start, op.end - 1)


def _program_id(op: Any, known: AxisInfoAnalysis) -> AxisInfo:
    return AxisInfo((1,), (1,), (1,), 0, known.grid[op.axis] - 1)


def _num_programs(op: Any, known: AxisInfoAnalysis) -> AxisInfo:
    return AxisInfo((1,), (1,), (1,), 0, known.grid[op.axis])


def _combine(op: CombineOp, known: AxisInfoAnalysis) -> AxisInfo:
    """The smallest and the largest lie within what all elements lie in; of other results nothing is known."""
    facts = unknown(op.results[0].type)
    if op.row not in ("mins", "maxs"):
        return facts
    inner = known[op.operands[0]]
    return replace(facts, low=inner.low, high=inner.high)


def _sum(a: AxisInfo, b: AxisInfo, sign: int) -> AxisInfo:
    """a + b, or a - b: a run against equal elements stays one; run against run does not."""
    pairs = zip(a.contiguity, b.contiguity, a.constancy, b.constancy, strict=True)
    runs = tuple(max(gcd(ca, kb), gcd(ka, cb) if sign > 0 else 1) for ca, cb, ka, kb in pairs)
    low, high = (b.low, b.high) if sign > 0 else (_negated(b.high), _negated(b.low))
    constancy = tuple(map(gcd, a.constancy, b.constancy))
    return AxisInfo(joined(a, b, runs), runs, constancy, _plus(a.low, low), _plus(a.high, high))


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _negated(a: int | None) -> int | None:
    return None if a is None else -a


def _within(facts: AxisInfo, bits: int) -> AxisInfo:
    """Ranges that leave the width say nothing."""
    limit = 1 << (bits - 1)
    if facts.low is None or facts.high is None or facts.low < -limit or facts.high >= limit:
        return replace(facts, low=None, high=None)
    return facts


def _bits(op: Operation) -> int:
    return types.dtype_of(op.results[0].type).bits


def _addi(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    return _within(_sum(known[op.operands[0]], known[op.operands[1]], 1), _bits(op))


def _subi(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    return _within(_sum(known[op.operands[0]], known[op.operands[1]], -1), _bits(op))


def _addptr(op: ops.AddPtrOp, known: AxisInfoAnalysis) -> AxisInfo:
    offset = known[op.offset]
    size = types.dtype_of(types.pointee_of(op.pointer.type)).storage_bits // 8
    scaled = replace(offset, divisibility=tuple(min(ANY_DIVISOR, d * size) for d in offset.divisibility), low=None, high=None)
    return _sum(known[op.pointer], scaled, 1)


def _muli(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    a, b = (known[operand] for operand in op.operands)
    runs = tuple(_run_of_product(a, b, dim) for dim in range(len(a.contiguity)))
    columns = zip(a.divisibility, b.divisibility, a.contiguity, b.contiguity, runs, strict=True)
    divisibility = tuple(min(ANY_DIVISOR, at_starts(x, ca, run) * at_starts(y, cb, run)) for x, y, ca, cb, run in columns)
    ends = None
    if None not in (a.low, a.high, b.low, b.high):
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]  # type: ignore[operator]
    low, high = (min(ends), max(ends)) if ends else (None, None)
    return _within(AxisInfo(divisibility, runs, tuple(map(gcd, a.constancy, b.constancy)), low, high), _bits(op))


def _run_of_product(a: AxisInfo, b: AxisInfo, dim: int) -> int:
    if b.low == b.high == 1:
        return a.contiguity[dim]
    return b.contiguity[dim] if a.low == a.high == 1 else 1


def _cast(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    facts = known[op.operands[0]]
    # i1 is read as unsigned everywhere but here, where its one is -1.
    return replace(unknown(op.results[0].type), constancy=facts.constancy) if types.is_bool(op.operands[0].type) else facts


def _extu(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    facts = known[op.operands[0]]
    if facts.low is not None and facts.low >= 0:
        return facts
    # A negative number becomes one 2^width larger: powers of two still divide it, and a run breaks at zero.
    plain = tuple(power(at_starts(d, c, 1)) for d, c in zip(facts.divisibility, facts.contiguity, strict=True))
    return AxisInfo(plain, (1,) * len(plain), facts.constancy)


def _shl(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    a, shift = known[op.operands[0]], known[op.operands[1]]
    if shift.low is None or shift.low != shift.high or not 0 <= shift.low < _bits(op):
        return unknown(op.results[0].type)
    factor = 1 << shift.low
    plain = tuple(min(ANY_DIVISOR, at_starts(d, c, 1) * factor) for d, c in zip(a.divisibility, a.contiguity, strict=True))
    low, high = (None if end is None else end * factor for end in (a.low, a.high))
    return _within(AxisInfo(plain, (1,) * len(plain), a.constancy, low, high), _bits(op))


def _div(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    """Runs between multiples of the divisor become equal elements."""
    a, b = (known[operand] for operand in op.operands)
    divisor = b.low if b.low is not None and b.low == b.high and b.low > 0 else None
    if divisor == 1:
        return a
    runs = _runs_within(a, b)
    constancy = tuple(max(gcd(ka, kb), run) for ka, kb, run in zip(a.constancy, b.constancy, runs, strict=True))
    ones = (1,) * len(constancy)
    plain = ones
    if divisor is not None and divisor == power(divisor):
        starts = zip(a.divisibility, a.contiguity, strict=True)
        plain = tuple(max(1, power(at_starts(d, c, 1)) // divisor) for d, c in starts)
    found = AxisInfo(plain, ones, constancy)
    if a.low is None or a.low < 0 or a.high is None or b.low is None or b.low < 1:
        return found
    return replace(found, low=0, high=a.high // b.low)


def _rem(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    """Runs go on up to multiples of the divisor."""
    a, b = (known[operand] for operand in op.operands)
    runs = _runs_within(a, b)
    found = AxisInfo(joined(a, b, runs), runs, tuple(map(gcd, a.constancy, b.constancy)))
    if a.low is None or a.low < 0 or b.low is None or b.low < 1 or b.high is None:
        return found
    return replace(found, low=0, high=b.high - 1)


def _runs_within(a: AxisInfo, b: AxisInfo) -> tuple[int, ...]:
    """How long runs of `a` are that surely lie between two multiples of `b`, which is the same along them.

    Division truncates: a run below zero may break at a multiple. An `a` of unknown range is taken for not negative, as in Triton.
    """
    if a.low is not None and a.low < 0:
        return (1,) * len(a.contiguity)
    columns = zip(a.contiguity, b.constancy, a.divisibility, b.divisibility, strict=True)
    return tuple(gcd(gcd(ca, kb), gcd(power(da), power(db))) for ca, kb, da, db in columns)


def _select(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    condition, a, b = (known[operand] for operand in op.operands)
    runs = tuple(gcd(ca, cb, k) for ca, cb, k in zip(a.contiguity, b.contiguity, condition.constancy, strict=True))
    constancy = tuple(gcd(ka, kb, k) for ka, kb, k in zip(a.constancy, b.constancy, condition.constancy, strict=True))
    return AxisInfo(joined(a, b, runs), runs, constancy, lowest(a.low, b.low), highest(a.high, b.high))


def _compare(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    """How many neighbours surely compare alike: runs against constants break only at multiples of what divides both."""
    a, b = (known[operand] for operand in op.operands)
    constancy = []
    columns = (a.divisibility, b.divisibility, a.contiguity, b.contiguity, a.constancy, b.constancy)
    for da, db, ca, cb, ka, kb in zip(*columns, strict=True):
        alike = gcd(ka, kb)
        if op.row.name in ("lts", "ges") and ca > 1 and kb > 1:
            alike = max(alike, gcd(gcd(ca, kb), gcd(power(da), power(db))))
        elif op.row.name in ("gts", "les") and cb > 1 and ka > 1:
            alike = max(alike, gcd(gcd(cb, ka), gcd(power(da), power(db))))
        constancy.append(alike)
    ones = (1,) * len(constancy)
    return AxisInfo(ones, ones, tuple(constancy), *_outcome(op.row.name, a, b))


def _outcome(row: str, a: AxisInfo, b: AxisInfo) -> tuple[int, int]:
    """What a comparison of integers with signs is at least and at most: it may be known of all that the ranges allow."""
    if row in ("gts", "les"):  # b < a, b >= a
        a, b = b, a
    negated = row in ("ges", "les")
    if row not in _ORDERS:
        return 0, 1
    if a.high is not None and b.low is not None and a.high < b.low:
        return (0, 0) if negated else (1, 1)
    if a.low is not None and b.high is not None and a.low >= b.high:
        return (1, 1) if negated else (0, 0)
    return 0, 1


def _and(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    """Low bits that are zero in one are zero in both."""
    return _each(max, *(known[operand] for operand in op.operands))


def _or(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    """Or, exclusive or, the smaller, the larger: low bits that are zero in both stay so."""
    return _each(gcd, *(known[operand] for operand in op.operands))


def _each(chosen: Callable[[int, int], int], a: AxisInfo, b: AxisInfo) -> AxisInfo:
    """Element by element, with no runs."""
    starts = zip(a.divisibility, b.divisibility, a.contiguity, b.contiguity, strict=True)
    divisibility = tuple(chosen(power(at_starts(da, ca, 1)), power(at_starts(db, cb, 1))) for da, db, ca, cb in starts)
    return AxisInfo(divisibility, (1,) * len(divisibility), tuple(map(gcd, a.constancy, b.constancy)))


def _trunci(op: ElementwiseOp, known: AxisInfoAnalysis) -> AxisInfo:
    """What surely fits stays as it is; of the rest the low bits do, but runs may break."""
    facts = known[op.operands[0]]
    within = _within(facts, _bits(op))
    return within if within.low is not None else _each(max, facts, facts)


_RULES: dict[type[Operation], _Rule] = {
    ops.ConstantOp: _constant, ops.IotaOp: _iota, ops.ProgramIdOp: _program_id, ops.NumProgramsOp: _num_programs,
    ops.ReduceOp: _combine, ops.ScanOp: _combine, ops.AddPtrOp: _addptr,
}
_ROW_RULES: dict[str, _Rule] = {
    "addi": _addi, "subi": _subi, "muli": _muli, "shl": _shl, "exts": _cast, "extu": _extu, "select": _select, "andi": _and,
    "trunci": _trunci, "divs": _div, "divu": _div, "rems": _rem, "remu": _rem,
    **dict.fromkeys(("ori", "xori", "mins", "maxs", "minu", "maxu"), _or),
    **dict.fromkeys(("eqi", "nei", "lts", "les", "gts", "ges"), _compare),
}
