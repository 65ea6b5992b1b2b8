"""Facts about integers and pointers: what divides a value, runs of consecutive and of equal elements, and ranges.

Facts flow forward from argument attributes, hints and constants through ops, loops and branches; a loop's carried values
are iterated to a fixed point from the facts of their initial values. The rules are those of Triton's axis analysis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilefw.tile import ops, types
from tilefw.tile.block_ops import LoadBlockOp
from tilefw.tile.elementwise import ElementwiseOp
from tilefw.tile.kernel_info import argument_attributes
from tilefw.tile.memory_ops import LoadOp

_ANY_DIVISOR = 1 << 62  # what divides 0
_ROUNDS = 4  # of a loop's fixed point; facts only ever weaken, so what has not settled by then is given up


@dataclass(frozen=True, slots=True)
class Facts:
    """Per dim (one entry for scalars): the value at the start of each run of `contiguity` consecutive elements is a multiple
    of `divisibility` (of bytes, for pointers), a power of two, as those alone survive arithmetic that wraps; `constancy`
    elements in a row are equal. `low` and `high` bound every element (None: unknown)."""

    divisibility: tuple[int, ...]
    contiguity: tuple[int, ...]
    constancy: tuple[int, ...]
    low: int | None = None
    high: int | None = None

    @property
    def divisor(self) -> int:
        """What divides a scalar (its largest known divisor)."""
        return self.divisibility[0]


class FactsAnalysis:
    """Facts of every value of a module: `facts[value]`."""

    def __init__(self, module: ModuleOp | func.FuncOp) -> None:
        self._facts: dict[SSAValue, Facts] = {}
        for function in module.walk():
            if not isinstance(function, func.FuncOp):
                continue
            for index, argument in enumerate(function.body.block.args):
                self._facts[argument] = _hinted(unknown(argument.type), argument_attributes(function, index))
            self._block(function.body.block)

    def __getitem__(self, value: SSAValue) -> Facts:
        found = self._facts.get(value)
        return unknown(value.type) if found is None else found

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, scf.ForOp):
                self._loop(op)
            elif op.regions:
                self._branch(op)
            else:
                for result in op.results:
                    self._facts[result] = _hinted(self._result(op, result), op.attributes)

    def _result(self, op: Operation, result: SSAValue) -> Facts:
        if not (types.is_int(result.type) or types.is_pointer(result.type)):
            return unknown(result.type)
        rule = _ROW_RULES.get(op.row.name) if isinstance(op, ElementwiseOp) else _RULES.get(op.__class__)
        return unknown(result.type) if rule is None else rule(op, self)

    def _loop(self, loop: scf.ForOp) -> None:
        block = loop.body.block
        lower, upper, step = self[loop.lb], self[loop.ub], self[loop.step]
        high = None if upper.high is None else upper.high - 1
        self._facts[block.args[0]] = Facts((gcd(lower.divisor, step.divisor),), (1,), (1,), lower.low, high)
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
        ends: list[list[Facts]] = []
        for region in op.regions:
            for block in region.blocks:
                self._block(block)
                if block.last_op is not None:
                    ends.append([self[v] for v in block.last_op.operands])
        if isinstance(op, scf.IfOp) and len(ends) == 2:
            self._facts.update(zip(op.results, (meet(a, b) for a, b in zip(*ends, strict=True)), strict=True))


def unknown(type: Attribute) -> Facts:
    """Nothing is known: everything divides by 1."""
    rank = max(1, len(types.shape_of(type)))
    ones = (1,) * rank
    return Facts(ones, ones, ones)


def meet(a: Facts, b: Facts) -> Facts:
    """What holds on both ways."""
    runs = tuple(map(gcd, a.contiguity, b.contiguity))
    return Facts(
        _joined(a, b, runs), runs, tuple(map(gcd, a.constancy, b.constancy)), _lowest(a.low, b.low), _highest(a.high, b.high)
    )


def _joined(a: Facts, b: Facts, runs: tuple[int, ...]) -> tuple[int, ...]:
    """What divides the starts of `runs` in both."""
    starts = zip(a.divisibility, b.divisibility, a.contiguity, b.contiguity, runs, strict=True)
    return tuple(gcd(_at_starts(da, ca, run), _at_starts(db, cb, run)) for da, db, ca, cb, run in starts)


def _at_starts(divisor: int, contiguity: int, run: int) -> int:
    """What divides every `run`-th element, of runs of `contiguity` that begin at multiples of `divisor`."""
    return divisor if contiguity in (1, run) else gcd(divisor, run)


def _lowest(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else min(a, b)


def _highest(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a, b)


def _hinted(facts: Facts, attributes: Any) -> Facts:
    """The facts with what `multiple_of`, `max_contiguous`, `max_constancy` and the launch say."""
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
            numbers = tuple(_power(n) for n in numbers)
        if len(numbers) == len(known):
            facts = replace(facts, **{field: tuple(max(1, k, n) for k, n in zip(known, numbers, strict=True))})
    return facts


def _power(number: int) -> int:
    """The largest power of two that divides a number; of 0, all do."""
    return number & -number if number else _ANY_DIVISOR


# One rule an op --------------------------------------------------------------------------------------------------------

_Rule = Callable[[Any, FactsAnalysis], Facts]


def _constant(op: ops.ConstantOp, _: FactsAnalysis) -> Facts:
    shape = types.shape_of(op.results[0].type) or (1,)
    number = int(op.value)
    return Facts((_power(number),) * len(shape), (1,) * len(shape), shape, number, number)


def _iota(op: ops.IotaOp, _: FactsAnalysis) -> Facts:
    return Facts((_power(op.start),), (op.end - op.start,), (1,), op.start, op.end - 1)


def _program_id(op: Any, _: FactsAnalysis) -> Facts:
    return Facts((1,), (1,), (1,), 0, 2**31 - 1)


def _splat(op: ops.SplatOp, known: FactsAnalysis) -> Facts:
    shape = types.shape_of(op.results[0].type)
    inner = known[op.source]
    return Facts((inner.divisor,) * len(shape), (1,) * len(shape), shape, inner.low, inner.high)


def _broadcast(op: ops.BroadcastOp, known: FactsAnalysis) -> Facts:
    inner = known[op.source]
    source, result = types.shape_of(op.source.type), types.shape_of(op.results[0].type)
    constancy = tuple(r if s == 1 else c for s, r, c in zip(source, result, inner.constancy, strict=True))
    return replace(inner, constancy=constancy)


def _expand_dims(op: ops.ExpandDimsOp, known: FactsAnalysis) -> Facts:
    inner, axis = known[op.source], op.axis
    # The new dim holds one element, which begins a run wherever it stands: its divisor is that of any element.
    alone = 1 if any(c > 1 for c in inner.contiguity) else max(inner.divisibility)

    def insert(values: tuple[int, ...], value: int) -> tuple[int, ...]:
        return (*values[:axis], value, *values[axis:])

    return Facts(
        insert(inner.divisibility, alone), insert(inner.contiguity, 1), insert(inner.constancy, 1), inner.low, inner.high
    )


def _trans(op: ops.TransOp, known: FactsAnalysis) -> Facts:
    inner = known[op.source]

    def permute(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(values[i] for i in op.order)

    return Facts(permute(inner.divisibility), permute(inner.contiguity), permute(inner.constancy), inner.low, inner.high)


def _sum(a: Facts, b: Facts, sign: int) -> Facts:
    """a + b, or a - b: a run against equal elements stays one; run against run does not."""
    pairs = zip(a.contiguity, b.contiguity, a.constancy, b.constancy, strict=True)
    runs = tuple(max(gcd(ca, kb), gcd(ka, cb) if sign > 0 else 1) for ca, cb, ka, kb in pairs)
    low, high = (b.low, b.high) if sign > 0 else (_negated(b.high), _negated(b.low))
    constancy = tuple(map(gcd, a.constancy, b.constancy))
    return Facts(_joined(a, b, runs), runs, constancy, _plus(a.low, low), _plus(a.high, high))


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _negated(a: int | None) -> int | None:
    return None if a is None else -a


def _within(facts: Facts, bits: int) -> Facts:
    """Ranges that leave the width say nothing."""
    limit = 1 << (bits - 1)
    if facts.low is None or facts.high is None or facts.low < -limit or facts.high >= limit:
        return replace(facts, low=None, high=None)
    return facts


def _bits(op: Operation) -> int:
    return types.dtype_of(op.results[0].type).bits


def _addi(op: ElementwiseOp, known: FactsAnalysis) -> Facts:
    return _within(_sum(known[op.operands[0]], known[op.operands[1]], 1), _bits(op))


def _subi(op: ElementwiseOp, known: FactsAnalysis) -> Facts:
    return _within(_sum(known[op.operands[0]], known[op.operands[1]], -1), _bits(op))


def _addptr(op: ops.AddPtrOp, known: FactsAnalysis) -> Facts:
    offset = known[op.offset]
    size = types.dtype_of(types.pointee_of(op.pointer.type)).storage_bits // 8
    scaled = replace(offset, divisibility=tuple(min(_ANY_DIVISOR, d * size) for d in offset.divisibility), low=None, high=None)
    return _sum(known[op.pointer], scaled, 1)


def _muli(op: ElementwiseOp, known: FactsAnalysis) -> Facts:
    a, b = (known[operand] for operand in op.operands)
    runs = tuple(_run_of_product(a, b, dim) for dim in range(len(a.contiguity)))
    columns = zip(a.divisibility, b.divisibility, a.contiguity, b.contiguity, runs, strict=True)
    divisibility = tuple(min(_ANY_DIVISOR, _at_starts(x, ca, run) * _at_starts(y, cb, run)) for x, y, ca, cb, run in columns)
    ends = None
    if None not in (a.low, a.high, b.low, b.high):
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]  # type: ignore[operator]
    low, high = (min(ends), max(ends)) if ends else (None, None)
    return _within(Facts(divisibility, runs, tuple(map(gcd, a.constancy, b.constancy)), low, high), _bits(op))


def _run_of_product(a: Facts, b: Facts, dim: int) -> int:
    if b.low == b.high == 1:
        return a.contiguity[dim]
    return b.contiguity[dim] if a.low == a.high == 1 else 1


def _cast(op: ElementwiseOp, known: FactsAnalysis) -> Facts:
    facts = known[op.operands[0]]
    # i1 is read as unsigned everywhere but here, where its one is -1.
    return replace(unknown(op.results[0].type), constancy=facts.constancy) if types.is_bool(op.operands[0].type) else facts


def _extu(op: ElementwiseOp, known: FactsAnalysis) -> Facts:
    facts = known[op.operands[0]]
    if facts.low is not None and facts.low >= 0:
        return facts
    # A negative number becomes one 2^width larger: powers of two still divide it, and a run breaks at zero.
    plain = tuple(_power(_at_starts(d, c, 1)) for d, c in zip(facts.divisibility, facts.contiguity, strict=True))
    return Facts(plain, (1,) * len(plain), facts.constancy)


def _shl(op: ElementwiseOp, known: FactsAnalysis) -> Facts:
    a, shift = known[op.operands[0]], known[op.operands[1]]
    if shift.low is None or shift.low != shift.high or not 0 <= shift.low < _bits(op):
        return unknown(op.results[0].type)
    factor = 1 << shift.low
    plain = tuple(min(_ANY_DIVISOR, _at_starts(d, c, 1) * factor) for d, c in zip(a.divisibility, a.contiguity, strict=True))
    low, high = (None if end is None else end * factor for end in (a.low, a.high))
    return _within(Facts(plain, (1,) * len(plain), a.constancy, low, high), _bits(op))


def _select(op: ElementwiseOp, known: FactsAnalysis) -> Facts:
    condition, a, b = (known[operand] for operand in op.operands)
    runs = tuple(gcd(ca, cb, k) for ca, cb, k in zip(a.contiguity, b.contiguity, condition.constancy, strict=True))
    constancy = tuple(gcd(ka, kb, k) for ka, kb, k in zip(a.constancy, b.constancy, condition.constancy, strict=True))
    return Facts(_joined(a, b, runs), runs, constancy, _lowest(a.low, b.low), _highest(a.high, b.high))


def _compare(op: ElementwiseOp, known: FactsAnalysis) -> Facts:
    """How many neighbours surely compare alike: runs against constants break only at multiples of what divides both."""
    a, b = (known[operand] for operand in op.operands)
    constancy = []
    columns = (a.divisibility, b.divisibility, a.contiguity, b.contiguity, a.constancy, b.constancy)
    for da, db, ca, cb, ka, kb in zip(*columns, strict=True):
        alike = gcd(ka, kb)
        if op.row.name in ("lts", "ges") and ca > 1 and kb > 1:
            alike = max(alike, gcd(gcd(ca, kb), gcd(_power(da), _power(db))))
        elif op.row.name in ("gts", "les") and cb > 1 and ka > 1:
            alike = max(alike, gcd(gcd(cb, ka), gcd(_power(da), _power(db))))
        constancy.append(alike)
    ones = (1,) * len(constancy)
    return Facts(ones, ones, tuple(constancy), 0, 1)


def _and(op: ElementwiseOp, known: FactsAnalysis) -> Facts:
    """Low bits that are zero in one are zero in both."""
    return _each(max, *(known[operand] for operand in op.operands))


def _or(op: ElementwiseOp, known: FactsAnalysis) -> Facts:
    """Or, exclusive or, the smaller, the larger: low bits that are zero in both stay so."""
    return _each(gcd, *(known[operand] for operand in op.operands))


def _each(joined: Callable[[int, int], int], a: Facts, b: Facts) -> Facts:
    """Element by element, with no runs."""
    starts = zip(a.divisibility, b.divisibility, a.contiguity, b.contiguity, strict=True)
    divisibility = tuple(joined(_power(_at_starts(da, ca, 1)), _power(_at_starts(db, cb, 1))) for da, db, ca, cb in starts)
    return Facts(divisibility, (1,) * len(divisibility), tuple(map(gcd, a.constancy, b.constancy)))


def _trunci(op: ElementwiseOp, known: FactsAnalysis) -> Facts:
    """What surely fits stays as it is; of the rest the low bits do, but runs may break."""
    facts = known[op.operands[0]]
    within = _within(facts, _bits(op))
    return within if within.low is not None else _each(max, facts, facts)


def _load(op: LoadOp | LoadBlockOp, known: FactsAnalysis) -> Facts:
    return unknown(op.results[0].type)


_RULES: dict[type[Operation], _Rule] = {
    ops.ConstantOp: _constant, ops.IotaOp: _iota, ops.ProgramIdOp: _program_id, ops.NumProgramsOp: _program_id, ops.SplatOp: _splat,
    ops.BroadcastOp: _broadcast, ops.ExpandDimsOp: _expand_dims, ops.TransOp: _trans, ops.AddPtrOp: _addptr, LoadOp: _load,
    LoadBlockOp: _load,
}
_ROW_RULES: dict[str, _Rule] = {
    "addi": _addi, "subi": _subi, "muli": _muli, "shl": _shl, "exts": _cast, "extu": _extu, "select": _select, "andi": _and,
    "trunci": _trunci, **dict.fromkeys(("ori", "xori", "mins", "maxs", "minu", "maxu"), _or),
    **dict.fromkeys(("eqi", "nei", "lts", "les", "gts", "ges"), _compare),
}
