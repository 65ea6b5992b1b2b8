"""Emits a planned conversion as lane IR."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilefw.simt import lane
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.convert import Plan, RegisterMove, ThroughShared
from tilefw.simt.layout.shuffle import Round, Shuffle
from tilefw.simt.lower import shared_access
from tilefw.simt.lower.shared_address import SharedAccessContext, xor_permuted
from tilefw.tile import types


def emit(context: SharedAccessContext, value: SSAValue, plan: Plan, source: LinearLayout, target: LinearLayout) -> SSAValue:
    """`value`, which stands in `source`, in `target`; shared memory that it takes gets its barriers from a later pass."""
    if isinstance(plan, RegisterMove):
        return context.builder.pick(value, plan.indices)
    if isinstance(plan, ThroughShared):
        return _through_shared(context, value, plan, source)
    return _shuffled(context, value, plan)


def _through_shared(context: SharedAccessContext, value: SSAValue, plan: ThroughShared, source: LinearLayout) -> SSAValue:
    b, element, parts = context.builder, types.element_of(value.type), plan.parts
    shape = "x".join(map(str, source.shape))
    buffer = b.alloc(plan.bytes, 16, f"conversion of a tile of {shape}x{element}")
    address = buffer.results[0]
    found: list[SSAValue] = []
    order: list[int] = []
    for given, taken in parts.registers:
        shared_access.write(context, address, plan.shared, parts.source, b.pick(value, given), buffer=buffer.id)
        found.append(
            shared_access.read(context, address, plan.shared, parts.target, element, buffer=buffer.id, flip=parts.flip)
        )
        order += taken
    return b.pick(b.join(found), sorted(range(len(order)), key=order.__getitem__))


def _shuffled(context: SharedAccessContext, value: SSAValue, plan: Shuffle) -> SSAValue:
    b = context.builder
    if types.is_bool(value.type):
        small = _shuffled(context, b.op("extu", value, result=types.i8), plan)
        return b.op("nei", small, b.constant(0, small.type))
    value = xor_permuted(context, value, plan.send)
    parts = [_round(context, b.pick(value, r.given), r, plan) for r in plan.rounds]
    order = [register for r in plan.rounds for register in r.taken]
    place = sorted(range(len(order)), key=order.__getitem__)
    return xor_permuted(context, b.pick(b.join(parts), place), plan.receive)


def _round(context: SharedAccessContext, given: SSAValue, round: Round, plan: Shuffle) -> SSAValue:
    """What a round brings."""
    b = context.builder
    if not plan.moves(round):
        return given
    if plan.exact:
        return b.shuffle(given, "xor", round.lane)
    lanes = context.address.thread_part(plan.lanes)
    if lanes is None:
        return b.shuffle(given, "index", round.lane)
    if round.lane:
        lanes = b.op("xori", lanes, b.constant(round.lane, lane.vector(1, types.i32)))
    return b.shuffle(given, "index", lanes)
