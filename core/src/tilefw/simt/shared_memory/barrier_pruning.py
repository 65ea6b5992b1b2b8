"""Drops the barriers without which nothing is missing, looking only as far behind each as its absence changes anything.

What may have happened on the way to an op is kept for the ops that have a barrier in front or regions. Without a barrier the states
behind it differ for some ops; where one is the kept state again, all that follows is as it was. Without a barrier states only grow,
so a loop is followed from the states that are kept of it: round again only where its end brings something new to its head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from xdsl.dialects.scf import ForOp, IfOp, WhileOp
from xdsl.ir import Block, Operation, Region

from tilefw.simt.shared_memory.path_state import PathState

# The state in front of an op, at the end of a block, and where a round of a loop begins (its first region).
_Place = Operation | Block | Region
_States = dict[_Place, PathState]


class BarrierSearch(Protocol):
    """What pruning asks of the analysis: `before` are the ops with a barrier in front, `events` the ops of a block that matter."""

    before: dict[Operation, None]
    events: dict[Block, list[Operation]]
    missing: bool

    def lacking(self, analyse: Callable[[], object]) -> bool: ...

    def event(self, op: Operation, state: PathState) -> PathState: ...

    def next_iteration(self, op: Operation, state: PathState) -> PathState: ...

    def outside(self, op: Operation, state: PathState) -> PathState: ...


class BarrierPruning:
    """One function's barriers, after an analysis has found all that are needed from the front."""

    def __init__(self, analysis: BarrierSearch, body: Block) -> None:
        self._analysis = analysis
        self._body = body
        self._kept: _States = {}
        self._places: dict[Operation, tuple[Block, int]] = {}
        self._place(body)

    def run(self) -> None:
        """Drop barriers, the first that were found first."""
        analysis = self._analysis
        if analysis.lacking(lambda: self._from(self._body, 0, PathState(), self._kept)):
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
            for region in op.regions:
                for inside in region.blocks:
                    self._place(inside)

    def _behind(self, op: Operation, changed: _States) -> None:
        """Follow what happens from `op` on, until nothing is different or something is missing."""
        block, index = self._places[op]
        state, known = self._kept[op].copy(), True
        while True:
            followed = self._from(block, index, state, changed, known)
            outer = block.parent_op()
            if followed is None or block is self._body or outer is None:
                return
            state, known = self._left(outer, block, followed, changed), False
            if self._analysis.missing:
                return
            block, index = self._places[outer]
            index += 1

    def _left(self, outer: Operation, block: Block, state: PathState, changed: _States) -> PathState:
        """Behind a branch or a loop where the end of one of its blocks differs."""
        if not isinstance(outer, ForOp | WhileOp):
            return self._joined(outer, changed)
        if block is not _last(outer):
            self._from(_last(outer), 0, state.copy(), changed)
        return self._settled(outer, self._kept[outer.regions[0]], changed)

    def _from(self, block: Block, index: int, state: PathState, changed: _States, known: bool = False) -> PathState | None:
        """The state at the end of a block that is entered at `index`; None where all is as it was, or something is missing.
        `known`: the first op's own state is."""
        analysis = self._analysis
        for op in analysis.events[block][index:]:
            kept = changed.get(op) or self._kept.get(op)
            if not known and kept is not None and state == kept:
                return None
            if op.regions or op in analysis.before or kept is not None:
                changed[op] = state.copy()
            known = False
            state = self._event(op, state, changed)
            if analysis.missing:
                return None
        if state == (changed.get(block) or self._kept.get(block)):
            return None
        changed[block] = state.copy()
        return state

    def _event(self, op: Operation, state: PathState, changed: _States) -> PathState:
        """Behind an op, which is followed as a whole; what differs in it is in `changed`."""
        if isinstance(op, ForOp | WhileOp):
            return self._loop(op, state, changed)
        if not isinstance(op, IfOp):
            return self._analysis.event(op, state)
        for region in op.regions:
            if region.blocks:
                self._from(region.block, 0, state.copy(), changed)
        return state if self._analysis.missing else self._joined(op, changed)

    def _joined(self, branch: Operation, changed: _States) -> PathState:
        """Behind a branch: its ends, or the state in front of it where a side has no ops."""
        ends = [region.block if region.blocks else branch for region in branch.regions]
        first, second = (self._latest(end, changed) for end in ends)
        return first.join(second)

    def _loop(self, op: ForOp | WhileOp, state: PathState, changed: _States) -> PathState:
        """Behind a loop that is entered anew. It starts from what is known of it, to which the way here only adds."""
        if op in self._analysis.before:
            state.barrier()
        head = changed.get(op.regions[0]) or self._kept.get(op.regions[0])
        into = state if head is None else head.join(state)
        if head is None or into != head:
            self._round(op, into, changed)
        return self._settled(op, into, changed)

    def _settled(self, op: ForOp | WhileOp, into: PathState, changed: _States) -> PathState:
        """Behind a loop of which a round has been followed from `into`, when going round again changes nothing."""
        analysis = self._analysis
        while not analysis.missing:
            following = into.join(analysis.next_iteration(op, self._latest(_last(op), changed)))
            if following == into:
                break
            into = following
            self._round(op, into, changed)
        changed[op.regions[0]] = into.copy()
        if analysis.missing:
            return into
        end = self._latest(op.regions[0].block, changed)
        return analysis.outside(op, into.join(end) if isinstance(op, ForOp) else end.copy())

    def _round(self, op: ForOp | WhileOp, into: PathState, changed: _States) -> None:
        """One round of a loop."""
        self._from(op.regions[0].block, 0, into.copy(), changed)
        if isinstance(op, WhileOp) and not self._analysis.missing:
            self._from(_last(op), 0, self._latest(op.regions[0].block, changed).copy(), changed)

    def _latest(self, place: _Place, changed: _States) -> PathState:
        return changed.get(place) or self._kept[place]


def _last(loop: ForOp | WhileOp) -> Block:
    """The block behind which a loop begins again."""
    return loop.regions[-1].block
