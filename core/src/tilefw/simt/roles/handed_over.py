"""Loops that are divided, as their author wants (`tl.range(warp_specialize=True)`) or it pays (`paying.py`): each iteration fills a
slot of rings, and hands it over.

    for i …:   copies of iteration i into `slot`
               hand over `slot`, `parity`     (the copies have landed: here the producer's part ends, and the others' begins)
               the body, which reads `slot`

Nothing is issued early: the lane pass that divides the program lets the producer run ahead by as many iterations as there are
slots. The slot and its parity go on through the loops around, so that of a persistent kernel it runs ahead into the next tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilefw.passes.side_effects import fetches_anew, is_side_effect_free
from tilefw.simt.assign.accesses import Accesses
from tilefw.simt.roles.meeting import meets_behind
from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.simt.software_pipeline.alias import LoopWrites
from tilefw.simt.software_pipeline.early_load import copy
from tilefw.simt.software_pipeline.emitter import Emitter
from tilefw.simt.software_pipeline.loop_frame import carrying
from tilefw.simt.software_pipeline.other_values import with_other_values
from tilefw.simt.software_pipeline.plan import LoadChain, Plan, PrefetchStorage, candidates
from tilefw.simt.software_pipeline.prefetch import named, next_slot
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.kernel_info import is_argument
from tilefw.tile.dialect.shared_ops import AllocSharedOp, HandOverOp, LoadSharedOp, SlotOp, shared
from tilefw.tile.nested_ops import nested_ops

WISH = "tile.warp_specialize"


def wants_roles(loop: ForOp) -> bool:
    """Whether the author marked the loop, or one around it."""
    return any(WISH in op.attributes for op in (loop, *_around(loop)))


def _around(loop: ForOp) -> Iterator[Operation]:
    """The ops that a loop stands in, innermost first."""
    op = loop.parent_op()
    while op is not None and not isinstance(op, FuncOp):
        yield op
        op = op.parent_op()


def why_not(
    function: FuncOp, loop: ForOp, plan: Plan, accesses: Accesses, copying: Sequence[ForOp] = ()
) -> str | None:
    """What keeps a loop from being divided; None where nothing does. `copying` are all loops that copy to shared memory."""
    if not accesses.machine.chip.barrier_bytes:
        return "the chip has no barriers that count"
    if any(op is not loop and isinstance(op, ForOp) and wants_roles(op) and _has_loads(op) for op in nested_ops(function)):
        return "several loops of a kernel want roles"
    if any(other is not loop for other in copying):
        return "another loop of the kernel copies to shared memory as well"
    if not all(isinstance(op, ForOp) for op in _around(loop)):
        return "the loop stands in a branch"
    beside = _beside_copies(function, loop)
    if any(not op.regions and fetches_anew(op) for op in beside):
        return "the kernel may wait for another program, and copies would not"
    writes = LoopWrites(beside, accesses.machine.disjoint)
    if any(writes.may_write(load.pointer if isinstance(load, ops.LoadOp) else load.base) for load in candidates(loop)):
        return "the kernel may write what the loop reads"
    if too_many := _too_many_waves(loop, accesses):
        return too_many
    if len(plan) != 1 or plan[0].storage is not PrefetchStorage.COPIES or len(plan[0].levels) != 1:
        return "not all that the loop's dots read can be copied to shared memory by itself"
    bounds = [bound for op in (loop, *_around(loop)) if isinstance(op, ForOp) for bound in (op.lb, op.ub, op.step)]
    if not _is_computable([*bounds, *(operand for load in plan[0].loads for operand in load.operands)], function):
        return "its bounds, or the addresses of its loads, depend on loads or branches"
    if accesses.machine.workgroups > 1 and (list(_around(loop)) or not meets_behind(loop, plan[0].loads)):
        return "a cluster of workgroups makes the program, and its groups may have to meet before the loop is over"
    return None


def _beside_copies(function: FuncOp, loop: ForOp) -> Sequence[Operation]:
    """What consumers may do while the producer copies: all that stands before the outermost loop or in it. They come behind it when
    all copies have landed."""
    inside, outermost = nested_ops(function), [loop, *_around(loop)][-1]
    return inside[: inside.index(outermost) + len(nested_ops(outermost))]


def _too_many_waves(loop: ForOp, accesses: Accesses) -> str | None:
    """Whether there are threads, and registers for what consumers carry, for twice as many waves."""
    machine = accesses.machine
    chip = machine.chip
    by_engine = all(_is_for_engine(op, accesses) for op in candidates(loop))
    waves = machine.waves // machine.workgroups
    threads = machine.lanes * (waves + (chip.role_waves if by_engine else waves))
    if threads > chip.threads:
        return f"a workgroup has no {threads} threads"
    if not chip.processor_registers:
        return None
    needed, each = registers_wanted(loop, accesses), min(chip.registers, chip.processor_registers // threads)
    return f"{threads} threads have {each} registers each, and its sums want {needed}" if needed > each else None


def registers_wanted(loop: ForOp, accesses: Accesses) -> int:
    """What a lane that multiplies takes: the sums that the loop carries, and what is beside them."""
    chip, threads = accesses.machine.chip, accesses.machine.threads
    sums = [v.type for v in loop.iter_args if types.is_tile(v.type) and not types.is_pointer(v.type)]
    return chip.role_registers.beside_sums + sum(accesses.bytes(type) for type in sums) // threads // 4


def _is_for_engine(load: Load, accesses: Accesses) -> bool:
    """Whether a copy engine can take a load, by what is known before layouts are."""
    engine, facts = accesses.machine.chip.copy_engine, accesses.facts
    if engine is None or not isinstance(load, ops.LoadBlockOp) or any(offset.type != types.i32 for offset in load.offsets):
        return False
    if not is_argument(load.base):
        return False
    size = types.dtype_of(load.result.type).storage_bits // 8
    rows = [stride for stride in load.strides if facts.constant(stride) != 1]
    return len(rows) == len(load.strides) - 1 and not any(
        divisor % engine.alignment for divisor in (facts.divisor(load.base), *(facts.divisor(stride) * size for stride in rows))
    )


def _has_loads(loop: ForOp) -> bool:
    return bool(candidates(loop))


def _is_computable(values: Sequence[SSAValue], function: FuncOp) -> bool:
    """Whether a producer of its own can compute values: from arguments and loops' counters, by ops without effect."""
    seen: set[SSAValue] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, Block):
            loop = owner.parent_op()
            if loop is function:
                continue
            if not isinstance(value, BlockArgument) or not isinstance(loop, ForOp):
                return False
            last = owner.last_op
            assert last is not None
            pending += (loop.lb, loop.ub, loop.step)
            if value.index:
                pending += (loop.iter_args[value.index - 1], last.operands[value.index - 1])
        elif owner.regions or not _is_pure(owner):
            return False
        else:
            pending += owner.operands
    return True


def _is_pure(op: Operation) -> bool:
    return is_side_effect_free(op) and not isinstance(op, Load)


def hand_over(loop: ForOp, chain: LoadChain) -> None:
    """Rewrite a loop so that its iterations hand their copies over."""
    slots = max(2, chain.slots)
    outer = [op for op in _around(loop) if isinstance(op, ForOp)]
    before = Emitter(outer[-1] if outer else loop)
    rings = {load: _ring(before, load, slots) for load in chain.loads}
    zero = before.constant(0, types.i32)
    slot = parity = zero
    for around in reversed(outer):
        _, (slot, parity) = _carrying(around, slot, parity)
    place, (slot, parity) = _carrying(loop, slot, parity)
    before = Emitter([place, *_around(place)][-1])
    _fill(place, chain, rings, slot, parity)
    last = place.body.block.last_op
    assert last is not None
    end = Emitter(last, before)
    following = next_slot(end, slot, zero, slots)
    wrapped = end.row("eqi", following, zero)
    flipped = end.row("subi", end.constant(1, types.i32), parity)
    _yield(last, (following, end.row("select", wrapped, flipped, parity)))
    inner = place
    for around in _around(place):
        own = around.regions[0].block.last_op
        assert own is not None
        _yield(own, inner.results[-2:])
        assert isinstance(around, ForOp)
        inner = around


def _ring(before: Emitter, load: Load, slots: int) -> SSAValue:
    type = load.result.type
    ring = before.insert(AllocSharedOp(shared(slots, types.shape_of(type), types.element_of(type))), load.location).results[0]
    ring.name_hint = named(load, "ring")
    return ring


def _carrying(loop: ForOp, slot: SSAValue, parity: SSAValue) -> tuple[ForOp, tuple[SSAValue, ...]]:
    """The loop with a slot and its parity among what it carries; the wish is granted."""
    new, arguments = carrying(loop, {"slot": slot, "parity": parity})
    new.attributes.pop(WISH, None)
    return new, arguments


def _yield(last: Operation, values: Sequence[SSAValue]) -> None:
    last.operands = [*last.operands, *values]


def _fill(loop: ForOp, chain: LoadChain, rings: dict[Load, SSAValue], slot: SSAValue, parity: SSAValue) -> None:
    """Copies and the hand-over at the top of the body; what was loaded is read from the slot."""
    body = loop.body.block
    first = body.first_op
    assert first is not None
    top, outside = Emitter(first, Emitter(loop)), Emitter(loop)
    level = chain.levels[0]
    state = {index: body.args[1 + index] for index in level.slice.carried}
    values, _ = level.slice.run(loop, top, body.args[0], dict(state), {})
    slots = 0
    for load, ring in rings.items():
        view = top.insert(SlotOp(ring, slot), load.location).results[0]
        top.insert(copy(load, view, values, None), load.location)
        slots = ring.type.slots  # type: ignore[attr-defined]
    top.insert(HandOverOp(slot, parity, slots))
    for load, ring in rings.items():
        emitter = Emitter(load, outside)
        view = emitter.insert(SlotOp(ring, slot)).results[0]
        value = emitter.insert(LoadSharedOp(view)).results[0]
        value.name_hint = load.result.name_hint
        load.result.replace_all_uses_with(with_other_values(load, value, emitter))
