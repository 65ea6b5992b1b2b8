"""Structured access: loads and stores on pointer arithmetic become block accesses where the block can be recovered.

An access at base + Σ (offset_d + index_d) · stride_d, masked by a conjunction of offset_d + index_d < bound_d (and >= 0),
becomes `tile.load_block` or `tile.store_block`. What does not fit becomes a scalar base with an offset tile where the
base is provable, and stays on pointers else. Atomics take a base and offsets, never a block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from tilefw.passes.affine import ONE, ZERO, Affine, AffineAnalysis, Materializer, Poly, expanded, permuted, reshaped
from tilefw.passes.dce import erase_dead
from tilefw.passes.fold import constant_of
from tilefw.passes.integer_ranges import IntegerRanges
from tilefw.passes.offset_sums import sum_of
from tilefw.passes.rewriting import exchange, insert
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.block_ops import LoadBlockOp, StoreBlockOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.memory_ops import LoadOp, StoreOp
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.offset_arithmetic import address_arithmetic, mask_arithmetic, offset_arithmetic

# The shape ops that may stand between a tile of indices and the pointers or the mask made of it.
ShapeOp = ops.ExpandDimsOp | ops.BroadcastOp | ops.TransOp | ops.ReshapeOp


class StructuredAccessPass(ModulePass):
    """Makes block accesses of loads and stores whose addresses are regular.

    Every load and store of tiles, in one walk; then the pointer arithmetic that nobody needs any more is dropped.
    """

    name = "structured-access"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        analysis = AffineAnalysis(offset_arithmetic(op), IntegerRanges(op))
        for access in [o for o in nested_ops(op) if isinstance(o, LoadOp | StoreOp | AtomicOp)]:
            if types.is_tile(access.value_type):
                _rewrite(access, analysis)
        while erase_dead(op):
            pass


@dataclass(frozen=True, slots=True)
class PointerTile:
    """A tile of pointers: a scalar base, and the offset tiles that are added to it, each with the shape ops above it."""

    base: SSAValue
    offsets: tuple[SSAValue, ...]
    form: Affine | None


@dataclass(frozen=True, slots=True)
class Bound:
    """`index` < `limit` + `above` for an upper bound; `index` >= 0 for a lower one (limit None). An index that `may_fall` is what
    its form says only where a lower bound keeps off what wrapped around below the integers of its type."""

    index: Affine
    limit: Poly | None
    above: int = 0
    may_fall: bool = False


@dataclass(slots=True)
class Dim:
    """What is known of one dim of the block: it ends at `limit` + `above`."""

    stride: Poly
    begin: Poly = ZERO
    limit: Poly | None = None
    above: Poly = ZERO
    lower: bool = False

    @property
    def end(self) -> Poly | None:
        return None if self.limit is None else self.limit + self.above


def _rewrite(access: LoadOp | StoreOp | AtomicOp, analysis: AffineAnalysis) -> None:
    address = _address_of(access, analysis)
    if address is None:
        return
    if not isinstance(access, AtomicOp) and (dims := _block_of(access, address, analysis)) is not None:
        _to_block(access, address, dims, analysis)
    elif access.offsets is None:
        _to_offsets(access, address)


def _address_of(access: LoadOp | StoreOp | AtomicOp, analysis: AffineAnalysis) -> PointerTile | None:
    if access.offsets is not None:
        return PointerTile(access.pointer, (access.offsets,), analysis.tile(access.offsets))
    return decompose(access.pointer, analysis)


def decompose(pointer: SSAValue, analysis: AffineAnalysis) -> PointerTile | None:
    """A tile of pointers as a scalar base and offsets of the same shape; None where the base is not one scalar."""
    rank = len(types.shape_of(pointer.type))
    op = pointer.op if isinstance(pointer, OpResult) else None
    if isinstance(op, ops.SplatOp):
        return PointerTile(op.source, (), Affine(ZERO, (ZERO,) * rank))
    if isinstance(op, ops.AddPtrOp) and rank:
        inner = decompose(op.pointer, analysis)
        if inner is None:
            return None
        form = analysis.tile(op.offset)
        total = None if form is None or inner.form is None else inner.form + form
        return PointerTile(inner.base, (*inner.offsets, op.offset), total)
    if isinstance(op, ShapeOp) and types.is_tile(op.source.type):
        return _reshaped(op, analysis)
    return None


def _reshaped(op: ShapeOp, analysis: AffineAnalysis) -> PointerTile | None:
    inner = decompose(op.source, analysis)
    if inner is None:
        return None
    offsets: list[SSAValue] = []
    for offset in inner.offsets:  # the same shape op on each offset tile, next to the one on pointers
        if isinstance(op, ops.ExpandDimsOp):
            made: Operation = ops.ExpandDimsOp(offset, op.axis)
        elif isinstance(op, ops.TransOp):
            made = ops.TransOp(offset, op.order)
        else:
            made = op.__class__(offset, types.shape_of(op.results[0].type))
        offsets.append(insert(made, op))
    return PointerTile(inner.base, tuple(offsets), _shaped(op, inner.form))


def _shaped(op: ShapeOp, form: Affine | None) -> Affine | None:
    if form is None or isinstance(op, ops.BroadcastOp):
        return form
    if isinstance(op, ops.ReshapeOp):
        return reshaped(form, types.shape_of(op.source.type), types.shape_of(op.results[0].type))
    return expanded(form, op.axis) if isinstance(op, ops.ExpandDimsOp) else permuted(form, op.order)


def _block_of(access: LoadOp | StoreOp, address: PointerTile, analysis: AffineAnalysis) -> list[Dim] | None:
    """The block's dims, with `begin` of the unbounded ones left 0; None where address or mask is not of that form."""
    if address.form is None:
        return None
    bounds = bounds_of(access, analysis)
    if bounds is None:
        return None
    dims = [Dim(stride) for stride in address.form.strides]
    for bound in bounds:
        if not _apply_bound(dims, bound, types.shape_of(access.value_type)):
            return None
    return None if any(dim.lower and dim.limit is None for dim in dims) else dims


def _apply_bound(dims: list[Dim], bound: Bound, shape: tuple[int, ...]) -> bool:
    moving = [d for d, stride in enumerate(bound.index.strides) if stride != ZERO]
    if len(moving) != 1 or bound.index.strides[moving[0]] != ONE:
        return False
    dim = dims[moving[0]]
    begin = bound.index.uniform
    if (dim.limit is not None or dim.lower) and dim.begin != begin:
        return False
    if bound.limit is None:
        dim.lower = True
    elif dim.end is None or dim.end == bound.limit + Poly.constant(bound.above):
        dim.limit, dim.above = bound.limit, Poly.constant(bound.above)
    else:
        return False
    dim.begin = begin
    return True


def bounds_of(access: LoadOp | StoreOp, analysis: AffineAnalysis) -> list[Bound] | None:
    """An access's mask as a conjunction of bounds on affine indices; None where it is anything else."""
    if access.mask is None:
        return []
    analysis.look_at(address_arithmetic(access))
    found = _bounds_of(access.mask, analysis)
    analysis.look_at(None)
    above_zero = [bound.index for bound in found or () if bound.limit is None]
    return None if any(bound.may_fall and bound.index not in above_zero for bound in found or ()) else found


def _bounds_of(mask: SSAValue, analysis: AffineAnalysis) -> list[Bound] | None:
    if constant_of(mask) == 1:
        return []
    op = mask.op if isinstance(mask, OpResult) else None
    if isinstance(op, ShapeOp):
        inner = _bounds_of(op.source, analysis)
        if inner is None:
            return None
        moved = [replace(bound, index=form) for bound in inner if (form := _shaped(op, bound.index)) is not None]
        return moved if len(moved) == len(inner) else None
    if not isinstance(op, ElementwiseOp):
        return None
    if op.row.name == "andi":
        left, right = (_bounds_of(o, analysis) for o in op.operands)
        return None if left is None or right is None else left + right
    return _compare_bound(op, analysis)


# Each signed compare of an index with a uniform limit as the bound it is: (row, limit is on the right) to how far the
# exclusive upper limit lies above the limit, or None for a lower bound, whose limit is given as that of `index >= limit`.
_UPPER = {("lts", True): 0, ("les", True): 1, ("gts", False): 0, ("ges", False): 1}
_LOWER = {("ges", True): 0, ("gts", True): 1, ("les", False): 0, ("lts", False): 1}


def _compare_bound(op: ElementwiseOp, analysis: AffineAnalysis) -> list[Bound] | None:
    if op.row.operands[0] != "T:int" or len(op.operands) != 2:
        return None
    x, y = (analysis.computed(operand) for operand in op.operands)
    if x is None or y is None or x.is_uniform == y.is_uniform:
        return None
    right = y.is_uniform
    index, limit = (x, y.uniform) if right else (y, x.uniform)
    above = _UPPER.get((op.row.name, right))
    if above is not None and analysis.never_rises(op.operands[right]):
        return [Bound(index, limit, above, not analysis.never_falls(op.operands[not right]))]
    below = _LOWER.get((op.row.name, right))
    if below is not None and (limit + Poly.constant(below)).number == 0:
        return [Bound(index, None)]
    return None


def _to_block(access: LoadOp | StoreOp, address: PointerTile, dims: list[Dim], analysis: AffineAnalysis) -> None:
    assert address.form is not None
    rest = address.form.uniform
    for dim in dims:
        if not dim.lower and dim.limit is not None and not (dim.begin * dim.stride).terms <= rest.terms:
            # The mask counts on from where the pointer stands already (a loop that advances it): count from 0 instead.
            dim.above, dim.begin = dim.above - dim.begin, ZERO
        rest = rest - dim.begin * dim.stride
    if rest != ZERO:
        home = next((d for d in reversed(dims) if d.stride == ONE and d.limit is None and not d.lower), None)
        if home is not None:  # the base stays the argument: its alignment and extent are known
            home.begin, rest = rest, ZERO
    own = address_arithmetic(access)
    # Bounds are compared where nothing is accessed, too: there only what the mask was made of may be what wrapped in 32 bits.
    compared = own & mask_arithmetic(access)
    make = Materializer(analysis, access)
    analysis.look_at(own)
    base = address.base if rest == ZERO else insert(ops.AddPtrOp(address.base, make.value(rest)), access)
    offsets: list[SSAValue] = []
    for dim in dims:
        analysis.look_at(own if dim.limit is None else compared)
        offsets.append(make.value(dim.begin))
    analysis.look_at(own)
    strides = [make.value(d.stride) for d in dims]
    analysis.look_at(compared)
    shape = [None if d.limit is None else make.bound(d.limit, d.above) for d in dims]
    analysis.look_at(None)
    lower = [d.lower for d in dims]
    if isinstance(access, LoadOp):
        block = types.shape_of(access.value_type)
        made: Operation = LoadBlockOp(base, shape, strides, offsets, block, access.other, lower=lower, **access.hints)
    else:
        made = StoreBlockOp(base, access.value, shape, strides, offsets, lower=lower, **access.hints)
    exchange(access, made)


def _to_offsets(access: LoadOp | StoreOp | AtomicOp, address: PointerTile) -> None:
    """The scalar base with one offset tile, summed in the widest of the offsets' types."""
    total = sum_of(address.offsets, access)
    if total is None:
        return
    if isinstance(access, LoadOp):
        made: Operation = LoadOp(address.base, total, access.mask, access.other, **access.hints)
    elif isinstance(access, AtomicOp):
        made = access.rebuilt(address.base, total, access.mask)
    else:
        made = StoreOp(address.base, access.value, total, access.mask, **access.hints)
    exchange(access, made)
