"""Sums that take a product unrounded: a MUL and the ADD or SUB that alone reads it become one FMA, where the user allows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from tilefw_spatial import isa
from tilefw_spatial.chain.micro import Micro, MicroOperand, RegionResult
from tilefw_spatial.chain.node import Literal
from tilefw_spatial.chain.region import steps_of


def contracted(wanted: Sequence[RegionResult]) -> list[RegionResult]:
    """The same results with products fused into the sums that read them."""
    uses = Counter(o.source for step in steps_of(wanted) for o in step.operands if isinstance(o.source, Micro))
    uses.update(result.micro for result in wanted)
    return rebuilt(wanted, lambda step, before: _fused(step, before, uses))


def rebuilt(wanted: Sequence[RegionResult], change: Callable[[Micro, Micro], Micro]) -> list[RegionResult]:
    """The same results with `change(step, before)` in place of each step: it is given the step on the new operands, and the step as
    it was."""
    made: dict[Micro, Micro] = {}
    for step in steps_of(wanted):
        operands = tuple(replace(o, source=made[o.source]) if isinstance(o.source, Micro) else o for o in step.operands)
        made[step] = change(step if operands == step.operands else replace(step, operands=operands), step)
    return [replace(result, micro=made[result.micro]) for result in wanted]


def _fused(step: Micro, before: Micro, uses: Counter[Micro]) -> Micro:
    if step.op not in ("ADD", "SUB") or not step.contractible:
        return step
    for k in (0, 1):
        product, old = step.operands[k].source, before.operands[k].source
        once = isinstance(old, Micro) and uses[old] == 1
        if once and isinstance(product, Micro) and _may_join(step, product, k):
            return replace(step, op="FMA", operands=_operands(step, product, k), contractible=False)
    return step


def _may_join(step: Micro, product: Micro, k: int) -> bool:
    """Integers have no sign to negate, and a step has one immediate."""
    fits = product.op == "MUL" and product.contractible and product.dtype == step.dtype and product.reduced == step.reduced
    if not fits or step.operands[k].absolute or (step.op == "SUB" and not isa.TYPES[step.dtype].is_float):
        return False
    return not any(isinstance(o.source, Literal) for o in product.operands) or not isinstance(step.operands[1 - k].source, Literal)


def _operands(step: Micro, product: Micro, k: int) -> tuple[MicroOperand, ...]:
    """x · y + z with the signs of the sum."""
    x, y = product.operands
    z = step.operands[1 - k]
    negative = step.operands[k].negate != (step.op == "SUB" and k == 1)
    x = replace(x, negate=x.negate != negative)
    return x, y, replace(z, negate=z.negate != (step.op == "SUB" and k == 0))
