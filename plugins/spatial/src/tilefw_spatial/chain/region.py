"""A region to be segmented: micro steps in an order that keeps values short-lived, and which need which."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from tilefw_spatial.chain.immediates import with_immediates
from tilefw_spatial.chain.micro import Micro, MicroOperand, RegionResult, producers
from tilefw_spatial.chain.node import Input
from tilefw_spatial.postorder import postorder

_REMATERIALISED = 3  # steps that are repeated rather than put in a segment of their own


@dataclass(slots=True)
class ChainRegion:
    """`order` has every step that some segment must do, operands first, by phase and rate. `until` says up to where in the order a
    step's result is needed, by its users or by steps that they rematerialise: one past the last user, past the order's end if it is
    needed outside. `wanted` are the results that a step makes.

    Rematerialised steps are not in `order`: each user repeats them. That costs an ALU; a value in memory costs bytes, or a whole
    segment. They are conversions of inputs, and a few steps at most on reduced values. `brings` has those that a step reads,
    directly or through others, and the constants (`operands` is what a step reads where constants that are not its immediate are
    steps). `rank` grows from operands to users; constants are first."""

    order: list[Micro]
    until: dict[Micro, int]
    phases: dict[Micro, int]
    wanted: dict[Micro, list[RegionResult]]
    operands: dict[Micro, tuple[MicroOperand, ...]]
    brings: dict[Micro, tuple[Micro, ...]]
    rank: dict[Micro, int]


def region_of(wanted: Sequence[RegionResult], rematerialise: bool = True) -> ChainRegion:
    """The steps below the results, in order; `rematerialise`: cheap ones are repeated by their users."""
    by_step: dict[Micro, list[RegionResult]] = {}
    for result in wanted:
        by_step.setdefault(result.micro, []).append(result)
    steps = steps_of(wanted)
    users: dict[Micro | Input, list[Micro]] = {}
    for step in steps:
        for source in dict.fromkeys(producers(step)):
            users.setdefault(source, []).append(step)
    repeated = _rematerialised(steps, by_step) if rematerialise else set[Micro]()
    phases = _phases(steps, users, by_step)
    order = [step for step in steps if step not in repeated]
    order.sort(key=lambda step: (phases[step], step.reduced))  # stable: within a phase, operands stay first
    operands, constants = with_immediates(steps)
    rank = {step: i for i, step in enumerate([*constants, *steps])}
    brings = _brought(steps, operands, repeated.union(constants))
    return ChainRegion(order, _until(steps, order, users, by_step), phases, by_step, operands, brings, rank)


def _until(
    steps: Sequence[Micro], order: Sequence[Micro], users: dict[Micro | Input, list[Micro]],
    wanted: dict[Micro, list[RegionResult]],
) -> dict[Micro, int]:
    after = {step: i + 1 for i, step in enumerate(order)}
    found: dict[Micro, int] = {}
    for step in reversed(steps):  # a rematerialised step is needed as far as its users
        last = max((after.get(user, found[user]) for user in users.get(step, ())), default=0)
        found[step] = len(order) + 1 if step in wanted else last
    return found


def _brought(
    steps: Sequence[Micro], operands: dict[Micro, tuple[MicroOperand, ...]], repeated: Set[Micro]
) -> dict[Micro, tuple[Micro, ...]]:
    """The repeated steps below each step."""
    found: dict[Micro, tuple[Micro, ...]] = {}
    for step in steps:
        inner = [o.source for o in operands[step] if isinstance(o.source, Micro) and o.source in repeated]
        found[step] = tuple(dict.fromkeys(one for p in inner for one in (*found.get(p, ()), p)))
    return found


def _rematerialised(steps: Sequence[Micro], wanted: dict[Micro, list[RegionResult]]) -> set[Micro]:
    sizes: dict[Micro, int] = {}
    for step in steps:
        inner = [p for p in producers(step) if isinstance(p, Micro)]
        size = 1 + sum(sizes.get(p, 0) for p in inner)
        converts = step.op.startswith("CVT.") and isinstance(step.operands[0].source, Input) and not step.operands[0].source.drained
        if step not in wanted and (converts or (step.reduced and size <= _REMATERIALISED)):
            sizes[step] = size
    return set(sizes)


def steps_of(wanted: Sequence[RegionResult]) -> list[Micro]:
    """All steps below the results, operands before their users: depth first, the operand that holds most values first, so that few
    wait at a time (Sethi and Ullman, 1970)."""
    roots = list(dict.fromkeys(result.micro for result in wanted))
    weight: dict[Micro, int] = {}
    for step in postorder(roots, _steps_read):
        inner = sorted((weight[read] for read in _steps_read(step)), reverse=True)
        weight[step] = max((w + i for i, w in enumerate(inner)), default=1)
    return postorder(roots, lambda step: sorted(_steps_read(step), key=weight.__getitem__))


def _steps_read(step: Micro) -> list[Micro]:
    return [source for source in dict.fromkeys(producers(step)) if isinstance(source, Micro)]


def _phases(
    steps: Sequence[Micro], users: dict[Micro | Input, list[Micro]], wanted: dict[Micro, list[RegionResult]]
) -> dict[Micro, int]:
    """How many changes of rate (a reduction's end, a reduced value read at full rate) lie before a step; no step is earlier than
    its users need it, so that what only they read need not wait in memory."""
    phases: dict[Micro, int] = {}
    for step in steps:
        phases[step] = max((phases[p] + _crosses(p, step) for p in producers(step) if isinstance(p, Micro)), default=0)
    for step in reversed(steps):
        if step not in wanted:
            phases[step] = min(phases[user] - _crosses(step, user) for user in users[step])
    return phases


def _crosses(producer: Micro, user: Micro) -> bool:
    """Whether two steps cannot be in one segment."""
    return producer.every > 0 or producer.reduced != user.reduced

