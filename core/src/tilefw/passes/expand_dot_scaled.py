"""Products with scales for targets that lack them: products of the bare elements, group by group, whose sums are scaled.

For K elements in G groups, `acc + Σ_k a·s·b·t` is `acc + Σ_g (Σ_k∈g a·b)·s_g·t_g`. That is exact where scaling the elements first
is not: an element of e4m3 times 2^127 or 2^-127 leaves the range of bf16 and f32, although its product with an element at the
other end of the range is an ordinary number. The sum of a group's bare products, in contrast, has few places: it is at most 2^38
and a multiple of 2^-48 for all formats but bf16, so f32 neither overflows nor underflows, and the scale adds to its exponent.

Cheap on matrix units: the elements are multiplied as they are (`tile.dot` of 8-bit floats, natively where a chip has it, else of
f16), without one operation on each element; e2m1 becomes e5m2 by shifting its bits, which divides it by 2^14, and e5m2 is the upper
byte of f16. Each group then costs four operations per element of the result (two where one operand has scales), however large the
group.

A scale 2^s with s of 8 bits is the product of two factors of about half of s. Both factors of both scales multiply the sum in an
order in which no partial product overflows or underflows unless the result does: first the halves that keep it near 1, then the
product of the others, with the addition.

Operands of bf16 have no such few places. Scales of the other operand multiply its elements within ±2^100, and what is left of them
the sums. Scaled elements of bf16, and bf16 by f16, are multiplied in f64, where all products are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec

from tilefw.api.dtypes import DTYPES
from tilefw.passes.pack_along_k import packed_along_k
from tilefw.passes.rewriting import erase, insert, place_before, replace
from tilefw.tile import types
from tilefw.tile.dialect import elementwise_op, ops
from tilefw.tile.dialect.dot_scaled_op import DotScaledOp, ScaledOperand
from tilefw.tile.nested_ops import nested_ops

_F32_BIAS, _F32_MANTISSA = 127, 23
_F64_BIAS, _F64_MANTISSA = 1023, 52
_SCALE_BIAS, _NAN_SCALE = 127, 0xFF
# What an element of e2m1 is divided by when its bits are those of an e5m2: the difference of the exponents' biases, 15 - 1.
_E2M1_SHIFT = 14
_CLAMP = 100
_FP8 = ("fp8e4nv", "fp8e5")
_E4M3, _E5M2 = (types.ir_type(DTYPES[name]) for name in _FP8)


Takes = Callable[[DotScaledOp], bool]


@dataclass(frozen=True)
class ExpandDotScaledPass(ModulePass):
    """Writes products with scales as products of groups, but for those that the backend `takes`."""

    takes: Takes | None = None
    name = "expand-dot-scaled"

    @classmethod
    def from_pass_spec(cls, spec: ArgSpec) -> ExpandDotScaledPass:
        """The pass of a textual pipeline, which leaves no product with scales."""
        return cls()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in [inner for inner in nested_ops(op) if isinstance(inner, DotScaledOp)]:
            if self.takes is None or not _kept(found, self.takes):
                expand(found)


def _kept(op: DotScaledOp, takes: Takes) -> bool:
    """Whether the backend takes a product as it is, or packed along K, which then is in its place."""
    if takes(op):
        return True
    before = op.prev_op
    packed = packed_along_k(op)
    if packed is not None and takes(packed):
        replace(op, packed.results[0])
        return True
    while (made := op.prev_op) is not before and made is not None:
        erase(made)
    return False


def expand(op: DotScaledOp) -> None:
    """Put ops without scales in the place of `op`."""
    a, b = op.left, op.right
    formats = {a.format.name, b.format.name}
    scaled_bf16 = any(operand.format.name == "bf16" and operand.scale is not None for operand in (a, b))
    if scaled_bf16 or formats == {"bf16", "fp16"}:
        replace(op, _wide(op))
    else:
        replace(op, _Expansion(op, _common(formats)).sum())


def _common(formats: set[str]) -> Attribute | None:
    """The type in which bare elements are multiplied; None for 8-bit floats, each in its own."""
    if "bf16" in formats:
        return types.bf16
    return None if formats <= {"fp4e2m1", *_FP8} else types.f16


@dataclass(frozen=True, slots=True)
class _Places:
    """Makes ops before `at`."""

    at: Operation

    def row(self, name: str, *operands: SSAValue, element: Attribute | None = None) -> SSAValue:
        """An op of the elementwise table; a cast's result has elements of `element`."""
        result = None if element is None else types.with_element(operands[0].type, element)
        return insert(elementwise_op.build(name, *operands, result=result), self.at)

    def constant(self, number: float | int, like: SSAValue) -> SSAValue:
        return insert(ops.ConstantOp(number, like.type), self.at)

    def with_number(self, name: str, value: SSAValue, number: float | int) -> SSAValue:
        return self.row(name, value, self.constant(number, value))

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        return insert(ops.ReshapeOp(value, types.tile(tuple(shape), types.element_of(value.type))), self.at)

    def trans(self, value: SSAValue, order: Sequence[int]) -> SSAValue:
        return value if tuple(order) == tuple(range(len(order))) else insert(ops.TransOp(value, order), self.at)

    def split(self, value: SSAValue) -> list[SSAValue]:
        made = ops.SplitOp(value)
        place_before(made, self.at)
        return list(made.results)

    def along(self, vector: SSAValue, shape: tuple[int, ...], axis: int) -> SSAValue:
        """A tile without dim `axis`, repeated along it."""
        lifted = insert(ops.ExpandDimsOp(vector, axis), self.at)
        return insert(ops.BroadcastOp(lifted, types.tile(shape, types.element_of(vector.type))), self.at)

    def parts(self, value: SSAValue, axis: int, count: int) -> list[SSAValue]:
        """`count` tiles in order, each a part of `value` along `axis`."""
        if count == 1:
            return [value]
        shape = types.shape_of(value.type)
        size = shape[axis] // count
        apart = self.reshape(value, (*shape[:axis], count, size, *shape[axis + 1 :]))
        rank = len(shape) + 1
        found = [self.trans(apart, [dim for dim in range(rank) if dim != axis] + [axis])]
        return self.halved(found[0], (*shape[:axis], size, *shape[axis + 1 :]), count)

    def halved(self, value: SSAValue, shape: tuple[int, ...], count: int) -> list[SSAValue]:
        """The `count` tiles of a last dim: those of even number and those of odd number, in turns."""
        if count > 2:
            value = self.reshape(value, (*shape, count // 2, 2))
        even, odd = self.split(value)
        if count == 2:
            return [even, odd]
        pairs = zip(self.halved(even, shape, count // 2), self.halved(odd, shape, count // 2), strict=True)
        return [part for pair in pairs for part in pair]

    def e2m1_as_e5m2(self, operand: ScaledOperand) -> SSAValue:
        """The elements of an operand of bytes, divided by 2^14: exponent and mantissa keep their places before one more bit."""
        low = self._e5m2("shl", 4, "shl", 1, operand.value)
        high = self._e5m2("shru", 0, "shru", 3, operand.value)
        pair = insert(ops.JoinOp(low, high), self.at)
        last, dim = len(operand.shape), operand.packed_dim
        order = [*range(dim + 1), last, *range(dim + 1, last)]
        return self.row("bitcast", self.reshape(self.trans(pair, order), operand.shape), element=_E5M2)

    def _e5m2(self, sign_by: str, sign: int, rest_by: str, rest: int, value: SSAValue) -> SSAValue:
        """One of the elements of each byte, whose parts those shifts bring to their places in an e5m2."""
        moved = self.with_number(sign_by, value, sign) if sign else value
        parts = self.with_number("andi", moved, 0x80), self.with_number("andi", self.with_number(rest_by, value, rest), 0x0E)
        return self.row("ori", *parts)

    def power(self, exponent: SSAValue, element: Attribute) -> SSAValue:
        """2^(x - bias) as f32 or f64, of integers of its width."""
        mantissa = _F32_MANTISSA if element == types.f32 else _F64_MANTISSA
        return self.row("bitcast", self.with_number("shl", exponent, mantissa), element=element)

    def or_nan(self, value: SSAValue, codes: SSAValue) -> SSAValue:
        """`value`, NaN where the code of the scale of e8m0 is NaN's."""
        return self.row("select", self.with_number("eqi", codes, _NAN_SCALE), self.constant(nan, value), value)

    def to_elements(self, operand: ScaledOperand, scales: SSAValue) -> SSAValue:
        """Scales, of any type, repeated for the elements of their groups: a tile of the operand's shape."""
        shape = types.shape_of(scales.type)
        size = operand.shape[operand.k_dim] // operand.groups
        each = self.along(scales, (*shape, size), len(shape))
        flat = self.reshape(each, (*shape[:-1], shape[-1] * size))
        rank = len(shape)
        return flat if operand.left else self.trans(flat, [*range(rank - 2), rank - 1, rank - 2])


@dataclass(frozen=True, slots=True)
class _Factor:
    """An operand made ready: bare elements, which are the operand's divided by 2^`shift`, and what sums are multiplied by.

    `first` and `second` have a tile of a factor for each row of a, or column of b, with the groups in the last dim: `first` brings
    a sum nowhere near the ends of f32's range, `second` where it belongs.
    """

    value: SSAValue
    shift: int = 0
    first: SSAValue | None = None
    second: SSAValue | None = None


class _Expansion:
    """One product with scales, whose bare elements are multiplied as they are (`common` None), in f16, or in bf16."""

    def __init__(self, op: DotScaledOp, common: Attribute | None) -> None:
        self.op = op
        self.common = common
        self.at = _Places(op)
        self.shape = types.shape_of(op.acc.type)

    def sum(self) -> SSAValue:
        """The result of the product."""
        a, b = (self._factor(operand) for operand in (self.op.left, self.op.right))
        groups = self.op.groups if any(f.first is not None for f in (a, b)) else 1
        a, b = self._with_shift(a, b)
        vectors = [[self._vectors(f, f.first, left), self._vectors(f, f.second, left)] for f, left in ((a, True), (b, False))]
        rank = len(self.shape)
        total = self.op.acc
        lefts, rights = self.at.parts(a.value, rank - 1, groups), self.at.parts(b.value, rank - 2, groups)
        for group, (left, right) in enumerate(zip(lefts, rights, strict=True)):
            first, second = ([v[stage][group] for v in vectors if v[stage]] for stage in (0, 1))
            total = self._add(left, right, first, second, a.shift + b.shift, total)
        return total

    def _add(
        self, left: SSAValue, right: SSAValue, first: list[SSAValue], second: list[SSAValue], shift: int, total: SSAValue,
    ) -> SSAValue:
        """`total` plus the products of one group."""
        if not (first or second or shift):
            return insert(ops.DotOp(left, right, total), self.op)
        found = insert(ops.DotOp(left, right, self.at.constant(0.0, total)), self.op)
        if not (first or second):
            second = [self.at.constant(2.0**shift, total)]
        if not second:
            second = [first.pop()]
        for factor in first:
            found = self.at.row("mulf", found, factor)
        last, *others = second
        for factor in others:
            last = self.at.row("mulf", last, factor)
        return self.at.row("fma", found, last, total)

    def _vectors(self, factor: _Factor, scales: SSAValue | None, left: bool) -> list[SSAValue]:
        """A tile of the result's shape for each group; none without scales."""
        if scales is None:
            return []
        shape = types.shape_of(scales.type)
        rank = len(self.shape)
        each = [self.at.reshape(scales, shape[:-1])] if shape[-1] == 1 else self.at.halved(scales, shape[:-1], shape[-1])
        return [self.at.along(vector, self.shape, rank - 1 if left else rank - 2) for vector in each]

    def _with_shift(self, a: _Factor, b: _Factor) -> tuple[_Factor, _Factor]:
        """The factors with what their elements were divided by as part of the first scales, where there are any."""
        shift = a.shift + b.shift
        if not shift or (a.first is None and b.first is None):
            return a, b
        if a.first is not None:
            return _Factor(a.value, 0, self._times(a.first, shift), a.second), _Factor(b.value, 0, b.first, b.second)
        assert b.first is not None
        return _Factor(a.value, 0), _Factor(b.value, 0, self._times(b.first, shift), b.second)

    def _times(self, scales: SSAValue, shift: int) -> SSAValue:
        return self.at.with_number("mulf", scales, 2.0**shift)

    def _factor(self, operand: ScaledOperand) -> _Factor:
        value, shift = self._bare(operand)
        if operand.scale is None:
            return _Factor(value, shift)
        if self.common == types.bf16:
            return self._scaled_elements(operand, value, shift)
        if types.is_float(operand.scale.type):
            return _Factor(value, shift, self.at.row("castf", operand.scale, element=types.f32))
        codes = self.at.row("extu", operand.scale, element=types.i32)
        half = self.at.with_number("shru", codes, 1)
        rest = self.at.row("subi", codes, half)
        # half - 63 and rest - 64 for a, half - 64 and rest - 63 for b: all of a's times b's are between 2^-127 and 2^127.
        more = 0 if operand.left else 1
        first = self.at.power(self.at.with_number("addi", half, _F32_BIAS - 63 - more), types.f32)
        second = self.at.power(self.at.with_number("addi", rest, _F32_BIAS - 64 + more), types.f32)
        return _Factor(value, shift, self.at.or_nan(first, codes), second)

    def _bare(self, operand: ScaledOperand) -> tuple[SSAValue, int]:
        """The elements in the type in which they are multiplied, and by which power of two they are divided."""
        value, shift = (self.at.e2m1_as_e5m2(operand), _E2M1_SHIFT) if operand.packed else (operand.value, 0)
        element = types.element_of(value.type)
        wanted = self.common
        if wanted is None and types.dtype_of(element).name not in _FP8:
            wanted = _E4M3
        return (value if wanted in (None, element) else self.at.row("castf", value, element=wanted)), shift

    def _scaled_elements(self, operand: ScaledOperand, value: SSAValue, shift: int) -> _Factor:
        """Elements in bf16 times what they can take of their scales, and the rest for the sums.

        Scales of e4m3 they take whole: products of two numbers of at most four bits have eight, as bf16 has.
        """
        assert operand.scale is not None
        if types.is_float(operand.scale.type):
            scales = self.at.row("castf", operand.scale, element=types.bf16)
            return _Factor(self.at.row("mulf", value, self.at.to_elements(operand, scales)), shift)
        codes = self.at.row("extu", operand.scale, element=types.i32)
        taken = self.at.with_number("maxs", self.at.with_number("mins", codes, _SCALE_BIAS + _CLAMP), _SCALE_BIAS - _CLAMP)
        near = self.at.row("castf", self.at.power(taken, types.f32), element=types.bf16)
        rest = self.at.with_number("addi", self.at.row("subi", codes, taken), _F32_BIAS)
        left = self.at.or_nan(self.at.power(rest, types.f32), codes)
        return _Factor(self.at.row("mulf", value, self.at.to_elements(operand, near)), shift, left)


def _wide(op: DotScaledOp) -> SSAValue:
    """The product of elements and scales in f64, which is rounded and added."""
    at = _Places(op)
    a, b = (_wide_elements(at, operand) for operand in (op.left, op.right))
    zero = insert(ops.ConstantOp(0.0, types.with_element(op.acc.type, types.f64)), op)
    product = at.row("castf", insert(ops.DotOp(a, b, zero), op), element=types.f32)
    return at.row("addf", product, op.acc)


def _wide_elements(at: _Places, operand: ScaledOperand) -> SSAValue:
    value = at.e2m1_as_e5m2(operand) if operand.packed else operand.value
    value = at.row("castf", value, element=types.f64)
    if operand.packed:
        value = at.with_number("mulf", value, 2.0**_E2M1_SHIFT)
    if operand.scale is None:
        return value
    if types.is_float(operand.scale.type):
        scales = at.row("castf", operand.scale, element=types.f64)
    else:
        codes = at.row("extu", operand.scale, element=types.i64)
        scales = at.or_nan(at.power(at.with_number("addi", codes, _F64_BIAS - _SCALE_BIAS), types.f64), codes)
    return at.row("mulf", value, at.to_elements(operand, scales))
