"""The block of an array that a load of a loop reads, told from the array's beginning: how far its pointer has come is an index.

    a_ptr + rows * stride + step * 64      # row `rows`, column `step * 64`, where a pointer moves on by 64 each time

Rows whose index wraps around at the array's end (`rows % M`) or is another one beyond it (`tl.where(rows < M, rows, 0)`) are those
before the end, where nobody reads the others: what is divided is taken for not negative, as it is for runs of such indices
(`passes/axis_info.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilefw.passes.affine import ONE, ZERO, Affine, Materializer, Poly
from tilefw.passes.fold import constant_of
from tilefw.passes.integer_ranges import IntegerRanges
from tilefw.passes.rewriting import insert
from tilefw.passes.structured_access import Bound, bounds_of
from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.simt.software_pipeline.loop_numbers import LoopAnalysis, Signs, changes_in, stays_near
from tilefw.simt.software_pipeline.unread_rows import are_unread
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.block_ops import LoadBlockOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp, build
from tilefw.tile.dialect.kernel_info import is_argument

_MOST_OPS = 64  # that are looked through for indices that wrap around


@dataclass
class _Dim:
    """One dim of a block: where it begins in the array, and where the array ends."""

    stride: Poly
    begin: Poly = ZERO
    end: Poly | None = None
    lower: bool = False  # whether what is before the array is masked off, or nothing is


@dataclass(frozen=True)
class _Wrapped:
    """A tile of indices `begin` + 0, 1, … that are others from `limit` on, made by an op whose result stands for it in forms;
    `lower`: none is taken for negative."""

    result: SSAValue
    begin: Poly
    limit: Poly
    lower: bool


def walked_block(load: Load, loop: ForOp, offset_ops: set[Operation], ranges: IntegerRanges) -> LoadBlockOp | None:
    """The same load told from the beginning of the array of an argument, not in its place yet; None where that cannot be told."""
    analysis = LoopAnalysis(loop, offset_ops, ranges)
    analysis.look_at_offsets()
    found = _origin(load.pointer if isinstance(load, ops.LoadOp) else load.base, analysis)
    if found is None:
        return None
    base, moved = found
    read = _of_pointers(load, moved, analysis) if isinstance(load, ops.LoadOp) else _of_block(load, moved, analysis)
    return None if read is None else _made(load, base, *read, analysis)


def _origin(pointer: SSAValue, analysis: LoopAnalysis) -> tuple[SSAValue, Poly] | None:
    """The argument that a scalar pointer comes from, and how many elements behind it."""
    loop, total = analysis.loop, ZERO
    while not is_argument(pointer):
        owner = pointer.owner
        if isinstance(owner, ops.AddPtrOp) and not types.is_tile(pointer.type):
            total, pointer = total + analysis.scalar(owner.offset), owner.pointer
        elif isinstance(pointer, BlockArgument) and owner is loop.body.block and pointer.index:
            walked = _walked(pointer, analysis)
            if walked is None:
                return None
            total, pointer = total + walked, loop.iter_args[pointer.index - 1]
        else:
            return None
    return pointer, total


def _walked(carried: BlockArgument, analysis: LoopAnalysis) -> Poly | None:
    """How far a pointer that the loop carries has come since the loop began: as far each time."""
    loop, last, each = analysis.loop, analysis.loop.body.block.last_op, ZERO
    step = constant_of(loop.step)
    assert last is not None
    following = last.operands[carried.index - 1]
    while following is not carried:
        owner = following.owner
        if not isinstance(owner, ops.AddPtrOp):
            return None
        each, following = each + analysis.scalar(owner.offset), owner.pointer
    if step is None or step < 1 or changes_in(loop, each) or any(factor % step for _, factor in each.terms):
        return None
    share = Poly.of({monomial: factor // int(step) for monomial, factor in each.terms})
    return share * (analysis.induction - analysis.scalar(loop.lb))


def _of_block(load: LoadBlockOp, moved: Poly, analysis: LoopAnalysis) -> tuple[list[_Dim], Poly] | None:
    dims = [_Dim(analysis.scalar(stride)) for stride in load.strides]
    offsets = [analysis.scalar(offset) for offset in load.offsets]
    total = moved
    for dim, offset in zip(dims, offsets, strict=True):
        total += dim.stride * offset
    outer = _divide(total, dims)
    if outer is None:
        return None
    for dim, offset, bound, check in zip(dims, offsets, load.shape, load.checks, strict=True):
        if bound is None:
            continue
        limit = analysis.limit(bound)
        if limit is None or (check == "both" and dim.begin != offset):
            return None
        dim.end, dim.lower = limit - offset + dim.begin, check == "both"
    return dims, outer


def _of_pointers(load: ops.LoadOp, moved: Poly, analysis: LoopAnalysis) -> tuple[list[_Dim], Poly] | None:
    if load.offsets is None:
        return None
    wrapped = _wrapped(load.offsets, analysis)
    form = analysis.tile(load.offsets)
    bounds = bounds_of(load, analysis)
    if form is None or bounds is None:
        return None
    places = _unwrapped(form, wrapped)
    if places is None:
        return None
    form, wrapping = places
    dims = [_Dim(stride) for stride in form.strides]
    outer = _divide(form.uniform + moved, dims)
    if outer is None or not all(_bind(dims, bound) for bound in bounds):
        return None
    for index, each in wrapping.items():
        dim, rest = dims[index], each.limit - each.begin
        if dim.begin != each.begin or dim.end is not None or not are_unread(load.result, index, rest, analysis):
            return None
        dim.end, dim.lower = each.limit, each.lower
    return dims, outer


def _bind(dims: Sequence[_Dim], bound: Bound) -> bool:
    moving = [d for d, stride in enumerate(bound.index.strides) if stride != ZERO]
    if len(moving) != 1 or bound.index.strides[moving[0]] != ONE:
        return False
    dim, begin = dims[moving[0]], bound.index.uniform
    if bound.limit is None:
        dim.lower = True
        return dim.begin == begin
    end = bound.limit + Poly.constant(bound.above) - begin + dim.begin
    known, dim.end = dim.end, end
    return known is None or known == end


def _divide(total: Poly, dims: Sequence[_Dim]) -> Poly | None:
    """Say where a block begins along each dim, `total` elements behind the first of the array: along the dim of neighbours, what
    no other stride divides. Gives the rest, which further dims of the array have (`described_array.py`); None where that is not
    clear."""
    strides = [dim.stride for dim in dims]
    dense = [dim for dim in dims if dim.stride == ONE]
    if len(dense) != 1 or len(set(strides)) != len(strides) or any(len(stride.terms) != 1 for stride in strides):
        return None
    for dim in dims:
        if dim is dense[0]:
            continue
        ((monomial, factor),) = dim.stride.terms
        taken = {
            rest: times // factor for product, times in total.terms
            if times % factor == 0 and (rest := _without(product, monomial)) is not None
        }
        dim.begin = Poly.of(taken)
        total -= dim.begin * dim.stride
    dense[0].begin = Poly.of({monomial: factor for monomial, factor in total.terms if len(monomial) < 2})
    return total - dense[0].begin


def _without(product: Sequence[SSAValue], taken: Sequence[SSAValue]) -> tuple[SSAValue, ...] | None:
    """A product without the factors of another; None where they are not in it."""
    rest = list(product)
    for factor in taken:
        if factor not in rest:
            return None
        rest.remove(factor)
    return tuple(rest)


def _wrapped(offsets: SSAValue, analysis: LoopAnalysis) -> list[_Wrapped]:
    """The tiles of indices that wrap around in a tile of offsets. Its form then has their results for where they begin, and the
    square of those for their strides: so the one is told from the other, and each from all else."""
    found: list[_Wrapped] = []
    pending, seen = [offsets], 0
    while pending and seen < _MOST_OPS:
        op, seen = pending.pop().owner, seen + 1
        if isinstance(op, ElementwiseOp) and op.row.name in ("rems", "select"):
            each = _wrapped_by(op, analysis)
            if each is not None and each.result not in [other.result for other in found]:
                mark = Poly.atom(each.result)
                analysis.order.setdefault(each.result, len(analysis.order))
                analysis.assume(each.result, Affine(mark, (mark * mark,)))
                found.append(each)
        elif isinstance(op, Operation) and not op.regions and not isinstance(op, ops.LoadOp | LoadBlockOp):
            pending += [operand for operand in op.operands if types.is_tile(operand.type)]
    return found


def _wrapped_by(op: ElementwiseOp, analysis: LoopAnalysis) -> _Wrapped | None:
    parts = _index_and_end(op)
    if len(types.shape_of(op.results[0].type)) != 1 or parts is None:
        return None
    form, limit = analysis.computed(parts[0]), analysis.limit(parts[1])
    if form is None or limit is None or form.strides != (ONE,):
        return None
    return _Wrapped(op.results[0], form.uniform, limit, lower=op.row.name == "rems")


def _index_and_end(op: ElementwiseOp) -> tuple[SSAValue, SSAValue] | None:
    """Of `index % end`, and of `index if index < end else …`."""
    if op.row.name == "rems":
        return op.operands[0], op.operands[1]
    compared = op.operands[0].owner
    if not isinstance(compared, ElementwiseOp) or compared.row.name != "lts" or compared.operands[0] is not op.operands[1]:
        return None
    return compared.operands[0], compared.operands[1]


def _unwrapped(form: Affine, wrapped: Sequence[_Wrapped]) -> tuple[Affine, dict[int, _Wrapped]] | None:
    """A form of indices that do not wrap around, and along which dims those lie that do; None where one lies not along one."""
    uniform, strides = form.uniform, list(form.strides)
    found: dict[int, _Wrapped] = {}
    for each in wrapped:
        twice = (each.result, each.result)
        along = [d for d, stride in enumerate(strides) if any(each.result in monomial for monomial, _ in stride.terms)]
        if len(along) != 1 or along[0] in found:
            return None
        parts = [(_without(monomial, twice), factor) for monomial, factor in strides[along[0]].terms]
        if any(rest is None or each.result in rest for rest, _ in parts):
            return None
        strides[along[0]] = Poly.of({rest: factor for rest, factor in parts if rest is not None})
        marked = strides[along[0]] * Poly.atom(each.result)
        uniform = uniform - marked + strides[along[0]] * each.begin
        if any(each.result in monomial for monomial, _ in uniform.terms):
            return None
        found[along[0]] = each
    return Affine(uniform, tuple(strides)), found


def _made(load: Load, base: SSAValue, dims: Sequence[_Dim], outer: Poly, analysis: LoopAnalysis) -> LoadBlockOp | None:
    make = Materializer(analysis, load)
    begins = [_begin(dim.begin, load, make, analysis) for dim in dims]
    if any(begin is None for begin in begins):
        return None
    ends = [None if dim.end is None else make.value(dim.end) for dim in dims]
    if outer != ZERO:
        base = insert(ops.AddPtrOp(base, make.value(outer)), load)
    return LoadBlockOp(
        base, ends, [make.value(dim.stride) for dim in dims], [begin for begin in begins if begin is not None],
        types.shape_of(load.result.type), load.other, lower=[dim.lower or _is_behind_begin(dim) for dim in dims],
        **load.hints,
    )


def _is_behind_begin(dim: _Dim) -> bool:
    """Whether nothing before the array is read where the loop runs; copies that are made before the loop do not know that."""
    signs = Signs()
    return dim.end is not None and signs.all_upwards(dim.begin) and not signs.divisors


def _begin(begin: Poly, load: Load, make: Materializer, analysis: LoopAnalysis) -> SSAValue | None:
    """Where a block begins, as a number of 32 bits: one that the kernel computes, or so many times the loop's index."""
    index = analysis.loop.body.block.args[0]
    times = [factor for monomial, factor in begin.terms if monomial == (index,)]
    if len(begin.terms) == 1 and times and index.type == types.i32:
        if not stays_near(times[0], analysis):
            return None
        return index if times[0] == 1 else insert(build("muli", index, make.value(Poly.constant(times[0]))), load)
    made = make.value(begin)
    return made if made.type == types.i32 else None
