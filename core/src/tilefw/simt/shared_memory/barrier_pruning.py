"""Drops the barriers without which nothing is missing, looking only as far behind each as its absence changes anything.

What may have happened on the way to an op is kept for the ops that have a barrier in front or regions. Without a barrier the states
behind it differ for some ops; where one is the kept state again, all that follows is as it was. A loop is followed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from xdsl.dialects.scf import IfOp
from xdsl.ir import Block, Operation

from tilefw.simt.shared_memory.path_state import PathState

_States = dict[Operation | Block, PathState]


class BarrierSearch(Protocol):
    """What pruning asks of the analysis: `before` are the ops with a barrier in front, `events` the ops of a block that matter."""

    before: dict[Operation, None]
    events: dict[Block, list[Operation]]
    missing: bool

    def lacking(self, analyse: Callable[[], object]) -> bool: ...

    def event(self, op: Operation, state: PathState) -> PathState: ...


class BarrierPruning:
    """One function's barriers, after an analysis has found all that are needed from the front."""

    def __init__(self, analysis: BarrierSearch, body: Block) -> None:
        self._analysis = analysis
        self._body = body
        self._kept: _States = {}  # the state in front of an op, and at the end of a block
        self._places: dict[Operation, tuple[Block, int]] = {}  # of the ops outside loops
        self._place(body)

    def run(self) -> None:
        """Drop barriers, the first that were found first."""
        analysis = self._analysis
        if analysis.lacking(lambda: self._through(self._body, PathState(), self._kept)):
            return
        for op in list(analysis.before):
            changed: _States = {}
            del analysis.before[op]
            if analysis.lacking(lambda op=op, changed=changed: self._behind(op, changed)):
                analysis.before[op] = None
            else:
                self._kept.update(changed)

    def _place(self, block: Block) -> None:
        for index, op in enumerate(self._analysis.events[block]):
            self._places[op] = block, index
            for inside in _branches(op):
                self._place(inside)

    def _behind(self, op: Operation, changed: _States) -> None:
        """Follow what happens from `op` on, until nothing is different or something is missing."""
        while op not in self._places:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        block, index = self._places[op]
        state = self._kept[op].copy()
        while True:
            followed = self._from(block, index, state, changed, known=True)
            if followed is None or block is self._body:
                return
            branch = block.parent_op()
            assert isinstance(branch, IfOp)
            state = self._joined(branch, changed)
            block, index = self._places[branch]
            index += 1

    def _from(self, block: Block, index: int, state: PathState, changed: _States, known: bool = False) -> PathState | None:
        """The state at the end of a block that is entered at `index`; None where all is as it was, or something is missing.
        `known`: the first op's own state is."""
        analysis = self._analysis
        for op in analysis.events[block][index:]:
            kept = self._kept.get(op)
            if not known and kept is not None and state == kept:
                return None
            if op.regions or op in analysis.before or kept is not None:
                changed[op] = state.copy()
            known = False
            state = self._event(op, state, changed)
            if analysis.missing:
                return None
        if state == self._kept.get(block):
            return None
        changed[block] = state.copy()
        return state

    def _through(self, block: Block, state: PathState, changed: _States) -> None:
        """A whole block; what differs in it is in `changed`."""
        self._from(block, 0, state, changed)

    def _event(self, op: Operation, state: PathState, changed: _States) -> PathState:
        if not isinstance(op, IfOp):
            return self._analysis.event(op, state)
        for inside in _branches(op):
            self._through(inside, state.copy(), changed)
        return self._joined(op, changed)

    def _joined(self, branch: IfOp, changed: _States) -> PathState:
        """Behind a branch: its ends, or the state in front of it where a side has no ops."""
        ends = [region.block if region.blocks else branch for region in branch.regions]
        first, second = (changed.get(end) or self._kept[end] for end in ends)
        return first.join(second)


def _branches(op: Operation) -> list[Block]:
    return [region.block for region in op.regions if region.blocks] if isinstance(op, IfOp) else []
