"""Bounds that accesses check themselves in place of masks: on chips whose accesses take a limit beside base and offset.

Along one dim whose neighbours are further apart than all else of a block reaches, being in bounds is being below where the bound
is: that is the limit. A check that is equal in all lanes makes the limit zero where it fails. Any other mask chooses the offset: a
masked-off lane's is `OUTSIDE`, beyond every limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, SSAValue

from tilefw.machine.inst import NoWrap
from tilefw.simt import lane
from tilefw.simt.lower.access import APART, Addressing, Indices
from tilefw.tile import types
from tilefw.tile.dialect.block_ops import BlockAccess

OUTSIDE = (1 << 32) - (1 << 16)  # with room above: no sum of it with an immediate that stands beside it wraps
FAR = -(1 << 12)  # the bits of an immediate that must not


class BufferBounds:
    """Makes limits and chosen offsets."""

    def __init__(self, addressing: Addressing) -> None:
        self.addressing = addressing
        self.builder = addressing.builder
        self.scalars = addressing.scalars
        self.facts = addressing.facts

    def of(
        self, op: BlockAccess, own: int | None, moves: int | None, also: SSAValue | None
    ) -> tuple[SSAValue | None, list[int]]:
        """A block's limit (None if nothing is checked), and the dims that it does not check.

        `own` is the dim that has one; offsets are counted from the block's first element or, where it `moves`, from so many bytes
        before index 0 there.
        """
        b = self.builder
        checked = [d for d, bound in enumerate(op.shape) if bound is not None]
        if not checked and also is None:
            return None, []
        limit = b.constant(literal(OUTSIDE), types.i32)
        if own is not None:
            limit = self._end(op, own) if moves is None else self._from(self._bound(op, own, moves), op, own, moves)
        masked = []
        for d in checked:
            if d == own:
                continue
            if op.block[d] == 1:
                limit = b.op("select", self._inside(op, d), limit, b.constant(0, types.i32))
            else:
                masked.append(d)
        return limit, masked

    def begin(self, op: BlockAccess, dim: int, before: int) -> SSAValue:
        """Where a block begins along its limit's dim, in bytes from so many before index 0: no further than the bound, from where
        all is out of bounds."""
        b = self.builder
        offset, bound = op.offsets[dim], op.shape[dim]
        at = b.extend(self.scalars[offset], types.i32)
        if not _stays_below(offset, bound):
            wide, _ = self._wide(op, dim)
            at = b.extend(b.op("mins", wide, b.extend(self._bound(op, dim, before), wide.type)), types.i32)
        return self._from(at, op, dim, before)

    def _from(self, index: SSAValue, op: BlockAccess, dim: int, before: int) -> SSAValue:
        """An index of a dim in bytes, from so many before index 0."""
        b = self.builder
        return b.op("addi", b.op("muli", index, self._step(op, dim)), b.constant(literal(before), types.i32))

    def _bound(self, op: BlockAccess, dim: int, before: int) -> SSAValue:
        """A dim's bound, but no more than leaves its whole block room below `OUTSIDE`, and no less than stands `before` index 0, as
        i32."""
        b, step = self.builder, self._stride(op, dim) * self.addressing.size(op)
        _, bound = self._wide(op, dim)
        cap = b.constant(min((OUTSIDE - before) // step - op.block[dim] - 1, (1 << 31) - 1), bound.type)
        return b.extend(b.op("mins", b.op("maxs", bound, b.constant(-(before // step), bound.type)), cap), types.i32)

    def _stride(self, op: BlockAccess, dim: int) -> int:
        stride = self.facts.constant(op.strides[dim])
        assert stride is not None
        return stride

    def _step(self, op: BlockAccess, dim: int) -> SSAValue:
        return self.builder.constant(literal(self._stride(op, dim) * self.addressing.size(op)), types.i32)

    def _end(self, op: BlockAccess, dim: int) -> SSAValue:
        """Where a dim's bound is, in bytes from the block's first element: no more than the whole block."""
        b = self.builder
        offset, bound = self._wide(op, dim)
        left = b.op("subi", b.op("maxs", bound, offset), offset)  # no less than 0, and without a sign it cannot wrap
        left = b.extend(b.op("minu", left, b.constant(op.block[dim], left.type)), types.i32)
        return b.op("muli", left, self._step(op, dim))

    def _inside(self, op: BlockAccess, dim: int) -> SSAValue:
        """Whether the only index of a dim is in bounds."""
        b = self.builder
        offset, bound = self._wide(op, dim)
        if op.checks[dim] == "both":
            end = op.shape[dim]
            assert end is not None
            return b.op("ltu", offset, self.addressing.no_sign(end, bound))
        return b.op("lts", offset, bound)

    def _wide(self, op: BlockAccess, dim: int) -> tuple[SSAValue, SSAValue]:
        """A dim's offset and bound in one type."""
        bound = op.shape[dim]
        assert bound is not None
        offset, end = self.scalars[op.offsets[dim]], self.scalars[bound]
        wide = max((offset.type, end.type), key=lambda t: types.dtype_of(t).bits)
        return self.builder.extend(offset, wide), self.builder.extend(end, wide)

    def chosen(
        self, op: BlockAccess, indices: Indices, accesses: Sequence[int], masked: Sequence[int], also: SSAValue | None,
        offsets: Sequence[SSAValue], promised: NoWrap,
    ) -> list[SSAValue]:
        """The offsets of these accesses, and `OUTSIDE` where a mask of the dims `masked` or `also` is false.

        In loops a few are made one by one, so that what a loop does not change stands before it.
        """
        a, b, n = self.addressing, self.builder, len(accesses)
        groups = [[k] for k in range(n)] if b.in_loop and n <= APART else [list(range(n))]
        result = []
        for group in groups:
            own = [accesses[k] for k in group]
            part = Indices(indices.parts, [indices.xors[k] for k in own], [indices.adds[k] for k in own])
            mask = a.both(a.bounds(op, part, masked), also)
            assert mask is not None
            with b.promising(promised):
                result.append(self.choose(mask, b.join([offsets[k] for k in group])))
        return result

    def parted(self, mask: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """The limit for a mask: what of it is equal in all lanes makes it zero; and the rest of the mask."""
        b, limit, rest = self.builder, self.builder.constant(literal(OUTSIDE), types.i32), None
        for term in _conjuncts(mask):
            scalar = term.owner.source if isinstance(term.owner, lane.SplatOp) else term
            if types.shape_of(scalar.type):
                rest = self.addressing.both(rest, term)
            else:
                limit = b.op("select", scalar, limit, b.constant(0, types.i32))
        return limit, rest

    def choose(self, mask: SSAValue, offsets: SSAValue) -> SSAValue:
        """The offsets where the mask, one for each or one for all, is true."""
        b, (n,) = self.builder, types.shape_of(offsets.type)
        return b.op("select", b.splat(mask, n), offsets, b.constant(literal(OUTSIDE), offsets.type))


def _stays_below(offset: SSAValue, bound: SSAValue | None) -> bool:
    """Whether an offset is the induction variable of a loop that ends at a bound."""
    loop = offset.block.parent_op() if isinstance(offset, BlockArgument) and offset.index == 0 else None
    return isinstance(loop, ForOp) and loop.ub is bound


def _conjuncts(mask: SSAValue) -> list[SSAValue]:
    """The terms of a conjunction."""
    if isinstance(mask.owner, lane.ELEMENTWISE["andi"]):
        return [term for operand in mask.owner.operands for term in _conjuncts(operand)]
    return [mask]


def literal(value: int) -> int:
    """32 bits as the integer that they are as a literal."""
    value &= (1 << 32) - 1
    return value - (1 << 32) if value >> 31 else value
