"""Whether an op has effects, by its class where that says it: passes ask it of every op, again and again.

xDSL collects the effects of all ops inside an op as sets; an op around half a kernel is decided here by the first that has one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from xdsl.ir import Operation
from xdsl.traits import MemoryEffect, MemoryEffectKind, NoMemoryEffect, RecursiveMemoryEffect, get_effects

from tilefw.tile.dialect.memory_ops import CacheHinted
from tilefw.tile.nested_ops import nested_ops


def is_side_effect_free(op: Operation) -> bool:
    """Whether the op, with all inside it, surely has no effect: what xDSL's function of this name says."""
    decided = _free_class(op.__class__)
    if decided is None:
        effects = get_effects(op)
        return effects is not None and not effects
    return decided and _all_inside(op, is_side_effect_free)


def may_write(op: Operation) -> bool:
    """Whether the op, or one inside it, may write memory; an op that does not say may."""
    if _free_class(op.__class__):
        return not _all_inside(op, _does_not_write)
    effects = get_effects(op)
    return effects is None or any(effect.kind is MemoryEffectKind.WRITE for effect in effects)


def orders_memory(op: Operation) -> bool:
    """Whether what was read before may be another behind the op, or one inside it: it may write, or wait for what others write."""
    return may_write(op) or fetches_anew(op)


def fetches_anew(op: Operation) -> bool:
    """Whether the op, or one inside it, looks at memory anew each time, and so may wait for another program."""
    return any(isinstance(inner, CacheHinted) and inner.fetches_anew for inner in nested_ops(op))


def effects_are_inside(op: Operation) -> bool:
    """Whether an op's effects are those of the ops inside it, and no others."""
    return bool(_free_class(op.__class__)) and _asks_inside(op.__class__)


def _does_not_write(op: Operation) -> bool:
    return not may_write(op)


def _all_inside(op: Operation, holds: Callable[[Operation], bool]) -> bool:
    """Whether it holds for the ops right inside; of an op whose class alone has no effect they do not count."""
    if not op.regions or not _asks_inside(op.__class__):
        return True
    for region in op.regions:
        for block in region.blocks:
            inner = block.first_op
            while inner is not None:
                if not holds(inner):
                    return False
                inner = inner.next_op
    return True


@cache
def _free_class(kind: type[Operation]) -> bool | None:
    """Whether ops of a class have no effect of their own; None where the op itself has to be asked."""
    traits = [trait for trait in kind.traits if isinstance(trait, MemoryEffect)]
    if all(isinstance(trait, NoMemoryEffect | RecursiveMemoryEffect) for trait in traits):
        return bool(traits)
    return None


@cache
def _asks_inside(kind: type[Operation]) -> bool:
    return any(isinstance(trait, RecursiveMemoryEffect) for trait in kind.traits)
