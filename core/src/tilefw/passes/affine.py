"""Integer tiles as affine forms: a uniform part plus index times stride in each dim, over polynomials of scalar values.

Sums of offsets may be split, regrouped and extended, as signed offset arithmetic must not wrap (architecture, "Offsets"). Those of
masks may wrap: where nothing proves that one does not (`integer_ranges`), it is no sum (`AffineAnalysis.computed`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Block, Operation, OpResult, SSAValue

from tilefw.passes.fold import constant_of
from tilefw.passes.integer_ranges import IntegerRanges, MeantRanges
from tilefw.passes.rewriting import block_of, insert
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.dim_groups import matching_dims
from tilefw.tile.dialect.elementwise_op import ElementwiseOp, build
from tilefw.tile.dialect.structural_op import StructuralOp

Monomial = tuple[SSAValue, ...]
_MOST_TERMS = 12


@dataclass(frozen=True, slots=True)
class Poly:
    """A sum of integer multiples of products of scalar values; the empty product is the constant term."""

    terms: frozenset[tuple[Monomial, int]] = frozenset()

    @staticmethod
    def of(terms: dict[Monomial, int]) -> Poly:
        """The polynomial with zero terms left out."""
        return Poly(frozenset((m, c) for m, c in terms.items() if c))

    @staticmethod
    def constant(number: int) -> Poly:
        return Poly.of({(): number})

    @staticmethod
    def atom(value: SSAValue) -> Poly:
        return Poly(frozenset({((value,), 1)}))

    def __add__(self, other: Poly) -> Poly:
        total = dict(self.terms)
        for monomial, coefficient in other.terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return Poly.of(total)

    def __neg__(self) -> Poly:
        return Poly(frozenset((m, -c) for m, c in self.terms))

    def __sub__(self, other: Poly) -> Poly:
        return self + -other

    def __mul__(self, other: Poly) -> Poly:
        total: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in other.terms:
                monomial = tuple(sorted(m1 + m2, key=id))
                total[monomial] = total.get(monomial, 0) + c1 * c2
        return Poly.of(total)

    @property
    def number(self) -> int | None:
        """The constant that this is; None for any other polynomial."""
        if not self.terms:
            return 0
        (monomial, coefficient), *more = self.terms
        return None if more or monomial else coefficient

    @property
    def is_wide(self) -> bool:
        """Whether an integer of 64 bits is in it."""
        return any(atom.type == types.i64 for monomial, _ in self.terms for atom in monomial)


ZERO = Poly()
ONE = Poly.constant(1)


@dataclass(frozen=True, slots=True)
class Affine:
    """`uniform` + Σ index_d · `strides[d]`; dims of size 1 have stride 0."""

    uniform: Poly
    strides: tuple[Poly, ...] = ()

    def __add__(self, other: Affine) -> Affine:
        return Affine(self.uniform + other.uniform, tuple(a + b for a, b in zip(self.strides, other.strides, strict=True)))

    def __neg__(self) -> Affine:
        return Affine(-self.uniform, tuple(-s for s in self.strides))

    def scaled(self, factor: Poly) -> Affine:
        """This times a uniform factor."""
        return Affine(self.uniform * factor, tuple(s * factor for s in self.strides))

    @property
    def is_uniform(self) -> bool:
        return all(s == ZERO for s in self.strides)


@dataclass(slots=True)
class AffineAnalysis:
    """Affine forms of values, computed once each; `known` remembers a scalar for each polynomial that one has, one computed in 64
    bits before one of 32, which may have wrapped. What computes offsets does not wrap (`offset_ops`), nor what `ranges` prove.

    Of masks only those of one access are `computed` at a time, and of offsets then that one's alone do not wrap (`look_at`).
    `order` numbers scalars as they were met, so that what is made from them does not depend on addresses of objects.
    """

    offset_ops: Collection[Operation] = frozenset()
    ranges: IntegerRanges | None = None
    known: dict[Poly, SSAValue] = field(default_factory=dict)
    order: dict[SSAValue, int] = field(default_factory=dict)
    _scalars: dict[SSAValue, Poly] = field(default_factory=dict)
    _tiles: dict[SSAValue, Affine | None] = field(default_factory=dict)
    _exact: dict[SSAValue, bool] = field(default_factory=dict)
    _own: Collection[Operation] | None = None
    _computed: dict[SSAValue, Affine | None] = field(default_factory=dict)
    _sums: dict[SSAValue, bool] = field(default_factory=dict)

    def look_at(self, own: Collection[Operation] | None) -> None:
        """Take what is `computed` for that of an access whose address these ops make: they do not wrap where it accesses. Elsewhere
        they may, and so may those of an access that another mask keeps from it. None: of no access, and no ops of offsets wrap."""
        self._own = own
        self._computed.clear()
        self._sums.clear()

    def scalar(self, value: SSAValue) -> Poly:
        """A scalar integer as a polynomial; itself where its op is not linear."""
        found = self._scalars.get(value)
        if found is None:
            self.order[value] = len(self.order)
            found = self._scalar(value)
            if len(found.terms) > _MOST_TERMS:
                found = Poly.atom(value)
            self._scalars[value] = found
            known = self.known.setdefault(found, value)
            wider = known.type != types.i64 and value.type == types.i64 and found != Poly.atom(known) and not _is_extended(value)
            if wider or (not self.is_exact(known) and self.is_exact(value)):
                self.known[found] = value
        return found

    def is_exact(self, value: SSAValue) -> bool:
        """Whether a scalar is what its polynomial says, in as many bits as that takes."""
        op = value.owner
        if self.scalar(value) == Poly.atom(value) or not isinstance(op, ElementwiseOp) or op in self.offset_ops:
            return True
        if value not in self._exact:
            self._exact[value] = self._has_room(value, op) and all(map(self.is_exact, op.operands))
        return self._exact[value]

    def as_computed(self, value: SSAValue) -> Poly:
        """What a scalar is: one that may have wrapped is itself, and not what its terms add up to."""
        found = self.scalar(value)
        if self.is_sum(value):
            return found
        found = Poly.atom(value)
        self.known.setdefault(found, value)
        return found

    def is_sum(self, value: SSAValue) -> bool:
        """Whether a scalar is what its polynomial says where the access that is looked at accesses."""
        op = value.owner
        if self.scalar(value) == Poly.atom(value) or not isinstance(op, ElementwiseOp) or op in self._promised:
            return True
        if value not in self._sums:
            self._sums[value] = self._has_room(value, op) and all(map(self.is_sum, op.operands))
        return self._sums[value]

    def _has_room(self, value: SSAValue, op: ElementwiseOp) -> bool:
        """Whether an op has bits enough, or as many as ops that are made anew have."""
        return value.type == types.i64 or self._never_wraps(op)

    @property
    def _promised(self) -> Collection[Operation]:
        return self.offset_ops if self._own is None else self._own

    def limit(self, value: SSAValue) -> Poly | None:
        """What a scalar is, or all elements of a tile are; None where they differ or no scalar is it."""
        form = self.computed(value) if types.is_tile(value.type) else Affine(self.as_computed(value))
        return form.uniform if form is not None and form.is_uniform else None

    def _scalar(self, value: SSAValue) -> Poly:
        op = value.op if isinstance(value, OpResult) else None
        if isinstance(op, ops.ConstantOp):
            return Poly.constant(int(op.value))
        if isinstance(op, ElementwiseOp):
            rule = _SCALAR_RULES.get(op.row.name)
            if rule is not None and not types.is_bool(value.type):
                return rule(*[self.scalar(o) for o in op.operands])
        return Poly.atom(value)

    def tile(self, value: SSAValue) -> Affine | None:
        """A tile of offsets as an affine form; None where it is not affine."""
        return self._form(value, computed=False)

    def computed(self, value: SSAValue) -> Affine | None:
        """What the ops of any tile of integers make it, as an affine form: as `tile`, but None where one of them may wrap."""
        return self._form(value, computed=True)

    def never_falls(self, value: SSAValue) -> bool:
        """Whether no op that makes a tile from scalars wraps around below the least of its type. An index that wraps above the most
        is a small number, which a mask lets through, and so promised not to; one that wraps below is large, which it keeps off."""
        assert self.ranges is not None
        meant = MeantRanges(self.ranges, self._promised)
        return all(meant.never_falls(op) for op in self._by_promise(value) if types.is_tile(op.results[0].type))

    def never_rises(self, value: SSAValue) -> bool:
        """Whether a limit is what its form says where a mask lets nothing through, too: one that wraps is a small number there."""
        return not self._by_promise(value)

    def _by_promise(self, value: SSAValue) -> list[ElementwiseOp]:
        """The ops of what is `computed` that are only promised not to wrap."""
        found: list[ElementwiseOp] = []
        pending, seen = [value], {value}
        while pending:
            made = pending.pop()
            op, operands = made.owner, list[SSAValue]()
            if isinstance(op, StructuralOp):
                operands += op.moved_operands
            elif isinstance(op, ElementwiseOp) and op.row.name in _TILE_RULES:
                proven = self._never_wraps(op) if types.is_tile(made.type) else self._has_room(made, op)
                if proven or op in self._promised:
                    operands += op.operands
                if not proven and op in self._promised:
                    found.append(op)
            pending += [operand for operand in operands if operand not in seen]
            seen.update(operands)
        return found

    def assume(self, value: SSAValue, form: Affine) -> None:
        """Take a tile of offsets to be of a form, before any that is made of it was asked for."""
        self._tiles[value] = form

    def _form(self, value: SSAValue, computed: bool) -> Affine | None:
        forms = self._computed if computed else self._tiles
        if value not in forms:
            forms[value] = self._tile(value, computed)
        return forms[value]

    def _tile(self, value: SSAValue, computed: bool) -> Affine | None:
        rank = len(types.shape_of(value.type))
        flat = (ZERO,) * rank
        if (literal := constant_of(value)) is not None:
            return Affine(Poly.constant(int(literal)), flat)
        if not isinstance(value, OpResult):
            return None
        op: Any = value.op
        match op:
            case ops.IotaOp():
                return Affine(Poly.constant(op.start), (ONE if op.end - op.start > 1 else ZERO,))
            case ops.SplatOp():
                return Affine(self.as_computed(op.source) if computed else self.scalar(op.source), flat)
            case ops.ReshapeOp() if not types.shape_of(op.source.type):
                return None
            case ops.ExpandDimsOp() | ops.BroadcastOp() | ops.TransOp() | ops.ReshapeOp() | ops.SplitOp():
                inner = self._form(op.source, computed)
                return None if inner is None else _moved(op, inner, value)
            case ops.JoinOp():
                return _joined(*(self._form(operand, computed) for operand in op.operands))
            case ElementwiseOp() if op.row.name in _TILE_RULES and not types.is_bool(op.operands[0].type):
                return self._row(op, computed)
            case _:
                return None

    def _row(self, op: ElementwiseOp, computed: bool) -> Affine | None:
        parts = [self._form(operand, computed) for operand in op.operands]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or (computed and not (op in self._promised or self._never_wraps(op))):
            return None
        return _TILE_RULES[op.row.name](*known)

    def _never_wraps(self, op: ElementwiseOp) -> bool:
        return op.row.name == "exts" or (self.ranges is not None and self.ranges.never_wraps(op))


def _moved(op: Operation, form: Affine, result: SSAValue) -> Affine | None:
    """The form of what a shape op of one operand makes of a tile."""
    match op:
        case ops.ExpandDimsOp():
            return expanded(form, op.axis)
        case ops.TransOp():
            return permuted(form, op.order)
        case ops.ReshapeOp():
            return reshaped(form, types.shape_of(op.source.type), types.shape_of(result.type))
        case ops.SplitOp():
            assert isinstance(result, OpResult)
            return halved(form, result.index)
        case _:
            return form


def _joined(a: Affine | None, b: Affine | None) -> Affine | None:
    if a is None or b is None or a.strides != b.strides:
        return None
    return Affine(a.uniform, (*a.strides, b.uniform - a.uniform))


def _product(x: Affine, y: Affine) -> Affine | None:
    if y.is_uniform:
        return x.scaled(y.uniform)
    return y.scaled(x.uniform) if x.is_uniform else None


def _shifted(x: Affine, y: Affine) -> Affine | None:
    shift = y.uniform.number if y.is_uniform else None
    return x.scaled(Poly.constant(1 << shift)) if shift is not None and 0 <= shift < 63 else None


_TILE_RULES: dict[str, Callable[..., Affine | None]] = {
    "addi": Affine.__add__,
    "subi": lambda x, y: x + -y,
    "muli": _product,
    "shl": _shifted,
    "exts": lambda x: x,
}


def expanded(form: Affine, axis: int) -> Affine:
    """The form of a tile with a new dim of size 1."""
    return Affine(form.uniform, (*form.strides[:axis], ZERO, *form.strides[axis:]))


def permuted(form: Affine, order: Sequence[int]) -> Affine:
    """The form of a tile with permuted dims."""
    return Affine(form.uniform, tuple(form.strides[i] for i in order))


def halved(form: Affine, half: int) -> Affine:
    """The form at index `half` of the last dim."""
    return Affine(form.uniform + form.strides[-1] if half else form.uniform, form.strides[:-1])


def reshaped(form: Affine, source: Sequence[int], result: Sequence[int]) -> Affine | None:
    """The form of a reshaped tile: one dim may become many, and many become one where a step of one is a row of the next."""
    strides = [ZERO] * len(result)
    for old, new in matching_dims(source, result):
        inner = form.strides[old[-1]]
        reach = 1
        for dim in reversed(old):
            if form.strides[dim] != inner * Poly.constant(reach):
                return None
            reach *= source[dim]
        reach = 1
        for dim in reversed(new):
            strides[dim] = inner * Poly.constant(reach)
            reach *= result[dim]
    return Affine(form.uniform, tuple(strides))


def _is_extended(value: SSAValue) -> bool:
    """Whether a value of 64 bits was computed in fewer."""
    return isinstance(value.owner, ElementwiseOp) and value.owner.row.name == "exts"


_SCALAR_RULES: dict[str, Callable[..., Poly]] = {
    "addi": Poly.__add__,
    "subi": Poly.__sub__,
    "muli": Poly.__mul__,
    "exts": lambda x: x,
}


class Materializer:
    """Makes scalar ops that compute polynomials before an op; what an existing value computes is used as it is, where nothing wraps
    but for what the access that the analysis looks at promises: another's index of 32 bits may have wrapped here."""

    def __init__(self, analysis: AffineAnalysis, before: Operation) -> None:
        self._analysis = analysis
        self._before = before

    def value(self, poly: Poly, number_type: Any = None) -> SSAValue:
        """A scalar with the polynomial's value: an existing one, a constant of `number_type` (i32), or new ops in i64."""
        number = poly.number
        if number is not None:
            kind = number_type or (types.i32 if -(2**31) <= number < 2**31 else types.i64)
            return self._insert(ops.ConstantOp(number, kind))
        existing = self._existing(poly)
        return existing if existing is not None and self._analysis.is_sum(existing) else self._sum(poly)

    def _existing(self, poly: Poly) -> SSAValue | None:
        """A scalar of the kernel that computes the polynomial, in whatever bits."""
        found = self._analysis.known.get(poly)
        return found if found is not None and self._visible(found) else None

    def _sum(self, poly: Poly) -> SSAValue:
        """New ops in i64 that compute a polynomial that is no constant."""
        total: SSAValue | None = None
        order = self._analysis.order
        terms = [(sorted(m, key=order.__getitem__), c) for m, c in poly.terms]
        # Added terms first, so that subtracted ones have something to be taken from.
        for monomial, coefficient in sorted(terms, key=lambda term: (term[1] < 0, [order[v] for v in term[0]])):
            taken = total is not None and coefficient < 0
            term = self._term(monomial, -coefficient if taken else coefficient)
            total = term if total is None else self._insert(build("subi" if taken else "addi", total, term))
        assert total is not None
        return total

    def bound(self, limit: Poly, more: Poly) -> SSAValue:
        """`limit` + `more`, where a mask ends, or the nearest that 64 bits hold: an integer of 64 bits may stand for no end."""
        total = limit + more
        if total.number is not None:
            return self.value(Poly.constant(max(-(1 << 63), min(total.number, (1 << 63) - 1))))
        if more == ZERO:
            return self._end(total)
        if not (limit.is_wide or more.is_wide):
            known = self._analysis.known.get(total)
            exact = known is None or known.type == types.i64 or total == Poly.atom(known)
            return self.value(total) if exact else self._sum(total)  # in 32 bits it may wrap, which the mask does not
        first, taken = self._wide(limit), self._wide(-more)
        result = self._insert(build("subi", first, taken))
        least, most = (self._insert(ops.ConstantOp(end, types.i64)) for end in (-(1 << 63), (1 << 63) - 1))
        grown = self._insert(build("gts", result, first))
        if (number := more.number) is not None:  # which it goes beyond one end with
            wrapped = grown if number < 0 else self._insert(build("lts", result, first))
            return self._insert(build("select", wrapped, least if number < 0 else most, result))
        negative = self._insert(build("lts", taken, self._insert(ops.ConstantOp(0, types.i64))))
        end = self._insert(build("select", negative, most, least))
        return self._insert(build("select", self._insert(build("xori", grown, negative)), end, result))

    def _end(self, poly: Poly) -> SSAValue:
        """What a mask compares with: the kernel's own number, which may have wrapped."""
        existing = self._existing(poly)
        return self.value(poly, types.i64) if existing is None else existing

    def _wide(self, poly: Poly) -> SSAValue:
        made = self._end(poly) if poly.number is None else self.value(poly, types.i64)
        return made if made.type == types.i64 else self._insert(build("exts", made, result=types.i64))

    def _term(self, monomial: Sequence[SSAValue], coefficient: int) -> SSAValue:
        product: SSAValue | None = None
        for atom in monomial:
            wide = atom if atom.type == types.i64 else self._insert(build("exts", atom, result=types.i64))
            product = wide if product is None else self._insert(build("muli", product, wide))
        if product is None:
            return self._insert(ops.ConstantOp(coefficient, types.i64))
        if coefficient == 1:
            return product
        return self._insert(build("muli", product, self._insert(ops.ConstantOp(coefficient, types.i64))))

    def _insert(self, op: Operation) -> SSAValue:
        return insert(op, self._before)

    def _visible(self, value: SSAValue) -> bool:
        """Whether the value is defined on the way to the op: in its block before it, or in an enclosing one."""
        block = block_of(value)
        op: Operation | None = self._before
        while op is not None:
            if op.parent is block:
                owner = value.owner
                return isinstance(owner, Block) or owner.is_before_in_block(op)
            op = op.parent_op()
        return False
