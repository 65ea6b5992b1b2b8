"""The choice between ways to fuse a part of a model, which a target may make by what they cost it.

A part is a module of its own (`part_of`); a way fuses it in place. Ways are tried on clones, the best is then taken on the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilefw.graph.dialect.served_nodes import serves_none

FusionWay = Callable[[ModuleOp], None]


class FusionChoice(Protocol):
    """Who chooses."""

    def best(self, part: Callable[[], ModuleOp], ways: Sequence[FusionWay]) -> int:
        """The number of the best of several ways to fuse a part; the first where they are alike."""
        ...


class _First:
    """The way that comes first: by convention it has the fewest launches."""

    def best(self, part: Callable[[], ModuleOp], ways: Sequence[FusionWay]) -> int:
        return 0


FEWEST_LAUNCHES: FusionChoice = _First()


def part_of(inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> ModuleOp:
    """What computes `outputs` from `inputs`, as a module of its own that serves no nodes."""
    block = Block(arg_types=[value.type for value in inputs])
    known: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for op in ops_between(inputs, outputs):
        copy = op.clone(known)
        serves_none(copy)
        block.add_op(copy)
    results = [known[value] for value in outputs]
    block.add_op(ReturnOp(*results))
    types = [value.type for value in inputs], [value.type for value in outputs]
    return ModuleOp([FuncOp("part", types, Region(block))])


def ops_between(inputs: Iterable[SSAValue], outputs: Iterable[SSAValue]) -> list[Operation]:
    """The ops between inputs and outputs, each behind what it reads."""
    found: dict[Operation, None] = {}
    known = set(inputs)
    work = [(value, False) for value in outputs]
    while work:
        value, read = work.pop()
        op = value.owner
        if value in known or not isinstance(op, Operation) or op in found:
            continue
        if read:
            found[op] = None
        else:
            work += [(value, True), *((operand, False) for operand in op.operands)]
    return list(found)
