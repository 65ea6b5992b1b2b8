"""The part of a loop's body that computes addresses: what can be run for a later iteration than the one that is under way.

A slice is made of ops without effect on the induction variable, on values from outside, and on carried values whose next
value is in the slice too (a pointer that moves on). Loads that it reads are named: they must themselves be issued earlier.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilefw.passes.side_effects import is_side_effect_free
from tilefw.simt.software_pipeline.emitter import Emitter
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.combine_op import CombineOp
from tilefw.tile.dialect.dot_op import DotOp

Load = ops.LoadOp | ops.LoadBlockOp


@dataclass(frozen=True)
class AddressSlice:
    """`ops` in the order of the body; `carried` the indices of carried values; `loads` the loads whose values it needs."""

    ops: tuple[Operation, ...]
    carried: tuple[int, ...]
    loads: tuple[Load, ...]

    def run(
        self, loop: ForOp, emitter: Emitter, induction: SSAValue, state: dict[int, SSAValue], loaded: dict[Load, SSAValue]
    ) -> tuple[dict[SSAValue, SSAValue], dict[int, SSAValue]]:
        """Emit the slice for the iteration of `induction`, `state` (carried values by index) and `loaded`.

        Gives the new values by the body's own, and the state of the next iteration.
        """
        body = loop.body.block
        values: dict[SSAValue, SSAValue] = {body.args[0]: induction}
        values.update((body.args[1 + index], value) for index, value in state.items())
        values.update((load.result, value) for load, value in loaded.items())
        for op in self.ops:
            for old, new in zip(op.results, emitter.repeat(op, values), strict=True):
                values[old] = new
        last = body.last_op
        assert last is not None
        following = {index: values.get(last.operands[index], last.operands[index]) for index in self.carried}
        return values, following


def slice_of(loop: ForOp, wanted: Iterable[SSAValue]) -> AddressSlice | None:
    """What computes `wanted` in the body of a loop; None where it cannot be run early."""
    body = loop.body.block
    last = body.last_op
    assert last is not None
    found: set[Operation] = set()
    carried: set[int] = set()
    loads: dict[Load, None] = {}
    pending = list(wanted)
    while pending:
        value = pending.pop()
        if isinstance(value, BlockArgument):
            if value.block is body and value.index and value.index - 1 not in carried:
                carried.add(value.index - 1)
                pending.append(last.operands[value.index - 1])
            continue
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not body or op in found:
            continue
        if isinstance(op, Load):
            loads[op] = None
            continue
        if not _repeatable(op):
            return None
        found.add(op)
        pending.extend(op.operands)
    return AddressSlice(tuple(op for op in body.ops if op in found), tuple(sorted(carried)), tuple(loads))


def _repeatable(op: Operation) -> bool:
    """Whether an op is cheap to run a second time; sums, scans and products of tiles are not."""
    return not op.regions and not isinstance(op, DotOp | CombineOp) and is_side_effect_free(op)
