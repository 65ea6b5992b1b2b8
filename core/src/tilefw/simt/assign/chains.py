"""DotChains: which dots hand their sums to another as its A, and so keep their rows within a wave."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.simt.assign.classes import Classes
from tilefw.simt.layout.atom_layouts import AtomChain
from tilefw.tile.dialect.dot_op import DotOp


class DotChains:
    """How each of a function's dots stands to the others, by the classes of their values."""

    def __init__(self, dots: Sequence[DotOp], classes: Classes) -> None:
        self.classes = classes
        self.results = {classes.root(op.results[0]) for op in dots}
        self.operands = {classes.root(op.a) for op in dots}

    def of(self, op: DotOp) -> AtomChain:
        """A dot whose A is the result of another follows it, whatever its own result becomes."""
        if self.classes.root(op.a) in self.results:
            return AtomChain.FOLLOWS
        return AtomChain.LEADS if self.classes.root(op.results[0]) in self.operands else AtomChain.NONE
