"""What a loop carries of addresses: sums rather than terms, and offsets of lanes rather than a base where those are few.

Where the body of a loop only advances a carried scalar, and adds the same invariant to it wherever else it takes it (the rest of an
address to a base that moves on), the scalar starts with the invariant in it. That is right with integers, which wrap around.

A base that moves on makes chips whose accesses take a base prepare it anew in every iteration. In small buffers the base may stay
where it is, and the offsets move: no more registers, and each is ready when the iteration begins.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from xdsl.ir import Block, Operation, SSAValue

from tilefw.simt import lane
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.lane.memory import AccessOp
from tilefw.simt.lane.promises import promise
from tilefw.simt.lower.buffer_bounds import OUTSIDE, literal
from tilefw.tile import types

_Add, _Select = lane.ELEMENTWISE["addi"], lane.ELEMENTWISE["select"]
_FEW = 4  # offsets of a lane whose moving takes no more than to move a base of 64 bits and to prepare it


def start_with_invariants(
    builder: LaneBuilder, body: Block, inits: Sequence[SSAValue], wanted: Sequence[bool], centered: set[SSAValue] | None = None
) -> list[SSAValue]:
    """What a loop starts with, `inits` or sums of them made where the builder stands; the body is changed to go with it.

    body: the loop's finished block, whose arguments behind the first are carried. wanted: for each of these whether something
    behind the loop takes its last value, which therefore stays as it is. An argument in the place of one of `centered` joins them.
    """
    starts = list(inits)
    for index, argument in enumerate(body.args[1:]):
        sums = [] if wanted[index] else _sums(body, index, argument)
        if not sums:
            continue
        starts[index] = builder.op("addi", starts[index], _other(sums[0], argument))
        for op in sums:
            if centered is not None and op.results[0] in centered:
                centered.add(argument)
            op.results[0].replace_all_uses_with(argument)
            op.detach()
            op.erase()
    return starts


class Moved:
    """The offsets that a finished body moves in place of bases.

    `dropped` are the indices of the carried bases that it takes no more; `starts` what the loop starts with for the arguments that
    its block has got at the end.
    """

    def __init__(self) -> None:
        self.dropped: set[int] = set()
        self.starts: list[SSAValue] = []


def move_offsets(
    builder: LaneBuilder, body: Block, starts: Sequence[SSAValue], wanted: Sequence[bool], centered: Container[SSAValue]
) -> Moved:
    """Have a loop move offsets in place of bases, where they are few; see `start_with_invariants` for the arguments.

    Only where all buffers are small, for pointers that come from an argument: no offset from where a base starts then needs more
    than 32 bits, if it has no sign. It has none if the base only ever grows, or if it is one of `centered`, which stand so far
    below what is accessed.
    """
    moved = Moved()
    last = body.last_op
    assert last is not None
    for index, (argument, start) in enumerate(zip(list(body.args[1:]), starts, strict=True)):
        advance = None if wanted[index] else _advance(body, index, argument)
        if advance is None:
            continue
        step, accesses = _other(advance, argument), _accesses(argument, advance)
        grows = isinstance(step.owner, lane.ConstantOp) and step.owner.value >= 0
        known = all(_argument(access) >= 0 for access in accesses)
        if not accesses or not known or not is_before(step, body) or not (grows or argument in centered):
            continue
        places = [_invariants(_lane_part(access), body) for access in accesses]
        if None in places or sum(types.shape_of(v.type)[0] for v in {v for p in places for v in p or ()}) > _FEW:
            continue
        _move(builder, body, accesses, [v for p in places for v in p or ()], argument, start, step, moved)
        moved.dropped.add(index)
    last.operands = [v for index, v in enumerate(last.operands) if index not in moved.dropped]
    for index in sorted(moved.dropped, reverse=True):
        advance = next(iter(body.args[1 + index].uses)).operation
        advance.detach()
        advance.erase()
        body.erase_arg(body.args[1 + index])
    return moved


def _move(
    builder: LaneBuilder, body: Block, accesses: Sequence[AccessOp], places: Sequence[SSAValue], argument: SSAValue,
    start: SSAValue, step: SSAValue, moved: Moved,
) -> None:
    """Carry each of `places`, the invariant offsets of these accesses, and have them access from `start`."""
    with builder.promising():
        last, carried, low = body.last_op, {}, builder.extend(step, types.i32)
    assert last is not None
    for place in dict.fromkeys(places):
        carried[place] = body.insert_arg(place.type, len(body.args))
        moved.starts.append(place)
        following = _Add(carried[place], builder.splat(low, types.shape_of(place.type)[0]))
        promise(following, "exact")
        _insert(following, last)
        last.operands = [*last.operands, following.results[0]]
    for access in accesses:
        replaced = {argument: start, _lane_part(access): _with(_lane_part(access), carried, access)}
        access.operands = [replaced.get(operand, operand) for operand in access.operands]


def _argument(access: AccessOp) -> int:
    """The kernel argument that is accessed."""
    return access.argument if isinstance(access, lane.CopyAsyncOp) else access.buffer


def _lane_part(access: AccessOp) -> SSAValue:
    """What lanes add to a base."""
    part = access.part(access.global_part)
    assert part is not None
    return part


def _accesses(base: SSAValue, advance: Operation) -> list[AccessOp]:
    """The accesses from a carried base, if it is taken for nothing but these and to advance, and no limit moves with it."""
    users = {use.operation: None for use in base.uses if use.operation is not advance}
    for op in users:
        copies = isinstance(op, lane.CopyAsyncOp)
        if not copies and not isinstance(op, lane.MemoryOp):
            return []
        if op.part("base") is not base or sum(o is base for o in op.operands) > 1:
            return []
        limit = op.part("limit")
        if limit is not None and not _is_literal(limit, OUTSIDE) and not (copies and _is_all_or_none(limit)):
            return []
    return list(users)  # type: ignore[arg-type]


def _is_all_or_none(limit: SSAValue) -> bool:
    """Whether a limit lets everything be accessed, or nothing."""
    owner = limit.owner
    return isinstance(owner, _Select) and _is_literal(owner.operands[1], OUTSIDE) and _is_literal(owner.operands[2], 0)


def _invariants(offset: SSAValue, body: Block) -> list[SSAValue] | None:
    """The invariant vectors that offsets are joined of, or chosen from where they are not `OUTSIDE`; None if there are others."""
    if is_before(offset, body):
        return [offset]
    owner = offset.owner
    if isinstance(owner, lane.JoinOp):
        parts = [_invariants(part, body) for part in owner.operands]
        return None if None in parts else [v for part in parts for v in part or ()]
    if isinstance(owner, _Select) and _is_literal(owner.operands[2], OUTSIDE):
        return _invariants(owner.operands[1], body)
    return None


def _with(offset: SSAValue, carried: dict[SSAValue, SSAValue], place: Operation) -> SSAValue:
    """Offsets made anew before `place` of carried ones in place of invariant ones."""
    if offset in carried:
        return carried[offset]
    owner = offset.owner
    if isinstance(owner, lane.JoinOp):
        parts = [_with(part, carried, place) for part in owner.operands]
        return _insert(lane.JoinOp.create(operands=parts, result_types=[offset.type]), place)
    assert isinstance(owner, _Select)
    mask, inside, outside = owner.operands
    chosen = _Select(mask, _with(inside, carried, place), outside)
    promise(chosen, "exact")
    return _insert(chosen, place)


def _insert(op: Operation, place: Operation) -> SSAValue:
    op.location = place.location
    assert place.parent is not None
    place.parent.insert_op_before(op, place)
    return op.results[0]


def _is_literal(value: SSAValue, bits: int) -> bool:
    return isinstance(value.owner, lane.ConstantOp) and value.owner.value == literal(bits)


def _sums(body: Block, index: int, argument: SSAValue) -> list[Operation]:
    """The sums of a carried scalar and one invariant, if the body takes it for nothing else but what the next iteration gets."""
    advance = _advance(body, index, argument)
    if advance is None:
        return []
    sums = [use.operation for use in argument.uses if use.operation is not advance]
    if not all(isinstance(op, _Add) for op in sums):
        return []
    added = {_other(op, argument) for op in (advance, *sums)}
    terms = {_other(op, argument) for op in sums}
    invariant = argument not in added and all(is_before(term, body) for term in terms)
    return sums if len(terms) == 1 and invariant else []


def _advance(body: Block, index: int, argument: SSAValue) -> Operation | None:
    """The sum that makes the next iteration's value of a carried one, if it is made for nothing else."""
    assert body.last_op is not None
    following = body.last_op.operands[index]
    advance = following.owner
    alone = isinstance(advance, _Add) and argument in advance.operands and len(list(following.uses)) == 1
    return advance if alone else None  # type: ignore[return-value]


def _other(add: Operation, operand: SSAValue) -> SSAValue:
    """What a sum adds to one of its operands."""
    a, b = add.operands
    return b if a is operand else a


def is_before(value: SSAValue, body: Block) -> bool:
    """Whether a value is made outside of a block and all that it contains."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    while block is not None and block is not body:
        block = block.parent_block()
    return block is None
